"""Say what rows of a table can look like, from its columns; reads no row.

What a column may hold follows from the affinity of its declared type (SQLite, Datatypes, section 3.1).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..shape import Column, Table

_REAL = 7
"""The serial type of a number with a fraction."""


@dataclass(frozen=True, slots=True)
class TableForm:
    """The columns of a table in the order in which they are stored.

    `alias` is the place of the INTEGER PRIMARY KEY, which is stored as NULL, or -1. `fewest` values a record has at least:
    columns behind them were added later, or have a default.
    """

    name: str
    columns: tuple[Column, ...]
    alias: int
    fewest: int
    without_rowid: bool = False

    @property
    def key(self) -> str:
        """The column that is the rowid, or the rowid's own name."""
        return self.columns[self.alias].name if self.alias >= 0 else "rowid"

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(column.name for column in self.columns)

    def could_be(self, types: Sequence[int]) -> bool:
        """Whether a record of these serial types can be a row at all, values of any kind."""
        if not self.fewest <= len(types) <= len(self.columns):
            return False
        return self.alias < 0 or types[self.alias] == 0

    def looks_like(self, types: Sequence[int]) -> bool:
        """Whether a record of these serial types is as the store writes rows of this table."""
        if not self.fewest <= len(types) <= len(self.columns):
            return False
        return all(
            serial == 0 if place == self.alias else _suits(column, serial)
            for place, (column, serial) in enumerate(zip(self.columns, types, strict=False))
        )


def form_of(table: Table) -> TableForm:
    """The form of a table that a file has."""
    return form_of_columns(table.name, tuple(table.columns.values()), without_rowid=table.without_rowid)


def form_of_columns(name: str, columns: tuple[Column, ...], *, without_rowid: bool = False) -> TableForm:
    """The form of a table with these columns, in the order in which they are stored."""
    keys = [place for place, column in enumerate(columns) if column.pk]
    alias = -1
    if not without_rowid and len(keys) == 1 and columns[keys[0]].type.upper() == "INTEGER":
        alias = keys[0]
    needed = [
        place + 1
        for place, column in enumerate(columns)
        if (column.not_null and column.default is None) or column.pk
    ]
    return TableForm(name, columns, alias, max(needed, default=1), without_rowid)


def is_text(column: Column) -> bool:
    """Whether SQLite keeps text in this column, by its declared type."""
    declared = column.type.upper()
    return "INT" not in declared and any(word in declared for word in ("CHAR", "CLOB", "TEXT"))


def is_number(column: Column) -> bool:
    """Whether SQLite keeps numbers in this column, by its declared type."""
    declared = column.type.upper()
    return bool(declared) and not is_text(column) and ("INT" in declared or "BLOB" not in declared)


def _suits(column: Column, serial: int) -> bool:
    if serial == 0:
        return (
            not column.not_null and not column.pk
        )  # SQLite would take NULL in a key, the store never gives one
    if is_text(column):
        return serial >= 12
    if "INT" in column.type.upper() and serial == _REAL:
        return False  # SQLite keeps 3.0 as 3 there, and the store writes no fractions
    return serial < 12 if is_number(column) else True
