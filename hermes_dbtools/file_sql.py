"""Run one statement whose text, or a part of it, stands in a file; never runs what follows it.

SQLite makes an object of a schema by the first statement of its text and does not look further. Whoever runs the whole text would
run what a stranger wrote behind it, an ATTACH of any file say.
"""

from __future__ import annotations

import apsw

from .model import Value


def run_one(connection: apsw.Connection, text: str) -> list[tuple[Value, ...]]:
    """Run the first statement of a text; its rows. Raises apsw.SQLError where another follows, and what SQLite raises."""
    cursor = connection.cursor()
    seen: list[str] = []

    def only_first(_cursor: apsw.Cursor, statement: str, _bindings: object) -> bool:
        seen.append(statement)
        return len(seen) == 1

    cursor.exec_trace = only_first
    try:
        return cursor.execute(text).fetchall()
    except apsw.ExecTraceAbort:
        raise apsw.SQLError("a text of the schema holds more than one statement") from None
    finally:
        cursor.close()
