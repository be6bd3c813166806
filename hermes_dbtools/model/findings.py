"""What a scan learns of a file; computes nothing."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import Literal

import msgspec

from .steps import Remedy
from .values import Extent, Severity, Status, Value

TO_SALVAGE = "hermes-dbtools salvage"
"""The `next` of a finding that only a salvage gets around: as long as it is there, nothing of its file is planned."""

SELECTED = "hermes-dbtools repair --select"
"""How the `next` of a finding begins that a repair sees only where its class is selected."""


class Accepted(msgspec.Struct, frozen=True):
    """That a baseline accepts a finding, and why; after the day `expires` (UTC) it counts again."""

    reason: str = ""
    expires: datetime.date | None = None


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
