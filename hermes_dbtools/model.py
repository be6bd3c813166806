"""The frozen values that pass between the parts of the tool; holds no behaviour that reads or writes anything.

Units: sizes are bytes, moments are epoch seconds, durations are seconds.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from enum import IntEnum, StrEnum
from typing import ClassVar, Literal

import msgspec

Value = str | bytes | int | float | None
"""One SQLite value. TEXT that is not UTF-8 travels as its bytes (design rule: values cannot stop us)."""


TO_SALVAGE = "hermes-dbtools salvage"
"""The `next` of a finding that only a salvage gets around: as long as it is there, nothing of its file is planned."""


class Severity(IntEnum):
    """How bad a finding is; the order is the order of `--fail-on`."""

    NOTE = 1
    WARNING = 2
    ERROR = 3

    @property
    def word(self) -> str:
        """Lower-case word as documents and tables print it."""
        return self.name.lower()


class Safety(StrEnum):
    """What a repair may do to data: see `Damage.safety`."""

    EXACT = "exact"
    LOSSY = "lossy"
    CHOICE = "choice"
    MANUAL = "manual"


class Status(StrEnum):
    """The outcome of one damage class on one database."""

    CLEAN = "clean"
    DAMAGED = "damaged"
    COULD_NOT_LOOK = "could-not-look"
    NOT_APPLICABLE = "not-applicable"
    SKIPPED = "skipped"


class Statement(msgspec.Struct, frozen=True):
    """One SQL statement of a step: a named block of the damage class's own SQL file, with its bindings.

    `expect` is the exact number of rows the statement itself must change. `split` names the block that lists
    (key, bytes) of the rows, for a statement that takes `:first` and `:last` and may be run by ranges of keys. `names`
    are the identifiers of the file that fill the places of a block. A `create` or `drop` changes no row: it makes or takes
    away the one index or trigger that `names` names.
    """

    block: str
    bindings: Mapping[str, Value]
    expect: int
    table: str
    operation: Literal["insert", "update", "delete", "create", "drop"]
    split: str | None = None
    names: Mapping[str, str] = {}

    @property
    def of_schema(self) -> bool:
        """Whether it changes the schema and no row."""
        return self.operation in ("create", "drop")

    @property
    def schema_object(self) -> str:
        """The index or trigger that a `create` or `drop` is about."""
        return self.names.get("index") or self.names["trigger"]


class SchemaChange(msgspec.Struct, frozen=True):
    """An index or trigger that a repair made or took away: the text that made it, '' where there was none."""

    type: Literal["index", "trigger"]
    name: str
    table: str
    before: str
    after: str


class FileCopy(msgspec.Struct, frozen=True):
    """A file put back at a missing place after COMMIT, byte for byte; the source stays where it is."""

    source: str
    target: str
    sha256: str
    size: int


class FileTrash(msgspec.Struct, frozen=True):
    """A file that leaves its place after COMMIT, into `trash/` beside the receipt; nothing is removed for good.

    It goes only as the regular file that was planned (`size` bytes, `mtime_ns` nanoseconds, `sha256` where it was read)
    and only while nothing names it; a file of `session` stays when that session is back. `kept` is its place beside the
    receipt, `left` why it stayed.
    """

    path: str
    size: int
    mtime_ns: int
    sha256: str = ""
    session: str = ""
    kept: str = ""
    left: str = ""


class SearchWork(msgspec.Struct, frozen=True):
    """What a step does to one full-text index. An index is made from messages, so an undo takes none of it back.

    `remake`: it goes and is made anew in the layout it had; `mend`: only the entries that are missing, or left, come and
    go; `remove`: it goes and is not made. `leftovers` are tables that go, `marks` keys of `state_meta` that go.
    """

    index: str
    work: Literal["remake", "mend", "remove"]
    leftovers: tuple[str, ...] = ()
    marks: tuple[str, ...] = ()


class Step(msgspec.Struct, frozen=True):
    """What mends one finding: statements in order; files put back, or moved away, after COMMIT; work on search indexes."""

    code: str
    slug: str
    key: str
    answer: str
    title: str
    session_ids: tuple[Value, ...]
    statements: tuple[Statement, ...] = ()
    files: tuple[FileCopy, ...] = ()
    bytes_freed: int = 0
    trash: tuple[FileTrash, ...] = ()
    search: tuple[SearchWork, ...] = ()


class Remedy(msgspec.Struct, frozen=True):
    """One possible answer to a finding. An answer without steps (`report`) leaves the rows as they are.

    `refused` says why this answer may not be planned for this finding, whatever was chosen.
    """

    answer: str
    safety: Safety
    step: Step | None = None
    refused: str | None = None


class Accepted(msgspec.Struct, frozen=True):
    """That a baseline accepts a finding, and why; after the day `expires` (UTC) it counts again."""

    reason: str = ""
    expires: datetime.date | None = None


SELECTED = "hermes-dbtools repair --select"
"""How the `next` of a finding begins that a repair sees only where its class is selected."""


class Finding(msgspec.Struct, frozen=True):
    """One instance of a damage class: where, what, and by which facts. Never message content.

    `session_ids` are the sessions whose rows a repair would change: the guard is asked about them.
    """

    code: str
    slug: str
    severity: Severity
    table: str
    key: str
    message: str
    evidence: Mapping[str, object]
    session_ids: tuple[Value, ...] = ()
    kind: str = ""
    remedies: tuple[Remedy, ...] = ()
    next: str = ""
    accepted: Accepted | None = None


Extent = Literal["rows", "session", "apart"]
"""What the deletes of a class are. `rows`: single rows. `session`: all that their table holds of a session, so a later step
that updates its rows there has nothing to do. `apart`: rows of `state_meta` that belong to no session."""


class Result(msgspec.Struct, frozen=True):
    """What one damage class said of one database. `count` and `found` are exact even where `findings` is truncated.

    `found` is the line of a table (counts and bytes only); `noun` names one and several of its findings. `accepted` of them
    are in the baseline; the severity is the highest of the others, if there are any.
    """

    code: str
    slug: str
    family: str
    severity: Severity
    status: Status
    reason: str = ""
    count: int = 0
    truncated: bool = False
    findings: tuple[Finding, ...] = ()
    found: str = ""
    noun: tuple[str, str] = ("finding", "findings")
    answers: tuple[str, ...] = ()
    seconds: float = 0.0
    accepted: int = 0
    extent: Extent = "rows"

    @property
    def counts(self) -> bool:
        """Whether it found something that no baseline accepts."""
        return self.status is Status.DAMAGED and self.count > self.accepted


class Holder(msgspec.Struct, frozen=True):
    """A process, not ours, that has the database or one of its sidecars open."""

    pid: int
    name: str
    deleted_sidecar: bool = False


class ShapeSummary(msgspec.Struct, frozen=True):
    """What a document says of a file's shape."""

    schema_version: int | None
    known: bool
    features: tuple[str, ...]
    search_layout: str


