"""The published JSON Schemas of the documents; opens nothing and builds no document.

Within a `format_version` fields may be added, none is renamed or removed.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from .documents import PlanDocument
from .model import Receipt, ShapeSummary

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


class FindingDocument(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One instance of a damage class. `evidence` holds ids, counts, bytes and times."""

    severity: Severity
    table: str
    key: str
    kind: str
    message: str
    evidence: dict[str, Any]
    repair: str
    next: str


class ResultDocument(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What one class said of one database; `count` is exact where `findings` is truncated."""

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
    gate_seconds: float | None = None


class SummaryDocument(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How many damage classes found something, by severity, and how many could not look."""

    errors: int
    warnings: int
    notes: int
    could_not_look: int


class ReportDocument(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A scan of one or several databases."""

    format: Literal["hermes-dbtools/report"]
    format_version: Literal[1]
    tool: ToolDocument
    databases: list[DatabaseDocument]
    summary: SummaryDocument
    exit_code: int


TYPES: dict[str, type[msgspec.Struct]] = {"report": ReportDocument, "plan": PlanDocument, "receipt": Receipt}
"""The documents by the last word of their `format`."""


def json_schema(name: str) -> dict[str, Any]:
    """The JSON Schema (2020-12) of a document."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"hermes-dbtools/{name}",
        **msgspec.json.schema(TYPES[name]),
    }
