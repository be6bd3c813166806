"""A store small enough to be salvaged in a blink and with every kind of page; and what a salvage must keep of one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import apsw

from tests.shapes import make

PAGE = 1024
"""Bytes: small pages, so that a small file has trees of several levels."""

MORE = """
    WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT n.i + 1 FROM n WHERE n.i < 80)
    INSERT INTO {table} SELECT {values} FROM n
"""
VALUES = {
    "state_meta": "'test.key.' || n.i, printf('%0100d', n.i)",
    "gateway_routing": "'', 'agent:test:' || n.i, printf('{\"n\": %0100d}', n.i), 1780000000.5 + n.i",
    "compression_locks": "'session-' || n.i, printf('%0100d', n.i), 1780000000.5, 1780000300.5",
}
DELETED = (200, 260)
"""Ids of messages that were deleted, first and last: their pages are free and still hold them."""


def whole_store(path: Path, shape: str = "22") -> Path:
    """A healthy store of small pages: several levels, overflow chains, and free pages that still hold deleted messages."""
    make.make(path, shape, journal_mode="delete")
    make.fill(path, 4, 6)
    make.fill_many(path, 50, 8, content_bytes=300)
    for table, values in VALUES.items():
        if table in make.columns(path):
            make.execute(path, MORE.format(table=table, values=values))
    make.execute(path, "UPDATE messages SET content = printf('%04000d', id) WHERE id % 25 = 0")
    with closing(apsw.Connection(str(path))) as connection:
        connection.execute(f"PRAGMA page_size={PAGE}").fetchall()
        connection.execute("VACUUM")
    make.execute(path, "DELETE FROM messages WHERE id BETWEEN ? AND ?", DELETED)
    make.execute(
        path,
        "UPDATE sessions SET message_count = (SELECT count(*) FROM messages AS m WHERE m.session_id = sessions.id),"
        " tool_call_count = (SELECT count(*) FROM messages AS m WHERE m.session_id = sessions.id AND m.tool_calls IS NOT NULL)"
        " WHERE id IN (SELECT s.id FROM sessions AS s EXCEPT SELECT m.session_id FROM messages AS m WHERE m.compacted)",
    )
    return path


def tables(path: Path) -> list[str]:
    """The canonical tables of a store: what is not SQLite's and no search index."""
    sql = (
        "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite%'"
        " AND name NOT LIKE 'messages_fts%' ORDER BY name"
    )
    return [name for (name,) in make.execute(path, sql)]


def rows(path: Path, table: str) -> dict[int, tuple[Any, ...]]:
    """The rows of a table by their rowid, text as bytes behind its type, columns in the order of their names."""
    names = sorted(make.columns(path)[table])
    values = ", ".join(f'typeof("{name}"), CAST("{name}" AS BLOB)' for name in names)
    found = make.execute(path, f'SELECT rowid, {values} FROM "{table}" NOT INDEXED ORDER BY rowid')
    return {row[0]: row[1:] for row in found}


def all_rows(path: Path) -> dict[str, dict[int, tuple[Any, ...]]]:
    """The rows of every canonical table."""
    return {table: rows(path, table) for table in tables(path)}


def lacking(
    before: Mapping[str, Mapping[int, tuple[Any, ...]]],
    after: Mapping[str, Mapping[int, tuple[Any, ...]]],
    lost: Mapping[str, Iterable[int]],
) -> dict[str, list[int]]:
    """Rowids by table of rows that are not in `after` as they were, apart from those that may be `lost`."""
    wrong: dict[str, list[int]] = {}
    for table, known in before.items():
        kept = Counter(after.get(table, {}).values())
        gone = [
            rowid for rowid, row in known.items() if rowid not in set(lost.get(table, ())) and not kept[row]
        ]
        if gone:
            wrong[table] = gone
    return wrong


def schema(path: Path) -> dict[str, str]:
    """Every object that a statement made, with its text."""
    sql = "SELECT type || ' ' || name, sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY 1"
    return {str(name): str(text) for name, text in make.execute(path, sql)}
