"""Text that is not UTF-8

What it means
-------------
A column of text holds bytes that no reader can decode. The store's own driver raises at the first such value, so one
row ends a list of sessions, an export or a search with an error, and everything behind it is not seen.

Why it happens
--------------
A disk or a copy that changed single bytes, text of another encoding written by another program, a value cut in the
middle of a character. In public reports two stray bytes in billing columns of one row made the list of sessions
answer with error 500.

Repair
------
Each broken sequence becomes one U+FFFD, the sign that readers put there themselves; the rest of the text stays. A
title that would then equal another becomes NULL. The bytes are kept in the undo file.

Safety
------
Lossy: what the broken bytes said is gone from the database, so it is planned only with --allow-lossy. Never written:
keys and names of chats (the other end would be lost), and columns and tables that no known release has. A column that
names another row is left to the classes of references. JSON that does not parse even then is reported by invalid-json
alone. A NUL byte is not damage: content that is a list of parts begins with one.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from ... import known_shapes, utf8
from ...model import Finding, Remedy, Safety, Severity, Statement, Value
from ...sweep import NOT_UTF8
from .._declare import ScanContext, declare, printable, text, whole
from . import _owners
from ._json import broken_values
from ._messages import portions

NAMES_A_ROW = {
    "sessions": ("session_key",),
    "session_admissions": ("admission_id", "request_id", "principal_id"),
    "async_delegations": ("origin_session",),
    "delivery_obligations": ("session_key",),
    "telegram_dm_topic_bindings": ("session_key",),
    "runtime_epoch": ("instance_id",),
}
"""Columns that name a chat or a caller, or must be unique, though no key that the file declares says so."""


@dataclass(slots=True)
class _Row:
    """The broken values of one row: their sizes in bytes by column."""

    table: str
    row: int
    owner: Value = None
    columns: dict[str, int] = field(default_factory=dict)


@dataclass(slots=True)
class _Session:
    """The broken values in the messages of one session: ids by column, and bytes in all."""

    ids: dict[str, list[int]] = field(default_factory=dict)
    bytes: int = 0


def _find(context: ScanContext) -> Iterable[Finding]:
    utf8.register(context.connection)
    ids = context.sweep.run(context).flawed[NOT_UTF8]
    rows = [
        row
        for table in context.shape.canonical_tables
        if table != "messages"
        for row in _broken_rows(context, table)
    ]
    if not ids and not rows:
        return
    elsewhere = broken_values(context)
    for row in rows:
        row.columns = {c: size for c, size in row.columns.items() if (row.table, row.row, c) not in elsewhere}
        yield from _row_findings(context, row)
    sessions: dict[Value, _Session] = {}
    for portion in portions(ids):
        _add_messages(context, portion, sessions, elsewhere)
    for session in sorted(sessions, key=printable):
        yield from _message_findings(context, session, sessions[session])


def _broken_rows(context: ScanContext, table: str) -> list[_Row]:
    columns = _columns(context, table)
    if not columns or context.shape.tables[table].without_rowid:
        return []
    names = {"table": table, "columns": columns}
    suspects = [rowid for (rowid,) in DAMAGE.rows(context, "suspects", names=names)]
    if table == "system_prompts":
        suspects = [row for row in suspects if any(DAMAGE.rows(context, "prompt-used", {"row": row}))]
    found: dict[int, _Row] = {}
    for column in columns if suspects else ():
        parts = {"table": table, "column": column, "owner": _owners.column(context, table)}
        for rowid, session, size in DAMAGE.rows(context, "values", {"rows": json.dumps(suspects)}, parts):
            row = found.setdefault(whole(rowid), _Row(table, whole(rowid)))
            row.owner = _owners.owner(context, table, row.row, session)
            row.columns[column] = whole(size)
    return [found[rowid] for rowid in sorted(found)]


def _columns(context: ScanContext, table: str) -> tuple[str, ...]:
    """The columns of text that this class reports: those that name another row are left to the classes of references."""
    shape = context.shape.tables[table]
    named = {column for key in shape.foreign_keys for column in key.columns}
    named |= set(_owners.REFERENCES.get(table, ()))
    return tuple(column for column in context.shape.text_columns(table) if column not in named)


def _add_messages(
    context: ScanContext,
    portion: str,
    sessions: dict[Value, _Session],
    elsewhere: set[tuple[str, int, str]],
) -> None:
    for column in _columns(context, "messages"):
        names = {"table": "messages", "column": column, "owner": "session_id"}
        for id_, session, size in DAMAGE.rows(context, "values", {"rows": portion}, names):
            if ("messages", whole(id_), column) not in elsewhere:
                group = sessions.setdefault(text(session), _Session())
                group.ids.setdefault(column, []).append(whole(id_))
                group.bytes += whole(size)


def _untouchable(context: ScanContext, table: str, column: str) -> str:
    """Why a column is never written, or ''."""
    shape = context.shape.tables[table]
    if column not in known_shapes.columns().get(table, ()):
        return "no known release has this column"
    if column in shape.primary_key or column in NAMES_A_ROW.get(table, ()):
        return "it is a key or names another row: written anew it would name none"
    return ""


def _row_findings(context: ScanContext, row: _Row) -> Iterator[Finding]:
    place = printable(row.owner) if row.table == "sessions" else f"{row.table}:{row.row}"
    refused = {column: why for column in row.columns if (why := _untouchable(context, row.table, column))}
    if row.table == "state_meta" and any(True for _ in DAMAGE.rows(context, "retired", {"row": row.row})):
        refused = dict.fromkeys(row.columns, "it says what became of a deleted session and is never written")
    free = sorted(row.columns.keys() - refused.keys())
    session_ids = (row.owner,) if row.owner is not None else ()
    evidence = {"row": row.row}
    if free:
        step = DAMAGE.step(
            key=place,
            answer="replace",
            title=f"replace broken bytes in {' and '.join(free)} of row {row.row} of {row.table}",
            statements=tuple(_statement(context, row, column) for column in free),
            session_ids=session_ids,
        )
        sizes = {column: row.columns[column] for column in free}
        yield _finding(
            row.table, place, "value", sizes, evidence, session_ids, Remedy("replace", Safety.LOSSY, step)
        )
    if refused:
        sizes = {column: row.columns[column] for column in sorted(refused)}
        remedy = Remedy("replace", Safety.LOSSY, refused=" and ".join(sorted(set(refused.values()))))
        yield _finding(row.table, f"key:{place}", "key", sizes, evidence, session_ids, remedy)


def _statement(context: ScanContext, row: _Row, column: str) -> Statement:
    names = {"table": row.table, "column": column}
    if (row.table, column) == ("sessions", "title"):
        taken = any(True for _ in DAMAGE.rows(context, "title-taken", {"row": row.row}))
        return Statement(
            "forget" if taken else "replace", {"row": row.row}, 1, row.table, "update", names=names
        )
    return Statement("replace", {"row": row.row}, 1, row.table, "update", names=names)


def _finding(
    table: str,
    key: str,
    kind: str,
    sizes: dict[str, int],
    evidence: dict[str, int],
    session_ids: tuple[Value, ...],
    remedy: Remedy,
) -> Finding:
    return DAMAGE.finding(
        table=table,
        key=key,
        kind=kind,
        message=f"{' and '.join(sizes)}: not UTF-8, {sum(sizes.values()):,} bytes",
        evidence={**evidence, "columns": list(sizes), "values": len(sizes), "bytes": sum(sizes.values())},
        session_ids=session_ids,
        remedies=(remedy, Remedy("report", Safety.EXACT)),
    )


def _message_findings(context: ScanContext, session: Value, group: _Session) -> Iterator[Finding]:
    place = f"messages:{printable(session)}"
    refused = {column: why for column in group.ids if (why := _untouchable(context, "messages", column))}
    for kind, columns in (("value", group.ids.keys() - refused.keys()), ("key", set(refused))):
        if not columns:
            continue
        counts = {column: len(group.ids[column]) for column in sorted(columns)}
        words = ", ".join(f"{count} {column}" for column, count in counts.items())
        ids = [id_ for column in columns for id_ in group.ids[column]]
        remedy = Remedy("replace", Safety.LOSSY, refused=" and ".join(sorted(set(refused.values()))))
        if kind == "value":
            step = DAMAGE.step(
                key=place,
                answer="replace",
                title=f"replace broken bytes in {words} of messages of {printable(session)}",
                statements=tuple(_replace_in_messages(group, column) for column in sorted(columns)),
                session_ids=(session,),
            )
            remedy = Remedy("replace", Safety.LOSSY, step)
        yield DAMAGE.finding(
            table="messages",
            key=place if kind == "value" else f"key:{place}",
            kind=kind,
            message=f"not UTF-8 in {words}: ids {min(ids)} to {max(ids)}"
            if len(ids) > 1
            else f"not UTF-8 in {words}: id {ids[0]}",
            evidence={
                "session": printable(session),
                "columns": counts,
                "values": sum(counts.values()),
                "bytes": group.bytes,
                "first_id": min(ids),
                "last_id": max(ids),
            },
            session_ids=(session,),
            remedies=(remedy, Remedy("report", Safety.EXACT)),
        )


def _replace_in_messages(group: _Session, column: str) -> Statement:
    ids = group.ids[column]
    return Statement(
        "replace-messages",
        {"rows": json.dumps(ids)},
        len(ids),
        "messages",
        "update",
        split="message-rows",
        names={"column": column},
    )


DAMAGE = declare(
    __name__,
    __doc__,
    code="HDB403",
    severity=Severity.ERROR,
    safety=Safety.LOSSY,
    answers=("replace", "report"),
    reads=(
        "sessions",
        "messages",
        *(table for table in known_shapes.columns() if table not in ("sessions", "messages")),
    ),
    noun=("row or session", "rows or sessions"),
    sums=(("values", "values"), ("bytes", "bytes")),
    find=_find,
)
