"""Find the values that should be JSON and that no parser reads: what invalid-json reports and invalid-text leaves to it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field

from ... import known
from ...model import Value
from ...sweep import NOT_JSON
from .._declare import ScanContext, text, whole
from . import _owners
from ._messages import portions

FILE = "damage/values/invalid_json"

COLUMNS: dict[str, tuple[str, ...]] = {
    "sessions": ("model_config", "origin_json"),
    "gateway_routing": ("entry_json",),
    "session_admissions": ("lineage_json", "payload_json"),
    "worker_receipts": ("result_json",),
    "async_delegations": ("event_json", "result_json", "task_json"),
    "state_meta": ("value",),
}
"""Columns that hold JSON or NULL, messages apart; of `state_meta` only under the keys that the SQL names."""

NEVER_EMPTY = ("model_config", "entry_json", "lineage_json", "payload_json")
"""Columns in which empty text is an error: their readers parse without asking whether there is anything."""


@dataclass(slots=True)
class Row:
    """The broken values of one row, in bytes by column; `owner` is its session."""

    table: str
    row: int
    owner: Value = None
    columns: dict[str, int] = field(default_factory=dict)


@dataclass(slots=True)
class Session:
    """The broken values in the messages of one session: ids by column, and bytes in all."""

    ids: dict[str, list[int]] = field(default_factory=dict)
    bytes: int = 0


def unreadable(content: bytes) -> bool:
    """Whether the store's reader, Python's, fails at this text, its broken bytes replaced."""
    try:
        json.loads(content.decode(errors="replace"))
    except (ValueError, RecursionError):
        return True
    return False


def broken_values(context: ScanContext) -> set[tuple[str, int, str]]:
    """Table, row and column of every such value."""
    found = {
        (table, row.row, column)
        for table, columns in COLUMNS.items()
        for row in broken_rows(context, table, columns)
        for column in row.columns
    }
    for group in broken_messages(context).values():
        found |= {("messages", id_, column) for column, ids in group.ids.items() for id_ in ids}
    return found


def broken_rows(context: ScanContext, table: str, columns: tuple[str, ...]) -> list[Row]:
    """The rows of one table with such values, in order."""
    found: dict[int, Row] = {}
    block = "state-values" if table == "state_meta" else "suspects"
    for column in columns:
        if not context.has(f"{table}.{column}"):
            continue
        names = {"table": table, "column": column, "owner": _owners.column(context, table)}
        for rowid, session, content in context.rows(FILE, block, names=names):
            if not isinstance(content, bytes) or not (content or column in NEVER_EMPTY):
                continue
            if unreadable(content):
                row = found.setdefault(whole(rowid), Row(table, whole(rowid)))
                row.owner = _owners.owner(context, table, row.row, session)
                row.columns[column] = len(content)
    return [found[rowid] for rowid in sorted(found)]


def broken_messages(context: ScanContext) -> dict[Value, Session]:
    """The sessions whose messages hold such values."""
    ids = context.sweep.run(context).flawed[NOT_JSON]
    found: dict[Value, Session] = {}
    for portion in portions(ids):
        for column, row in _suspects(context, portion):
            message_id, session, content = row
            if isinstance(content, bytes) and (content or column == "content") and unreadable(content):
                group = found.setdefault(text(session), Session())
                group.ids.setdefault(column, []).append(whole(message_id))
                group.bytes += len(content)
    return found


def _suspects(context: ScanContext, portion: str) -> Iterator[tuple[str, tuple[Value, ...]]]:
    for column in known.MESSAGE_JSON:
        if context.has(f"messages.{column}"):
            for row in context.rows(FILE, "message-values", {"ids": portion}, {"column": column}):
                yield column, row
    for row in context.rows(FILE, "message-contents", {"ids": portion}):
        yield "content", row
