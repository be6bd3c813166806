"""Make the statements that remove whole sessions, in upstream's order; runs none of them.

Whatever else names a session (a route, a topic, a goal, a runtime row, a row of an unknown table) says that it is more than
a leftover: `named` finds it, and such a session is never removed here.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from ... import queries
from ...model import Statement, Value
from .._declare import ScanContext, whole

FILE = "lineage/purging"
REMOVED_WITH_IT = frozenset(("messages", "sessions", "session_model_usage", "session_daily_usage"))
"""Tables whose rows go, or are detached, with their session."""


@dataclass(frozen=True, slots=True)
class Weight:
    """What sessions hold: messages, their bytes, the first and the last row id."""

    messages: int
    bytes: int
    first: int
    last: int


def weigh(context: ScanContext, ids: Sequence[str]) -> Weight:
    """How much the sessions hold."""
    ((rows, size, first, last),) = context.rows(FILE, "weight", _bound(ids))
    return Weight(whole(rows), whole(size), whole(first), whole(last))


def named(context: ScanContext, ids: Sequence[str]) -> set[Value]:
    """Those of the sessions that something names which outlives them or forbids their removal."""
    bindings = _bound(ids)
    found = {
        row[0]
        for block in ("routed", "delegating", "kept-in-meta")
        for row in context.rows(FILE, block, bindings)
    }
    template = queries.statement(FILE, "naming")
    for name in context.shape.canonical_tables:
        for key in context.shape.tables[name].foreign_keys:
            if key.parent.lower() == "sessions" and name not in REMOVED_WITH_IT and len(key.columns) == 1:
                sql = queries.fill(template, table=name, column=key.columns[0])
                found |= {row[0] for row in context.connection.execute(sql, bindings)}
    return found


def removal(context: ScanContext, ids: Sequence[str], weight: Weight) -> tuple[Statement, ...]:
    """The statements that remove the sessions; what hangs under them becomes a root, as upstream's delete does it."""
    bindings: dict[str, Value] = _bound(ids)
    statements = []
    if weight.messages:
        ranged = {**bindings, "first": weight.first, "last": weight.last}
        statements.append(
            Statement("purge-messages", ranged, weight.messages, "messages", "delete", split="purge-rows")
        )
    for block, table in (("usage", "session_model_usage"), ("daily", "session_daily_usage")):
        if rows := _count(context, block, bindings):
            statements.append(Statement(f"purge-{block}", bindings, rows, table, "delete"))
    if children := _count(context, "children", bindings):
        statements.append(Statement("detach-children", bindings, children, "sessions", "update"))
    prompts = [row[0] for row in context.rows(FILE, "prompts", bindings)]
    statements.append(Statement("purge-sessions", bindings, len(ids), "sessions", "delete"))
    if prompts:
        hashes: dict[str, Value] = {"hashes": json.dumps(prompts)}
        statements.append(Statement("purge-prompts", hashes, len(prompts), "system_prompts", "delete"))
    return tuple(statements)


def _count(context: ScanContext, block: str, bindings: dict[str, Value]) -> int:
    return sum(whole(row[0]) for row in context.rows(FILE, block, bindings))


def _bound(ids: Sequence[str]) -> dict[str, Value]:
    return {"ids": json.dumps(sorted(ids))}
