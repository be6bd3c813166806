"""Plans, receipts and reports as JSON documents and back; computes nothing and opens no database.

TEXT that is not UTF-8 is `{"hex": …}`, a number that JSON has no word for is a string. A plan document shows the SQL of each
statement to its reader; on load that SQL must be the registry's own, so a plan from elsewhere cannot run anything else.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any, Literal

import msgspec

from . import queries
from .damage import PLANNERS
from .damage._declare import Planners
from .model import (
    DatabaseReport,
    FileCopy,
    FileTrash,
    Finding,
    Plan,
    Receipt,
    Report,
    Result,
    SearchWork,
    Severity,
    Skipped,
    SkippedActive,
    Statement,
    Status,
    Step,
    UsageError,
    Value,
)
from .plan import fingerprint
from .report_document import ReportDocument

FORMAT_VERSION = 1

INFINITE = ({"real": "inf"}, {"real": "-inf"})
"""Numbers that a column can hold and JSON has no word for; a NaN is NULL to SQLite."""


class DocumentHead(msgspec.Struct, frozen=True):
    """What every document begins with."""

    format: str
    format_version: int


class StepDocument(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One statement or file of a plan; entries with the same `step` number belong together."""

    step: int
    code: str
    slug: str
    key: str
    answer: str
    title: str
    session_ids: list[Any]
    sql: str = ""
    block: str = ""
    bindings: dict[str, Any] = {}
    expect: int = 0
    table: str = ""
    operation: str = ""
    split: str | None = None
    names: dict[str, str] = {}
    file: FileCopy | None = None
    bytes_freed: int = 0
    trash: list[FileTrash] = []
    search: list[SearchWork] = []


class PlanDocument(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A plan as it is saved."""

    format: Literal["hermes-dbtools/plan"]
    format_version: Literal[1]
    database: str
    fingerprint: str
    steps: list[StepDocument]
    skipped: list[Skipped]
    skipped_active: list[dict[str, Any]]
    totals: dict[str, int]
    choices: dict[str, str] = {}
    allow_lossy: bool = False
    max_rows: int = 0
    idle: float | None = None


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


def plan_document(plan: Plan, totals: Mapping[str, int], planners: Planners = PLANNERS) -> dict[str, Any]:
    """A plan as saved and printed."""
    return {
        "format": "hermes-dbtools/plan",
        "format_version": FORMAT_VERSION,
        "database": plan.database,
        "fingerprint": plan.fingerprint,
        "steps": [
            entry for number, step in enumerate(plan.steps, 1) for entry in _step(number, step, planners)
        ],
        "skipped": [msgspec.structs.asdict(skipped) for skipped in plan.skipped],
        "skipped_active": [
            msgspec.structs.asdict(skipped) | {"session_id": packed(skipped.session_id)}
            for skipped in plan.skipped_active
        ],
        "totals": dict(totals),
        "choices": dict(plan.choices),
        "allow_lossy": plan.allow_lossy,
        "max_rows": plan.max_rows,
        **({} if plan.idle is None else {"idle": plan.idle}),
    }


def decode_plan(content: bytes, where: str, *, applied: bool = False) -> Plan:
    """A saved plan. Raises UsageError when it is malformed, of another format, or holds SQL that is not the registry's.

    The SQL of an `applied` plan is history: it may be that of another release and is never run.
    """
    try:
        head = msgspec.json.decode(content, type=DocumentHead)
        if (head.format, head.format_version) != ("hermes-dbtools/plan", FORMAT_VERSION):
            raise UsageError(f"{where}: not a plan of this version: {head.format} {head.format_version}")
        document = msgspec.json.decode(content, type=PlanDocument)
        steps = _steps(document.steps, where, applied=applied)
        if fingerprint(steps) != document.fingerprint:
            raise UsageError(f"{where}: was edited after it was made; make the plan anew")
        return Plan(
            document.database,
            document.fingerprint,
            steps,
            tuple(document.skipped),
            tuple(_skipped_active(item) for item in document.skipped_active),
            document.choices,
            document.allow_lossy,
            document.max_rows,
            document.idle,
        )
    except (msgspec.MsgspecError, ValueError, KeyError, TypeError, OverflowError, RecursionError) as error:
        raise UsageError(f"{where}: not a plan: {error}") from None


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


def _step(number: int, step: Step, planners: Planners) -> list[dict[str, Any]]:
    head = {
        "step": number,
        "code": step.code,
        "slug": step.slug,
        "key": step.key,
        "answer": step.answer,
        "title": step.title,
        "session_ids": [packed(session) for session in step.session_ids],
    }
    entries = [
        {
            **head,
            "sql": _sql(planners[step.code].sql, statement.block, statement.names)[0],
            "block": statement.block,
            "bindings": {name: packed(bound) for name, bound in statement.bindings.items()},
            "expect": statement.expect,
            "table": statement.table,
            "operation": statement.operation,
            "split": statement.split,
            **({"names": dict(statement.names)} if statement.names else {}),
        }
        for statement in step.statements
    ]
    entries += [{**head, "file": msgspec.structs.asdict(file)} for file in step.files]
    entries = entries or [head]
    entries[0]["bytes_freed"] = step.bytes_freed
    if step.trash:
        entries[0]["trash"] = [msgspec.structs.asdict(file) for file in step.trash]
    if step.search:
        entries[0]["search"] = [msgspec.to_builtins(work) for work in step.search]
    return entries


def _sql(path: str, block: str, names: Mapping[str, str]) -> list[str]:
    found = [queries.fill(query.sql, **names) for query in queries.load(path) if query.name == block]
    if not found:
        raise ValueError(f"{path}.sql has no statement {block!r} in this release")
    return found


def _steps(entries: list[StepDocument], where: str, *, applied: bool) -> tuple[Step, ...]:
    steps: dict[int, Step] = {}
    known = {code: planner.slug for code, planner in PLANNERS.items()}
    for entry in entries:
        if not applied and known.get(entry.code) != entry.slug:
            raise UsageError(
                f"{where}: step {entry.step}: no damage class {entry.code} {entry.slug} in this release"
            )
        if (
            not applied
            and entry.block
            and entry.sql not in _sql(PLANNERS[entry.code].sql, entry.block, entry.names)
        ):
            raise UsageError(
                f"{where}: step {entry.step}: its SQL is not that of {entry.code} in this release; make the plan anew"
            )
        statement, file = _statement(entry), entry.file
        before = steps.get(entry.step)
        if before is None:
            before = Step(
                entry.code, entry.slug, entry.key, entry.answer, entry.title,
                tuple(value(item) for item in entry.session_ids), (), (), entry.bytes_freed,
            )  # fmt: skip
        steps[entry.step] = msgspec.structs.replace(
            before,
            statements=(*before.statements, statement) if statement else before.statements,
            files=(*before.files, file) if file else before.files,
            trash=(*before.trash, *entry.trash),
            search=(*before.search, *entry.search),
        )
    return tuple(steps.values())


def _statement(entry: StepDocument) -> Statement | None:
    if not entry.block:
        return None
    if entry.operation not in ("insert", "update", "delete", "create", "drop"):
        raise ValueError(f"step {entry.step}: unknown operation {entry.operation!r}")
    bindings = {name: value(item) for name, item in entry.bindings.items()}
    return Statement(
        entry.block,
        bindings,
        entry.expect,
        entry.table,
        entry.operation,  # type: ignore[arg-type]
        entry.split,
        entry.names,
    )


def _skipped_active(item: dict[str, Any]) -> SkippedActive:
    return SkippedActive(item["code"], item["slug"], item["key"], value(item["session_id"]), item["reason"])