class SearchIndexState(msgspec.Struct, frozen=True):
    """One full-text index of messages as it was found. `gaps` are (first id, last id, rows) of the first missing ranges.

    `expected` and `indexed` are rows, None where they could not be counted; `left` are entries that belong to no row.
    `verdict`: `degraded` where it is not there, `stale` where it lacks rows, `broken` where it cannot be used or written,
    `leftover` for what a migration left; `why` says more. It is the word of the SQLite that looked (`engine`).
    """

    name: str
    present: bool
    layout: str
    columns: tuple[str, ...]
    tokenizer: str
    triggers: tuple[str, ...]
    missing_triggers: tuple[str, ...]
    expected: int | None
    indexed: int | None
    missing: int
    left: int
    gaps: tuple[tuple[int, int, int], ...]
    verdict: Literal["ok", "degraded", "stale", "broken", "leftover"]
    why: str
    engine: str


class LiveSession(msgspec.Struct, frozen=True):
    """A session that nothing may touch, and why. `expires_at` is epoch seconds where the reason has an end."""

    session_id: Value
    reason: str
    holder: str = ""
    expires_at: float | None = None


class DatabaseReport(msgspec.Struct, frozen=True):
    """Everything one scan learned about one file, in the order of the registry.

    `error` is set where the file could not be looked at as a whole; `results` is then empty or file-level only.
    `all_live` says why every session must be taken for live, where who is live could not be read.
    """

    path: str
    size: int
    journal_mode: str
    shape: ShapeSummary | None
    holders: tuple[Holder, ...]
    uninspected_processes: int
    results: tuple[Result, ...]
    live: tuple[LiveSession, ...] = ()
    all_live: str = ""
    error: str = ""
    gate_seconds: float = 0.0
    message_total: int = 0
    search: tuple[SearchIndexState, ...] = ()


class BaselineEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One finding that is known: `database` is its path relative to the baseline's folder. `expires` is the last day (UTC)."""

    database: str
    code: str
    table: str
    key: str
    kind: str = ""
    reason: str = ""
    expires: datetime.date | None = None


class BaselineUse(msgspec.Struct, frozen=True):
    """How a baseline met a scan: entries that count again, and entries whose finding is not there any more."""

    file: str
    expired: tuple[BaselineEntry, ...] = ()
    unused: tuple[BaselineEntry, ...] = ()


class Report(msgspec.Struct, frozen=True):
    """A scan of one or several databases and the exit code it leads to; `host` is a name that the operator gave."""

    databases: tuple[DatabaseReport, ...]
    exit_code: int
    baseline: BaselineUse | None = None
    host: str = ""


class Skipped(msgspec.Struct, frozen=True):
    """A finding that the plan leaves alone, and why."""

    code: str
    slug: str
    key: str
    reason: str


class SkippedActive(msgspec.Struct, frozen=True):
    """A finding left alone because its session is live."""

    code: str
    slug: str
    key: str
    session_id: Value
    reason: str


class Plan(msgspec.Struct, frozen=True):
    """The ordered steps that would mend one database, and all that is left alone.

    `fingerprint` covers the planned findings; `apply` finds them again and refuses when it differs. `idle` are the seconds
    without activity after which an open session counts as never ended, None for the default.
    """

    database: str
    fingerprint: str
    steps: tuple[Step, ...]
    skipped: tuple[Skipped, ...]
    skipped_active: tuple[SkippedActive, ...]
    choices: Mapping[str, str]
    allow_lossy: bool
    max_rows: int
    idle: float | None = None


class Receipt(msgspec.Struct, frozen=True):
    """What one applied plan did. Times are epoch seconds; `lock_seconds` is the time under the write lock.

    `nul_rule` is how texts with a NUL byte were indexed, '' where no row told; `lists_sha256` covers the files beside `undo`.
    """

    id: str
    status: Literal["pending", "committed", "rolled-back", "undone"]
    database: str
    created_at: float
    tool: Mapping[str, str]
    fingerprint: str
    steps: int
    codes: Mapping[str, int]
    changed: Mapping[str, int]
    cascaded: Mapping[str, int]
    undo: str
    undo_sha256: str
    backup: str
    lock_seconds: float = 0.0
    dbhash_before: str = ""
    dbhash_after: str = ""
    files: tuple[FileCopy, ...] = ()
    search_rebuilt: tuple[str, ...] = ()
    nul_rule: Literal["stops", "whole", ""] = ""
    lists_sha256: Mapping[str, str] = {}
    trash: tuple[FileTrash, ...] = ()
    schema: tuple[SchemaChange, ...] = ()


class Deletion(msgspec.Struct, frozen=True):
    """What a delete of sessions did. Each list is in the order asked; ids are whole.

    `deleted` are the asked sessions that are gone, `also_deleted` what went with them; `skipped_active` are live,
    `skipped` may not be deleted for another reason, `missing` have no row. `receipts` take it back, the last one first.
    """

    deleted: tuple[str, ...] = ()
    also_deleted: tuple[str, ...] = ()
    skipped_active: tuple[LiveSession, ...] = ()
    skipped: tuple[Skipped, ...] = ()
    missing: tuple[str, ...] = ()
    receipts: tuple[Receipt, ...] = ()

    @property
    def exit_code(self) -> int:
        """1 where a session was left alone, else 0."""
        return 1 if self.skipped_active or self.skipped else 0


class ToolError(Exception):
    """An expected failure: its text is the one line an operator reads; `exit_code` is what the process returns."""

    exit_code: ClassVar[int] = 4


class UsageError(ToolError):
    """A bad argument, plan file or name."""

    exit_code: ClassVar[int] = 2


class CouldNotLook(ToolError):
    """The file, or one check of it, could not be looked at; says nothing about whether it is damaged."""

    exit_code: ClassVar[int] = 3


class Refused(ToolError):
    """A repair or undo that was not begun."""


class RolledBack(ToolError):
    """A repair or undo that was begun and left no row changed."""


class BecameLive(RolledBack):
    """A session of the plan is live now and was not when the plan was made."""


class StalePlan(RolledBack):
    """The planned findings are no longer what the plan was made for."""


class Active(ToolError):
    """Everything that was asked for belongs to live sessions."""

    exit_code: ClassVar[int] = 1
