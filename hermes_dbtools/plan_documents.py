"""Plans as JSON documents and back; computes nothing and opens no database.

A document shows the SQL of each statement to its reader; on load that SQL must be the registry's own, so a plan from elsewhere
cannot run anything else.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import msgspec

from . import queries
from .damage import PLANNERS
from .damage._declare import Planners
from .documents import FORMAT_VERSION, DocumentHead, packed, value
from .model import (
    FileCopy,
    FileTrash,
    Plan,
    SearchWork,
    Skipped,
    SkippedActive,
    Statement,
    Step,
    UsageError,
)
from .plan import fingerprint


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
