"""Run the steps given on standard input with the standard library's SQLite; never imports apsw.

Started by `tests.shapes.engines` as a process of its own. Input: one JSON object {path, foreign_keys, steps:
[{sql, rows}]}; output: a JSON list, the rows the last step returned. Bytes travel as {"hex": …}.
"""

from __future__ import annotations

import json
import sqlite3
import sys
from typing import Any


def packed(value: Any) -> Any:
    """Return a value JSON can hold."""
    return {"hex": value.hex()} if isinstance(value, bytes) else value


def unpacked(value: Any) -> Any:
    """Return what `packed` was given."""
    return bytes.fromhex(value["hex"]) if isinstance(value, dict) and set(value) == {"hex"} else value


def unpacked_bindings(row: Any) -> Any:
    """Return one set of bindings, by name or by place."""
    if isinstance(row, dict):
        return {name: unpacked(value) for name, value in row.items()}
    return [unpacked(value) for value in row]


def run(connection: sqlite3.Connection, sql: str, rows: list[Any] | None) -> list[list[Any]]:
    """Run a script (`rows` is None), or one statement for each set of bindings in one transaction."""
    if rows is None:
        connection.executescript(sql)
        return []
    if len(rows) == 1:
        return [list(row) for row in connection.execute(sql, unpacked_bindings(rows[0]))]
    connection.execute("BEGIN IMMEDIATE")
    connection.executemany(sql, [unpacked_bindings(row) for row in rows])
    connection.execute("COMMIT")
    return []


def main() -> None:
    """Read the request, run it, answer."""
    request = json.load(sys.stdin)
    connection = sqlite3.connect(request["path"], isolation_level=None)
    connection.text_factory = lambda value: value.decode("utf-8", "surrogateescape")
    connection.execute("PRAGMA synchronous = OFF")
    connection.execute("PRAGMA foreign_keys = ON" if request["foreign_keys"] else "PRAGMA foreign_keys = OFF")
    answer: list[list[Any]] = []
    for step in request["steps"]:
        answer = run(connection, step["sql"], step["rows"])
    connection.close()
    json.dump([[packed(value) for value in row] for row in answer], sys.stdout)


if __name__ == "__main__":
    main()
