"""Count how many rows of a damaged table can still be read, by reading them; changes nothing and keeps no value.

An index of the table that is whole says which rows there are. They are read by ranges, every column of them, and a range that
fails is halved down to the rows that fail. Without such an index it is only known what can be read from both ends.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from dataclasses import dataclass

import apsw

from . import queries
from .shape import Shape

BLOCKS = "readable"
RANGE = 512
"""Rows that are read at once."""

MOST_QUESTIONS = 20_000
"""Halvings after which what is left of failing ranges counts as unreadable: some seconds of a badly damaged file."""


@dataclass(frozen=True, slots=True)
class Readable:
    """Rows that can be read, and those that cannot; `unreadable` is None where no whole index tells them.

    `index` is what told them. `at_most`: not every failing range was looked at row by row.
    """

    readable: int
    unreadable: int | None
    index: str = ""
    at_most: bool = False

    @property
    def total(self) -> int | None:
        """All rows there should be, None where that is not known."""
        return None if self.unreadable is None else self.readable + self.unreadable


@dataclass(slots=True)
class _Reader:
    connection: apsw.Connection
    one: str
    range: str
    questions: int = 0

    def reads(self, first: int, last: int, expected: int) -> bool:
        """Whether all rows of a range of keys can be read."""
        self.questions += 1
        sql = self.one if first == last else self.range
        try:
            ((found, values),) = self.connection.execute(sql, {"first": first, "last": last})
        except apsw.Error:
            return False
        return bool(found == values == expected)


def readable_rows(
    connection: apsw.Connection, shape: Shape, table: str, damaged: frozenset[str]
) -> Readable | None:
    """Read a table whose tree is damaged; `damaged` are indexes that cannot tell its rows. None where it has no row ids."""
    form = shape.tables[table]
    if form.without_rowid or not form.columns:
        return None
    columns = tuple(form.columns)
    for index in _indexes(connection, table, damaged):
        keys = _keys(connection, table, index)
        if keys is not None:
            one, several = (
                queries.fill(queries.statement(BLOCKS, block), table=table, columns=columns)
                for block in ("one", "range")
            )
            return _counted(_Reader(connection, one, several), keys, index)
    count, whole = _from_end(connection, table, columns, "forwards")
    if not whole:
        count += _from_end(connection, table, columns, "backwards")[0]
    return Readable(count, None)


def _indexes(connection: apsw.Connection, table: str, damaged: frozenset[str]) -> list[str]:
    """The whole indexes of a table that hold an entry for each row, those that SQLite made for keys first."""
    try:
        rows = connection.execute(f"PRAGMA index_list({queries.quote(table)})").fetchall()
    except apsw.Error:
        return []
    return sorted(
        str(name) for _seq, name, _unique, _origin, partial in rows if not partial and name not in damaged
    )


def _keys(connection: apsw.Connection, table: str, index: str) -> array[int] | None:
    sql = queries.fill(queries.statement(BLOCKS, "keys"), table=table, index=index)
    try:
        return array("q", sorted(int(row[0]) for row in connection.execute(sql)))
    except apsw.Error:
        return None


def _counted(reader: _Reader, keys: array[int], index: str) -> Readable:
    unreadable, at_most = 0, False
    for start in range(0, len(keys), RANGE):
        for failing in _failing(reader, keys, start, min(start + RANGE, len(keys))):
            unreadable += failing
            at_most = at_most or failing > 1
    return Readable(len(keys) - unreadable, unreadable, index, at_most)


def _failing(reader: _Reader, keys: array[int], start: int, end: int) -> Iterator[int]:
    """How many rows of a range fail, in parts: each is one row, or more where too much was asked already."""
    if reader.reads(keys[start], keys[end - 1], end - start):
        return
    if end - start == 1 or reader.questions > MOST_QUESTIONS:
        yield end - start
        return
    middle = (start + end) // 2
    yield from _failing(reader, keys, start, middle)
    yield from _failing(reader, keys, middle, end)


def _from_end(
    connection: apsw.Connection, table: str, columns: tuple[str, ...], block: str
) -> tuple[int, bool]:
    """How many rows can be read from one end up to the first that cannot, and whether there was none such."""
    sql = queries.fill(queries.statement(BLOCKS, block), table=table, columns=columns)
    count = 0
    try:
        for _row in connection.execute(sql):
            count += 1
    except apsw.Error:
        return count, False
    return count, True
