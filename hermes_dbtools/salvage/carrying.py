"""Carry the rows of each table from the damaged copy into the new file; counts every row and changes no value.

Whole leaves are read by SQLite, a run of neighbours by one statement that must give exactly the rows that the leaves hold. What
does not is undone and decoded by ourselves, leaf by leaf, and so are damaged leaves and those that no tree leads to.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

import apsw

from .. import queries
from .header import Header
from .pages import Pages
from .records import BrokenText
from .rows import Row, leaf_rows
from .tables import TableForm
from .trees import Run, Tree

_OF_THE_COPY = (apsw.CorruptError, apsw.NotADBError, apsw.SQLError, apsw.TooBigError, apsw.NoMemError)
"""The last two say a damaged record of a length that none has."""

_READS = (apsw.SQLITE_IOERR_READ, apsw.SQLITE_IOERR_SHORT_READ)

SQL = "salvage/rows"


@dataclass(slots=True)
class Carried:
    """How many rows of one table came over: through SQLite, from pages that we decoded, and of those from damaged ones.

    `refused` rows could be read and not be stored: they repeat a key, or break a rule of their table.
    """

    by_sqlite: int = 0
    by_pages: int = 0
    from_damaged: int = 0
    refused: int = 0

    @property
    def rows(self) -> int:
        """All rows that are in the new file."""
        return self.by_sqlite + self.by_pages


@dataclass(frozen=True, slots=True)
class Carrier:
    """Where rows come from and go to. `reader` reads the copy, which is attached to `connection` too; None where it cannot."""

    connection: apsw.Connection
    pages: Pages
    header: Header
    reader: apsw.Connection | None

    def carry(self, form: TableForm, tree: Tree, strays: Iterable[int]) -> Carried:
        """Carry every row of a table that can be read."""
        carried = Carried()
        for run in tree.runs():
            if self.reader is not None and self._by_sqlite(form, run):
                carried.by_sqlite += run.rows
            else:
                for place in run.leaves:
                    page, first, last, rows = tree.leaf(place)
                    if (
                        self.reader is not None
                        and len(run.leaves) > 1
                        and self._by_sqlite(form, Run(first, last, rows, run.leaves))
                    ):
                        carried.by_sqlite += rows
                    else:
                        self._by_pages(form, self._rows(form, page, claimed=True), carried)
        for page, low, high in tree.partial:
            before = carried.by_pages
            self._by_pages(form, self._rows(form, page, bounds=(low, high)), carried)
            carried.from_damaged += carried.by_pages - before
        for page in strays:
            self._by_pages(form, self._rows(form, page), carried)
        return carried

    def carry_without_rowid(self, form: TableForm, order: Iterable[str]) -> Carried:
        """Carry the rows of a table without rowids, from both of its ends as far as they can be read."""
        carried = Carried()
        if self.reader is None:
            return carried
        keys = tuple(order)
        for ending in ("", " DESC"):
            sorting = ", ".join(f"{queries.quote(key)}{ending}" for key in keys)
            readable, whole = _readable(self.reader, form, sorting)
            sql = queries.statement(SQL, "carry-ordered").replace("{order}", sorting)
            self.connection.execute(
                queries.fill(sql, table=form.name, columns=form.names), {"rows": readable}
            )
            carried.by_sqlite += self.connection.changes()
            if whole:
                break
        return carried

    def _by_sqlite(self, form: TableForm, run: Run) -> bool:
        columns = (form.key, *_stored(form))
        values = ", ".join(f"d.{queries.quote(name)}" for name in columns)
        sql = queries.statement(SQL, "carry").replace("{values}", values)
        sql = queries.fill(sql, table=form.name, key=form.key, columns=columns)
        # Each statement is a transaction of its own: what SQLite calls damaged inside one makes all that follows refused.
        try:
            self.connection.execute(sql, {"first": run.first, "rows": run.rows})
        except apsw.Error as error:
            if not of_the_copy(error):
                raise
            return False
        if self.connection.changes() == run.rows and self._last(form) == run.last:
            return True
        sql = queries.fill(queries.statement(SQL, "take-back"), table=form.name, key=form.key)
        self.connection.execute(sql, {"first": run.first})
        return False

    def _last(self, form: TableForm) -> object:
        sql = queries.fill(queries.statement(SQL, "last"), table=form.name, key=form.key)
        return self.connection.execute(sql).fetchall()[0][0]

    def _rows(
        self, form: TableForm, page: int, *, bounds: tuple[int, int] | None = None, claimed: bool = False
    ) -> Iterator[Row]:
        if bounds is None:
            return leaf_rows(self.pages, page, self.header.codec, form.could_be, claimed=claimed)
        return leaf_rows(self.pages, page, self.header.codec, form.could_be, bounds=bounds, claimed=claimed)

    def _by_pages(self, form: TableForm, rows: Iterator[Row], carried: Carried) -> None:
        self.connection.execute("BEGIN")
        bound = ((_statement_shape(values), rowid, values) for rowid, values in rows)
        for shape, group in groupby(bound, key=lambda one: one[0]):
            count, broken = shape
            sql = self._put(form, count, broken)
            before = self.connection.total_changes()
            asked = 0
            for _shape, rowid, values in group:
                stored = [value for place, value in enumerate(values) if place != form.alias]
                self.connection.execute(sql, (rowid, *stored))
                asked += 1
            came = self.connection.total_changes() - before
            carried.by_pages += came
            carried.refused += asked - came
        self.connection.execute("COMMIT")

    def _put(self, form: TableForm, count: int, broken: tuple[int, ...]) -> str:
        places = [place for place in range(count) if place != form.alias]
        values = ", ".join(["?", *("CAST(? AS TEXT)" if place in broken else "?" for place in places)])
        sql = queries.statement(SQL, "put").replace("{values}", values)
        names = (form.key, *(form.columns[place].name for place in places))
        return queries.fill(sql, table=form.name, columns=names)


def _readable(reader: apsw.Connection, form: TableForm, sorting: str) -> tuple[int, bool]:
    """How many rows can be read in this order, and whether those are all."""
    types = ", ".join(f"typeof({queries.quote(name)})" for name in form.names)
    sql = queries.statement(SQL, "ordered").replace("{types}", types).replace("{order}", sorting)
    readable = 0
    try:
        for _row in reader.execute(queries.fill(sql, table=form.name)):
            readable += 1
    except apsw.Error:
        return readable, False
    return readable, True


def of_the_copy(error: apsw.Error) -> bool:
    """Whether SQLite says that about damaged pages, and not about the file that is written."""
    return isinstance(error, _OF_THE_COPY) or getattr(error, "extendedresult", 0) in _READS


def _stored(form: TableForm) -> tuple[str, ...]:
    return tuple(name for place, name in enumerate(form.names) if place != form.alias)


def _statement_shape(values: Sequence[object]) -> tuple[int, tuple[int, ...]]:
    return len(values), tuple(place for place, value in enumerate(values) if isinstance(value, BrokenText))
