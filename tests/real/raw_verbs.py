"""Read, damage and check a store's file beside the store, on stdlib connections, never on the store's."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import Any

from tests.real.released import Released

Bindings = Sequence[Any] | dict[str, Any]


def sql(
    store: Released,
    statement: str,
    bindings: Bindings = (),
    foreign_keys: bool = True,
    connection: str | None = None,
) -> dict[str, Any]:
    """Run one statement; returns its rows and the number of rows it changed.

    With `connection` the connection is kept under that name, with its transaction and locks, until sql_close.
    """
    if connection is None:
        opened = store.raw(foreign_keys)
        try:
            return _run(opened, statement, bindings)
        finally:
            opened.close()
    if connection not in store.held:
        store.held[connection] = store.raw(foreign_keys)
    return _run(store.held[connection], statement, bindings)


def sql_many(
    store: Released,
    statements: list[tuple[str, Bindings]],
    foreign_keys: bool = True,
    pragmas: Sequence[str] = (),
) -> list[dict[str, Any]]:
    """Run statements in one transaction, after `pragmas` (such as writable_schema = ON) outside it."""
    opened = store.raw(foreign_keys)
    try:
        for pragma in pragmas:
            opened.execute(f"PRAGMA {pragma}").fetchall()
        opened.execute("BEGIN IMMEDIATE")
        results = [_run(opened, statement, bindings) for statement, bindings in statements]
        opened.execute("COMMIT")
    finally:
        opened.close()
    return results


def sql_close(store: Released, connection: str) -> None:
    """Close a kept connection; what it did not commit is rolled back."""
    store.held.pop(connection).close()


def journal_mode(store: Released) -> Any:
    """The journal mode of the file."""
    return sql(store, "PRAGMA journal_mode")["rows"][0]["journal_mode"]


def integrity(store: Released) -> dict[str, Any]:
    """What the store's engine says: integrity_check, foreign_key_check, and each search index by content."""
    opened = store.raw()
    try:
        rows = [row[0] for row in opened.execute("PRAGMA integrity_check")]
        keys = [list(row) for row in opened.execute("PRAGMA foreign_key_check")]
        indexes = [row[0] for row in opened.execute(_INDEXES)]
        return {
            "integrity_check": rows,
            "foreign_key_check": keys,
            "search": {index: _search(opened, index) for index in indexes},
        }
    finally:
        opened.close()


_INDEXES = """
SELECT name
FROM sqlite_master
WHERE type = 'table' AND sql LIKE 'CREATE VIRTUAL TABLE%USING fts5%'
ORDER BY name
"""


def _search(opened: sqlite3.Connection, index: str) -> str:
    """Ask one index to compare itself with the rows it was made from; rank 1 reads external content too."""
    opened.execute("BEGIN IMMEDIATE")
    try:
        opened.execute(f'INSERT INTO "{index}" ("{index}", rank) VALUES (\'integrity-check\', 1)')
    except sqlite3.DatabaseError as problem:
        return f"{type(problem).__name__}: {problem}"
    finally:
        opened.execute("ROLLBACK")
    return "ok"


def _run(opened: sqlite3.Connection, statement: str, bindings: Bindings) -> dict[str, Any]:
    cursor = opened.execute(statement, _bound(bindings))
    names = [column[0] for column in cursor.description or ()]
    rows = [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]
    return {"rows": rows, "changed": cursor.rowcount, "last_id": cursor.lastrowid}


def _bound(bindings: Bindings) -> Any:
    """Return bindings with every {"hex": …} as bytes: JSON has no way to write them."""
    if isinstance(bindings, dict):
        return {name: _value(value) for name, value in bindings.items()}
    return [_value(value) for value in bindings]


def _value(value: Any) -> Any:
    return bytes.fromhex(value["hex"]) if isinstance(value, dict) else value
