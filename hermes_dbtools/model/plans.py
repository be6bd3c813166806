"""What is to be done to a file, and what was done; computes nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import msgspec

from .findings import LiveSession
from .steps import FileCopy, FileTrash, Step
from .values import Value


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


class SchemaChange(msgspec.Struct, frozen=True):
    """An index or trigger that a repair made or took away: the text that made it, '' where there was none."""

    type: Literal["index", "trigger"]
    name: str
    table: str
    before: str
    after: str


ReceiptStatus = Literal["pending", "committed", "rolled-back", "undone", "gone"]
"""`gone` is shown and never written: the database that is there now holds nothing of it."""


class Receipt(msgspec.Struct, frozen=True):
    """What one applied plan did. Times are epoch seconds; `lock_seconds` is the time under the write lock.

    `nul_rule` is how texts with a NUL byte were indexed, '' where no row told; `lists_sha256` covers the files beside `undo`.
    """

    id: str
    status: ReceiptStatus
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
