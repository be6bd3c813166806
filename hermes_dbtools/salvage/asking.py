"""Run one statement and give its rows, its one number or how many rows it changed; holds no statement."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import apsw

Bindings = Mapping[str, Any]


def rows(connection: apsw.Connection, sql: str, bindings: Bindings | None = None) -> list[tuple[Any, ...]]:
    """All rows of a statement. Raises apsw errors."""
    return list(connection.execute(sql, bindings))


def number(connection: apsw.Connection, sql: str, bindings: Bindings | None = None) -> int:
    """The one number that a statement asks for, 0 for NULL. Raises apsw errors."""
    ((value,),) = rows(connection, sql, bindings)
    return int(value or 0)


def changed(connection: apsw.Connection, sql: str, bindings: Bindings | None = None) -> int:
    """How many rows a statement changed. Raises apsw errors."""
    before = connection.total_changes()
    connection.execute(sql, bindings)
    return connection.total_changes() - before
