"""A column that holds JSON holds something that no parser reads

What it means
-------------
The readers of the store parse these values. One that does not parse stops more than its own row: a broken
`model_config` ends every list of sessions with an error, a broken route loses its chat, a broken list of tool
calls is dropped from what the model sees, and content behind the mark of a list of parts is shown raw.

Why it happens
--------------
A write that was cut short, a restore or a merge that put pieces of one value into several columns, a script
that edited the text. In public reports two such rows ended `sessions list` although every check of the file
said ok, and the arguments of a call were left unfinished by a compression.

Repair
------
The value becomes NULL, or an empty object or list where the column must not be NULL. The old value is kept in
the undo file and nowhere else. Where tool calls go, the session counts them anew; their results, and a message that
is left without content, are then notes of orphaned-tool-results and sentinel-messages.

Safety
------
Lossy: what the value said is gone from the database, so it is planned only with --allow-lossy. Not reported:
JSON that only SQLite refuses and the store itself writes (NaN), lists that were encoded twice, empty text where
the store takes it for nothing, and text that parses once its broken bytes are replaced (invalid-text). Keys of
deleted sessions, which a repair never touches, belong to idempotency-leftovers.
"""

from __future__ import annotations

import json
from collections.abc import Iterable

from ...model import Finding, Remedy, Safety, Severity, Statement, Value
from ...sweep import CallCounts
from .._declare import ScanContext, declare, printable
from ._json import COLUMNS, Row, Session, broken_messages, broken_rows

LISTS = ("lineage_json",)
"""Columns whose empty value is a list."""


def _find(context: ScanContext) -> Iterable[Finding]:
    for table, columns in COLUMNS.items():
        for row in broken_rows(context, table, columns):
            yield _row_finding(context, row)
    sessions = broken_messages(context)
    for session in sorted(sessions, key=printable):
        yield _message_finding(context, session, sessions[session])


def _row_finding(context: ScanContext, row: Row) -> Finding:
    key = printable(row.owner) if row.table == "sessions" else f"{row.table}:{row.row}"
    columns = sorted(row.columns)
    session_ids = (row.owner,) if row.owner is not None else ()
    statements = tuple(
        Statement(
            "clear",
            {"row": row.row, "value": _empty(context, row.table, column)},
            1,
            row.table,
            "update",
            names={"table": row.table, "column": column},
        )
        for column in columns
    )
    step = DAMAGE.step(
        key=key,
        answer="clear",
        title=f"clear {' and '.join(columns)} of {_place(row)}",
        statements=statements,
        session_ids=session_ids,
    )
    return DAMAGE.finding(
        table=row.table,
        key=key,
        message=f"{' and '.join(columns)}: no JSON, {sum(row.columns.values()):,} bytes",
        evidence={
            "row": row.row,
            "columns": columns,
            "bytes": sum(row.columns.values()),
            "values": len(columns),
        },
        session_ids=session_ids,
        remedies=(Remedy("clear", Safety.LOSSY, step), Remedy("report", Safety.EXACT)),
    )


def _place(row: Row) -> str:
    return printable(row.owner) if row.table == "sessions" else f"row {row.row} of {row.table}"


def _empty(context: ScanContext, table: str, column: str) -> Value:
    if not context.shape.tables[table].columns[column].not_null:
        return None
    return "[]" if column in LISTS else "{}"


def _message_finding(context: ScanContext, session: Value, group: Session) -> Finding:
    key = f"messages:{printable(session)}"
    columns = {column: len(ids) for column, ids in sorted(group.ids.items())}
    statements = [
        Statement(
            "clear-contents" if column == "content" else "clear-messages",
            {"ids": json.dumps(group.ids[column]), "value": _empty(context, "messages", column)},
            count,
            "messages",
            "update",
            split="message-rows",
            names={"column": column},
        )
        for column, count in columns.items()
    ]
    if "tool_calls" in columns:
        statements += _recount(context, session)
    words = ", ".join(f"{count} {column}" for column, count in columns.items())
    step = DAMAGE.step(
        key=key,
        answer="clear",
        title=f"clear {words} in messages of {printable(session)}",
        statements=tuple(statements),
        session_ids=(session,),
    )
    ids = [id_ for column in group.ids.values() for id_ in column]
    return DAMAGE.finding(
        table="messages",
        key=key,
        message=f"no JSON in {words}: {group.bytes:,} bytes",
        evidence={
            "session": printable(session),
            "columns": columns,
            "values": sum(columns.values()),
            "first_id": min(ids),
            "last_id": max(ids),
            "bytes": group.bytes,
        },
        session_ids=(session,),
        remedies=(Remedy("clear", Safety.LOSSY, step), Remedy("report", Safety.EXACT)),
    )


def _recount(context: ScanContext, session: Value) -> list[Statement]:
    """What makes the session count the calls that can be read, as session-counter-drift counts them."""
    counts = context.sweep.calls.get(session.encode() if isinstance(session, str) else session, CallCounts())
    for stored, has_active in DAMAGE.rows(context, "counter", {"session_id": session}):
        right = counts.active if has_active else counts.total
        if stored != right:
            return [Statement("recount", {"session_id": session, "count": right}, 1, "sessions", "update")]
    return []


DAMAGE = declare(
    __name__,
    __doc__,
    code="HDB401",
    severity=Severity.ERROR,
    safety=Safety.LOSSY,
    answers=("clear", "report"),
    reads=("sessions", "messages", *(table for table in COLUMNS if table != "sessions")),
    noun=("row or session", "rows or sessions"),
    sums=(("values", "values"), ("bytes", "bytes")),
    find=_find,
)
