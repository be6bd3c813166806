"""The parts of a report as published, typed: what renderers read; holds no behaviour and knows no damage class.

Within a `format_version` fields may be added, none is renamed or removed. A field with a default is left out where it has it.
"""

from __future__ import annotations

import datetime
from typing import Any, Literal

import msgspec

from .model import BaselineEntry, SearchIndexState, ShapeSummary

Severity = Literal["error", "warning", "note"]


class ToolDocument(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which versions made a report."""

    version: str
    sqlite: str
    apsw: str


class HolderDocument(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A process that has the file open."""

    pid: int
    name: str


class LiveSessionDocument(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A session that every repair leaves alone; `expires_at` is epoch seconds."""

    session_id: str | dict[str, Any]
    reason: str
    holder: str
    expires_at: float | None


class AcceptedDocument(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Why a finding does not count: what its baseline says. After the day `expires` (UTC) it counts again."""

    reason: str
    expires: datetime.date | None


class FindingDocument(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One instance of a damage class. `evidence` holds ids, counts, bytes and times."""

    severity: Severity
    table: str
    key: str
    kind: str
    message: str
    evidence: dict[str, Any]
    repair: str
    next: str
    accepted: AcceptedDocument | None = None


class ResultDocument(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What one class said of one database; `count` is exact where `findings` is truncated.

    Of the findings counted, `accepted` are in the baseline; the severity is the highest of the others, if there are any.
    """

    code: str
    slug: str
    family: str
    severity: Severity
    status: Literal["clean", "damaged", "could-not-look", "not-applicable", "skipped"]
    reason: str
    count: int
    found: str
    truncated: bool
    findings: list[FindingDocument]
    seconds: float | None = None
    accepted: int = 0

    @property
    def counts(self) -> bool:
        """Whether it found something that no baseline accepts."""
        return self.status == "damaged" and self.count > self.accepted


class DatabaseDocument(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One database; `error` says why nothing of it could be looked at. Sizes are bytes."""

    path: str
    size: int
    journal_mode: str
    shape: ShapeSummary | None
    holders: list[HolderDocument]
    uninspected_processes: int
    live_sessions: list[LiveSessionDocument]
    error: str
    results: list[ResultDocument]
    search_indexes: list[SearchIndexState] = []
    gate_seconds: float | None = None


class SummaryDocument(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """How many damage classes found something, by severity, and how many could not look; how many findings are accepted."""

    errors: int
    warnings: int
    notes: int
    could_not_look: int
    accepted: int = 0


class BaselineUseDocument(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The baseline a report was made against: entries that count again, and entries whose finding is not there any more."""

    file: str
    expired: list[BaselineEntry]
    unused: list[BaselineEntry]


class ReportDocument(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A scan of one or several databases; `host` is what `scan --host` was told."""

    format: Literal["hermes-dbtools/report"]
    format_version: Literal[1]
    tool: ToolDocument
    databases: list[DatabaseDocument]
    summary: SummaryDocument
    exit_code: int
    baseline: BaselineUseDocument | None = None
    host: str = ""
