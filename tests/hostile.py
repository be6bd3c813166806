"""Put values of every wrong kind into every column of a store; never makes a row that SQLite would not hold."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import apsw

from hermes_dbtools.queries import quote

NOT_UTF8 = b"\xff\xfe\x00broken\xc3"
DEEP_JSON = "[" * 3000 + "]" * 3000

VALUES: tuple[tuple[str, str, Any], ...] = (
    ("not-utf8", "CAST(? AS TEXT)", NOT_UTF8),
    ("blob", "?", b"\x00\xff\x80"),
    ("empty-blob", "?", b""),
    ("text", "?", "no number, no JSON: {"),
    ("empty", "?", ""),
    ("nul", "?", "before\x00after"),
    ("cut-json", "?", '{"_branched_from": "gone", "_delegate_from": ['),
    (
        "odd-json",
        "?",
        '{"_branched_from": 1e999, "_reset_from": {"a": -1e999}, "session_id": [], "entry": 5}',
    ),
    ("json-list", "?", '[1, null, "x", {"id": {}}, [[]], 1e999]'),
    ("deep-json", "?", DEEP_JSON),
    ("surrogate-json", "?", '{"session_id": "\\ud800", "_branched_from": "\\udfff\\u0000"}'),
    ("smallest", "?", -(2**63)),
    ("infinite", "?", float("inf")),
    ("minus-infinite", "?", float("-inf")),
    ("not-a-number", "?", float("nan")),
    ("real", "?", 0.5),
    ("long-digits", "?", "9" * 400),
    ("nan-text", "?", "nan"),
    ("line-break", "?", "one\ntwo\x1b[31m"),
    ("null", "?", None),
    ("largest", "?", 2**63 - 1),
)
"""Name, place in a statement, and value; the largest comes last, for as a rowid nothing can follow it."""


def damage_every_column(path: Path, *, spare: tuple[str, ...] = ()) -> int:
    """For each table, column and value add a row that has that value there; returns how many rows were added.

    `spare` names columns, as `table.column`, that keep their values. Triggers are out for the time, constraints
    that would refuse a value leave that row out.
    """
    connection = apsw.Connection(str(path))
    try:
        connection.execute("PRAGMA foreign_keys = OFF")
        connection.execute("PRAGMA ignore_check_constraints = ON")
        triggers: list[Any] = connection.execute(
            "SELECT name, sql FROM sqlite_schema WHERE type = 'trigger'"
        ).fetchall()
        before = connection.total_changes()
        with connection:
            for name, _sql in triggers:
                connection.execute(f"DROP TRIGGER {quote(name)}")
            for table in tuple(_tables(connection)):
                _damage_table(connection, table, spare)
            for _name, sql in triggers:
                connection.execute(sql)
        return connection.total_changes() - before
    finally:
        connection.close()


def _tables(connection: apsw.Connection) -> Iterator[str]:
    rows: list[Any] = connection.execute(
        "SELECT name FROM pragma_table_list WHERE schema = 'main' AND type = 'table'"
        " AND name NOT LIKE 'sqlite%' AND name <> 'schema_version' ORDER BY name"
    ).fetchall()
    for (name,) in rows:
        yield name


def _damage_table(connection: apsw.Connection, table: str, spare: tuple[str, ...]) -> None:
    columns: list[Any] = connection.execute(f"PRAGMA table_info({quote(table)})").fetchall()
    base = _base_row(connection, table, columns)
    keys = {column[1] for column in columns if column[5]} | _unique(connection, table)
    names = ", ".join(quote(column[1]) for column in columns)
    # Keys come last: behind the largest rowid no row can be added.
    for column in (row[1] for row in sorted(columns, key=lambda row: row[5] > 0)):
        if f"{table}.{column}" in spare:
            continue
        for word, place, value in VALUES:
            row = dict(base)
            for key in keys:
                if key != column:
                    row[key] = _other_key(base[key], f"{column}-{word}")
            marks = ", ".join(place if name == column else "?" for name in row)
            values = [value if name == column else held for name, held in row.items()]
            with contextlib.suppress(apsw.MismatchError):  # a rowid is an integer and nothing else
                connection.execute(f"INSERT OR IGNORE INTO {quote(table)} ({names}) VALUES ({marks})", values)


def _unique(connection: apsw.Connection, table: str) -> set[str]:
    sql = (
        "SELECT c.name FROM pragma_index_list(?) AS i CROSS JOIN pragma_index_info(i.name) AS c"
        ' WHERE i."unique"'
    )
    return {str(name) for (name,) in connection.execute(sql, (table,)) if name is not None}


def _base_row(connection: apsw.Connection, table: str, columns: list[Any]) -> dict[str, Any]:
    found = connection.execute(f"SELECT * FROM {quote(table)} LIMIT 1").fetchone()
    if found is not None:
        return dict(zip((column[1] for column in columns), found, strict=True))
    return {column[1]: "x" if column[2].upper() in ("TEXT", "") else 1 for column in columns}


def _other_key(value: Any, word: str) -> Any:
    if isinstance(value, str):
        return f"{value}-{word}"
    return None if isinstance(value, int) else value
