"""Stream the rows of one table out of two files and give back the pairs that differ; keeps no row.

Both streams are in the order of the key, so one pass over each is enough and memory does not grow with the table. Rows are read
as SQLite hands them out. Only where a text is not UTF-8, which stops that in mid-table, they are read anew with the storage class
of each value beside its bytes: three times as slow, and nothing stops it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import apsw

from .. import queries
from ..model import Value
from ..queries import quote
from ..shape import Shape
from .columns import Pairing

FILE = "compare"

Row = tuple[Value, ...]

_RANKS = {"null": 0, "integer": 1, "real": 1, "text": 2, "blob": 3}
_PLACE = re.compile(r"\{(\w+)\}")
_ROW_IDS = ("rowid", "_rowid_", "oid")


@dataclass(frozen=True, slots=True)
class Layout:
    """How a row is read: `careful` with the storage class before each value."""

    pairing: Pairing
    careful: bool

    def values(self, shape: Shape) -> str:
        """The columns of a SELECT for one of the two files."""
        has = shape.tables[self.pairing.table].columns
        names = [
            f"t.{quote(name)}" if name in has else f":d{place}"
            for place, name in enumerate(self.pairing.columns)
        ]
        if not self.careful:
            return ", ".join(names)
        return ", ".join(
            f"typeof({n}), CASE typeof({n}) WHEN 'text' THEN CAST({n} AS BLOB) ELSE {n} END" for n in names
        )

    def bindings(self, shape: Shape) -> dict[str, Value]:
        """What a file has for the columns of the other one's key that it lacks."""
        has = shape.tables[self.pairing.table].columns
        return {
            f"d{place}": self.pairing.defaults[name]
            for place, name in enumerate(self.pairing.columns)
            if name not in has
        }

    def order(self, row: Row) -> tuple[tuple[int, Value], ...]:
        """The place of a row by its key, as SQLite orders values."""
        if self.careful:
            return tuple(
                (_RANKS[str(row[place])], row[place + 1]) for place in range(0, 2 * self.pairing.keys, 2)
            )
        return tuple((_rank(value), value) for value in row[: self.pairing.keys])

    def value(self, row: Row, column: str) -> Value:
        """A value of a row; bytes where it is text of a file that holds some that is not UTF-8."""
        place = self.pairing.columns.index(column)
        return row[2 * place + 1] if self.careful else row[place]

    def changed(self, before: Row, after: Row) -> list[str]:
        """The columns in which two rows differ."""
        width = 2 if self.careful else 1
        return [
            name
            for place, name in enumerate(self.pairing.columns)
            if before[width * place : width * place + width] != after[width * place : width * place + width]
        ]


@dataclass(slots=True)
class Tally:
    """How many rows were the same, and how many only one file had; it grows while a table is read."""

    same: int = 0
    only_before: int = 0
    only_after: int = 0

    @property
    def before(self) -> int:
        """Rows of the earlier file."""
        return self.same + self.only_before

    @property
    def after(self) -> int:
        """Rows of the later file."""
        return self.same + self.only_after


Differing = Callable[[Layout, Row | None, Row | None], None]
"""Is told of each row that only one file has, and of each pair that is not the same."""


def walk(
    before: tuple[apsw.Connection, Shape],
    after: tuple[apsw.Connection, Shape],
    layout: Layout,
    differing: Differing,
    tally: Tally,
) -> None:
    """Tell all that differs, in the order of the key, and count. Raises UnicodeDecodeError unless the layout is careful."""
    tally.same = tally.only_before = tally.only_after = 0
    with _rows(*before, layout) as left, _rows(*after, layout) as right:
        _merge(left, right, layout, differing, tally)


def _merge(
    left: Iterator[Row], right: Iterator[Row], layout: Layout, differing: Differing, tally: Tally
) -> None:
    one, other = next(left, None), next(right, None)
    while one is not None or other is not None:
        if one == other:
            tally.same += 1
            one, other = next(left, None), next(right, None)
            continue
        place = _compare(one, other, layout)
        differing(layout, one if place <= 0 else None, other if place >= 0 else None)
        if place <= 0:
            tally.only_before += 1
            one = next(left, None)
        if place >= 0:
            tally.only_after += 1
            other = next(right, None)


def _compare(one: Row | None, other: Row | None, layout: Layout) -> int:
    if one is None or other is None:
        return 1 if one is None else -1
    mine, theirs = layout.order(one), layout.order(other)
    if mine == theirs:
        return 0
    return -1 if mine < theirs else 1


@contextmanager
def _rows(connection: apsw.Connection, shape: Shape, layout: Layout) -> Iterator[Iterator[Row]]:
    table = shape.tables[layout.pairing.table]
    keys = layout.pairing.columns[: layout.pairing.keys]
    names = {"table": table.name}
    block = "rows-in-order"
    if layout.pairing.how == "by-id":
        block = "rows-by-id"
        names["key"] = keys[0]
    elif layout.pairing.how == "by-key" and not table.without_rowid:
        block = "rows-as-ordered"
        names["row_id"] = next(name for name in _ROW_IDS if name not in table.columns)
        _run(connection, shape, layout, "put-in-order", keys, **names).fetchall()
    cursor = _run(connection, shape, layout, block, keys, **names)
    try:
        yield cursor
    finally:
        cursor.close(True)  # an open one keeps the order from being dropped
        connection.execute(queries.statement(FILE, "forget-order"))


def _run(
    connection: apsw.Connection, shape: Shape, layout: Layout, block: str, keys: Sequence[str], **names: str
) -> apsw.Cursor:
    """Run a template of ours on one of the files."""
    has = shape.tables[layout.pairing.table].columns
    # Any other collation would order the rows of two files by different rules.
    order = ", ".join(f"t.{quote(key)} COLLATE BINARY" for key in keys if key in has)
    places = {name: quote(value) for name, value in names.items()}
    places |= {"order": order, "values": layout.values(shape)}
    template = queries.statement(FILE, block)
    sql = _PLACE.sub(lambda match: places[match.group(1)], template)
    return connection.execute(sql, layout.bindings(shape) if "{values}" in template else {})


def _rank(value: Value) -> int:
    if value is None:
        return 0
    if isinstance(value, str):
        return 2
    return 3 if isinstance(value, bytes) else 1
