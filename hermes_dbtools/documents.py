"""Reports and receipts as JSON documents, and what every document has in common; computes nothing and opens no database.

TEXT that is not UTF-8 is `{"hex": …}`, a number that JSON has no word for is a string.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from .model import (
    DatabaseReport,
    Finding,
    Receipt,
    Report,
    Result,
    Severity,
    Status,
    Value,
)
from .report_document import ReportDocument

FORMAT_VERSION = 1

INFINITE = ({"real": "inf"}, {"real": "-inf"})
"""Numbers that a column can hold and JSON has no word for; a NaN is NULL to SQLite."""


class DocumentHead(msgspec.Struct, frozen=True):
    """What every document begins with."""

    format: str
    format_version: int


def plain(value: object) -> Any:
    """A value as JSON has it: bytes as `{"hex": …}`, infinite or NaN numbers as strings."""
    if isinstance(value, bytes):
        return {"hex": value.hex()}
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(item) for item in value]
    return value


def packed(value: Value) -> Any:
    """A value of a plan, which must come back as it was: like `plain`, but infinite numbers are `{"real": …}`."""
    if isinstance(value, float) and not math.isfinite(value):
        return {"real": str(value)}
    return plain(value)


def value(document: Any) -> Value:
    """What `packed` was given. Raises ValueError for anything that no column can hold."""
    if isinstance(document, dict) and set(document) == {"hex"}:
        return bytes.fromhex(document["hex"])
    if isinstance(document, dict) and document in INFINITE:
        return float(document["real"])
    if isinstance(document, int) and not -(2**63) <= document < 2**63:
        raise ValueError("not a value: an integer of more than 64 bits")
    if document is None or (isinstance(document, str | int | float) and not isinstance(document, bool)):
        return document
    raise ValueError(f"not a value: {type(document).__name__}")


def encode(document: Any) -> bytes:
    """A document as indented JSON with a final newline."""
    return msgspec.json.format(msgspec.json.encode(document), indent=2) + b"\n"


def report_document(report: Report, tool: Mapping[str, str], *, timings: bool) -> dict[str, Any]:
    """A report as published; `timings` adds seconds, which differ from run to run."""
    results = [result for database in report.databases for result in database.results]
    damaged = [result for result in results if result.counts]
    accepted = sum(result.accepted for result in results)
    return {
        "format": "hermes-dbtools/report",
        "format_version": FORMAT_VERSION,
        "tool": dict(tool),
        "databases": [_database(database, timings=timings) for database in report.databases],
        "summary": {
            "errors": sum(result.severity is Severity.ERROR for result in damaged),
            "warnings": sum(result.severity is Severity.WARNING for result in damaged),
            "notes": sum(result.severity is Severity.NOTE for result in damaged),
            "could_not_look": sum(r.status is Status.COULD_NOT_LOOK for r in results)
            + sum(bool(database.error) for database in report.databases),
            **({"accepted": accepted} if accepted else {}),
        },
        "exit_code": report.exit_code,
        **({"baseline": msgspec.to_builtins(report.baseline)} if report.baseline else {}),
        **({"host": report.host} if report.host else {}),
    }


def typed_report(document: dict[str, Any]) -> ReportDocument:
    """The document of a report as renderers read it."""
    return msgspec.convert(document, type=ReportDocument)


def receipt_document(receipt: Receipt) -> dict[str, Any]:
    """A receipt as stored and printed."""
    fields = msgspec.structs.asdict(receipt)
    fields["files"] = [msgspec.structs.asdict(file) for file in receipt.files]
    fields["trash"] = [msgspec.structs.asdict(file) for file in receipt.trash]
    fields["schema"] = [msgspec.structs.asdict(change) for change in receipt.schema]
    return {"format": "hermes-dbtools/receipt", "format_version": FORMAT_VERSION, **plain(fields)}


def history_document(database: str, found: Iterable[Receipt]) -> dict[str, Any]:
    """The receipts of a database as printed."""
    return {
        "format": "hermes-dbtools/history",
        "format_version": FORMAT_VERSION,
        "database": database,
        "receipts": [receipt_document(receipt) for receipt in found],
    }


def encode_receipt(receipt: Receipt) -> bytes:
    """A receipt document as bytes."""
    return encode(receipt_document(receipt))


def decode_receipt(content: bytes) -> Receipt:
    """A stored receipt. Raises msgspec errors when it is malformed, ValueError when it is of another version."""
    head = msgspec.json.decode(content, type=DocumentHead)
    if (head.format, head.format_version) != ("hermes-dbtools/receipt", FORMAT_VERSION):
        raise ValueError(f"format {head.format} {head.format_version} is not of this version")
    return msgspec.json.decode(content, type=Receipt)


def _database(database: DatabaseReport, *, timings: bool) -> dict[str, Any]:
    document: dict[str, Any] = {
        "path": database.path,
        "size": database.size,
        "journal_mode": database.journal_mode,
        "shape": msgspec.to_builtins(database.shape) if database.shape else None,
        "holders": [{"pid": holder.pid, "name": holder.name} for holder in database.holders],
        "uninspected_processes": database.uninspected_processes,
        "live_sessions": [plain(msgspec.structs.asdict(session)) for session in database.live],
        "error": database.error,
        "results": [_result(result, timings=timings) for result in database.results],
    }
    if database.search:
        document["search_indexes"] = [plain(msgspec.structs.asdict(state)) for state in database.search]
    if timings:
        document["gate_seconds"] = round(database.gate_seconds, 6)
    return document


def _result(result: Result, *, timings: bool) -> dict[str, Any]:
    document: dict[str, Any] = {
        "code": result.code,
        "slug": result.slug,
        "family": result.family,
        "severity": result.severity.word,
        "status": result.status.value,
        "reason": result.reason,
        "count": result.count,
        "found": result.found,
        "truncated": result.truncated,
        "findings": [_finding(finding) for finding in result.findings],
    }
    if result.accepted:
        document["accepted"] = result.accepted
    if timings:
        document["seconds"] = round(result.seconds, 6)
    return document


def _finding(finding: Finding) -> dict[str, Any]:
    return {
        "severity": finding.severity.word,
        "table": finding.table,
        "key": finding.key,
        "kind": finding.kind,
        "message": finding.message,
        "evidence": plain(finding.evidence),
        "repair": " | ".join(remedy.answer for remedy in finding.remedies) or "manual",
        "next": finding.next,
        **({"accepted": msgspec.to_builtins(finding.accepted)} if finding.accepted else {}),
    }
