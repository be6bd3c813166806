"""Bytes of the values of a store by session and source, and of rows without a session; reads each row once and keeps sums.

These are the bytes of the values themselves. The pages hold more: heads of rows, free room, indexes and search indexes.
"""

from __future__ import annotations

from dataclasses import dataclass

import apsw

from . import queries
from .damage._declare import printable, text, whole
from .model import Value
from .shape import Shape
from .space_model import Orphans, SessionSpace, SourceSpace

FILE = "space"

NO_SESSION = "(no session)"


@dataclass(slots=True)
class _Sum:
    """What one session holds."""

    source: str = NO_SESSION
    messages: int = 0
    bytes: int = 0
    row: bool = False


@dataclass(frozen=True, slots=True)
class RowSpace:
    """Sources, largest first; the largest sessions; how many sessions there are; rows without one."""

    sources: tuple[SourceSpace, ...]
    sessions: tuple[SessionSpace, ...]
    total: int
    orphans: tuple[Orphans, ...]


def row_space(connection: apsw.Connection, shape: Shape, top: int) -> RowSpace:
    """The sums over all rows, with the `top` largest sessions. apsw errors pass through."""
    sums = _sessions(connection, shape)
    for session, size in _rows(connection, shape, "messages", "message-bytes"):
        one = sums.get(session)
        if one is None:
            one = sums[session] = _Sum()
        one.messages += 1
        one.bytes += whole(size)
    largest = sorted(sums.items(), key=lambda item: (-item[1].bytes, printable(item[0])))[:top]
    lost = [one for one in sums.values() if not one.row]
    orphans = [Orphans("messages", sum(one.messages for one in lost), sum(one.bytes for one in lost))]
    return RowSpace(
        _sources(sums),
        tuple(
            SessionSpace(printable(text(key)), one.source, one.messages, one.bytes, one.row)
            for key, one in largest
        ),
        sum(one.row for one in sums.values()),
        tuple(one for one in (*orphans, *_orphans(connection, shape)) if one.rows),
    )


def _sessions(connection: apsw.Connection, shape: Shape) -> dict[Value, _Sum]:
    sums: dict[Value, _Sum] = {}
    for key, source, size in _rows(connection, shape, "sessions", "session-bytes"):
        sums[key] = _Sum(printable(text(source)), 0, whole(size), row=True)
    return sums


def _sources(sums: dict[Value, _Sum]) -> tuple[SourceSpace, ...]:
    found: dict[str, list[int]] = {}
    for one in sums.values():
        source = found.setdefault(one.source, [0, 0, 0])
        source[0] += one.row
        source[1] += one.messages
        source[2] += one.bytes
    ordered = sorted(found.items(), key=lambda item: (-item[1][2], item[0]))
    return tuple(SourceSpace(name, *counts) for name, counts in ordered)


def _orphans(connection: apsw.Connection, shape: Shape) -> list[Orphans]:
    """Tables other than messages that declare a key to sessions; a parent that is gone is no row of a session."""
    found = []
    for name in shape.canonical_tables:
        table = shape.tables[name]
        for key in table.foreign_keys:
            if key.parent != "sessions" or len(key.columns) != 1 or name in ("messages", "sessions"):
                continue
            names = {"table": name, "column": key.columns[0], "columns": tuple(table.columns)}
            sql = queries.fill(queries.statement(FILE, "orphans"), **names)
            ((rows, size),) = connection.execute(sql)
            found.append(Orphans(name, whole(rows), whole(size)))
    return found


def _rows(connection: apsw.Connection, shape: Shape, table: str, block: str) -> apsw.Cursor:
    columns = tuple(shape.tables[table].columns)
    return connection.execute(queries.fill(queries.statement(FILE, block), columns=columns))
