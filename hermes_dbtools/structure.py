"""The structural gate: is every canonical table readable, and what is damaged if not; never reads a row for its content.

`quick_check` is asked table by table, because one bad page makes the whole-file check raise, and because one bad search
page must never read as a damaged database (measured, and in public reports). Lines about values (NULL in a NOT NULL
column and the like) are not structure and stop nothing. Where a table and an index do not fit and no page of either is damaged,
the index tells: one that names a row which the table lacks is right, for a page of the table is another table's.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Literal

import apsw

from . import queries
from .file_sql import run_one
from .queries import quote
from .shape import Shape

_VALUE_LINES = re.compile(r"^(NULL|TEXT|NUMERIC|INTEGER|REAL|BLOB|non-\w+) value |^CHECK constraint failed ")
_SEARCH_LINES = re.compile(r"inverted index for FTS5 table|^fts5: |no such tokenizer")
_TREE = re.compile(r"\bTree (\d+)\b")
SCHEMA = "sqlite_schema"
OF_SQLITE = ("sqlite_sequence",)
"""Tables of SQLite's own whose loss is felt: the highest ids that were ever given."""

_PAGE = re.compile(r"\bpage (\d+)", re.IGNORECASE)
MOST_PAGES = 100
"""Damaged pages that are kept of one object."""

KEY_INDEX = "sqlite_autoindex_"
"""How the names of indexes begin that SQLite makes for the keys of a table."""

FILE = "structure"

_SOME_ROWS = re.compile(r"\)\s*WHERE\b(.*)", re.IGNORECASE | re.DOTALL)
"""An index of some rows only, and the condition that says which."""

_OF_PAGE = re.compile(r"^(?:Multiple uses for byte|Fragmentation of) .* page (\d+)$")
"""Lines about the inside of a page that do not say whose it is."""

_ROW_INDEX = re.compile(r"(?:missing from|in) index (\S+)$")


@dataclass(frozen=True, slots=True)
class StructuralDamage:
    """What `quick_check` said of one object. `lines` is how many lines it gave, `first` the first of them.

    `pages` are the first pages that it named, lowest first.
    """

    table: str
    kind: Literal["table", "index", "schema", "free-list"]
    index: str
    lines: int
    first: str
    pages: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Gate:
    """The outcome of the gate: which objects are damaged, and whether it could be held at all."""

    damages: tuple[StructuralDamage, ...] = ()
    checked: tuple[str, ...] = ()
    seconds: float = 0.0

    @property
    def tables(self) -> frozenset[str]:
        """Tables whose rows cannot be relied on, or not be asked for: the index of a key cannot be left out of a question."""
        return frozenset(d.table for d in self.damages if d.kind != "index" or d.index.startswith(KEY_INDEX))

    @property
    def indexes(self) -> frozenset[str]:
        """Indexes that must not be used for reading, and can be left out."""
        return frozenset(
            d.index for d in self.damages if d.kind == "index" and not d.index.startswith(KEY_INDEX)
        )


STOPPED = ("table", "")
"""Of what a check that stops is damage: the table."""


@dataclass(slots=True)
class _Lines:
    """What was said of each object of one table. State: `of_page` has the object that a line with its tree named a page of."""

    found: dict[tuple[str, str], list[str]] = field(default_factory=dict)
    of_page: dict[int, str] = field(default_factory=dict)

    def add(self, kind: str, index: str, line: str) -> None:
        self.found.setdefault((kind, index), []).append(line)

    def only_unfit(self, index: str) -> bool:
        """Whether no page of an index is damaged: it only does not fit its table."""
        return all(_ROW_INDEX.search(line) for line in self.found["index", index])


def check_structure(
    connection: apsw.Connection,
    shape: Shape,
    on_table: Callable[[str], None] = lambda _table: None,
    *,
    deep: bool = False,
) -> Gate:
    """Ask `quick_check` of each canonical table. A check that raises is damage; what it gave before is kept.

    Asked of the schema it also walks the list of free pages, of which a damaged one costs rows with the next write. `deep`
    asks `integrity_check`: it holds every row against each index.
    """
    damages: list[StructuralDamage] = []
    for table in (*shape.canonical_tables, *(name for name in OF_SQLITE if name in shape.tables), SCHEMA):
        on_table(table)
        lines = _said(connection, shape, table, "integrity_check") if deep else None
        if lines is None or STOPPED in lines.found:  # a page of an index stops it as well as one of the table
            lines = _said(connection, shape, table, "quick_check")
        if table in shape.canonical_tables and ("table", "") not in lines.found:
            for _table, index, why in unopened_indexes(connection, table):
                lines.add("index", index, f"its first page is none of an index: {why}")
            _blame(connection, table, lines)
        damages.extend(
            StructuralDamage(table, kind, index, len(found), found[0], _pages(found))  # type: ignore[arg-type]
            for (kind, index), found in sorted(lines.found.items())
        )
    return Gate(tuple(damages), shape.canonical_tables)


def _said(connection: apsw.Connection, shape: Shape, table: str, check: str) -> _Lines:
    """What a check says of one table; of the table itself, where the check stops."""
    lines = _Lines()
    try:
        for (text,) in connection.execute(f"PRAGMA {check}({quote(table)})"):
            for line in str(text).splitlines():
                _sort_line(connection, shape, table, line, lines)
    except (apsw.CorruptError, apsw.IOError, apsw.NotADBError) as error:
        lines.add(*STOPPED, f"the check stopped: {error}")
    return lines


def _pages(lines: list[str]) -> tuple[int, ...]:
    return tuple(sorted({int(number) for line in lines for number in _PAGE.findall(line)})[:MOST_PAGES])


def classify(line: str) -> Literal["ok", "value", "search", "structure"]:
    """What a line of `quick_check` is about: nothing, a value, a search index, or the structure of the file."""
    if line == "ok":
        return "ok"
    if _VALUE_LINES.match(line):
        return "value"
    return "search" if _SEARCH_LINES.search(line) else "structure"


def _sort_line(connection: apsw.Connection, shape: Shape, table: str, line: str, lines: _Lines) -> None:
    if classify(line) != "structure" or line.startswith("*** in database"):
        return
    kind, index = "free-list" if line.startswith("Freelist:") else "table", ""
    if tree := _TREE.search(line):
        object_kind, name = _object_at(shape, int(tree.group(1)))
        if object_kind == "index":
            kind, index = "index", name
        if page := _PAGE.search(line):
            lines.of_page[int(page.group(1))] = index
    elif (row := _ROW_INDEX.search(line)) and row.group(1) in shape.indexes:
        kind, index = "index", row.group(1)
    elif page := _OF_PAGE.search(line):
        number = int(page.group(1))
        if number not in lines.of_page:
            lines.of_page[number] = _owner(connection, shape, table, number)
        if index := lines.of_page[number]:
            kind = "index"
    lines.add(kind, index, line)


def _object_at(shape: Shape, root_page: int) -> tuple[str, str]:
    return shape.root_pages.get(root_page, ("", ""))


def _owner(connection: apsw.Connection, shape: Shape, table: str, page: int) -> str:
    """The index of a table that a page belongs to, '' where it is none of them or cannot be told."""
    names = [name for name, of_table in shape.indexes.items() if of_table == table]
    bindings = {"names": json.dumps([table, *names]), "page": page}
    try:
        found = connection.execute(queries.statement(FILE, "owner"), bindings).fetchall()
    except apsw.Error:
        return ""
    return next((str(name) for (name,) in found if name in names), "")


def unopened_indexes(connection: apsw.Connection, table: str = "") -> Iterator[tuple[str, str, str]]:
    """The indexes, of one table or of all, that cannot be opened: table, name and why.

    `quick_check` takes a page of a table for one of an index where both have as many entries.
    """
    for name, index, sql in connection.execute(queries.statement(FILE, "indexes"), {"table": table}):
        condition = next((found[1] for found in [_SOME_ROWS.search(str(sql))] if found), "")
        block = queries.statement(FILE, "first-entry-of-some" if condition else "first-entry")
        head, _place, tail = block.partition("{condition}")
        filled = queries.fill(head, table=str(name), index=str(index)) + condition + tail
        try:
            run_one(connection, filled)
        except apsw.CorruptError as error:
            yield str(name), str(index), str(error)
        except apsw.SQLError:
            continue  # of a table that a full-text index is kept in, or a text that no SQLite makes an index of


def _blame(connection: apsw.Connection, table: str, lines: _Lines) -> None:
    """Count a table as damaged where what does not fit must be the table: a page of it is another's.

    Either none of its indexes fits, and they are several; or the one index of its key does not, and the table has rows that
    cannot have that key.
    """
    unfit = {index for (kind, index) in lines.found if kind == "index" and lines.only_unfit(index)}
    full = _full_indexes(connection, table) - {
        index for kind, index in lines.found if kind == "index" and index not in unfit
    }
    if not full or not full <= unfit:
        return
    for index in sorted(full):
        several = len(full) > 1
        if (several or index.startswith(KEY_INDEX)) and _names_lost_row(
            connection, table, index, several=several
        ):
            lines.add("table", "", f"index {index} names rows that table {table} lacks")
            return


def _full_indexes(connection: apsw.Connection, table: str) -> set[str]:
    """The indexes of a table that have an entry for each row."""
    try:
        found = connection.execute(f"PRAGMA index_list({quote(table)})").fetchall()
    except apsw.Error:
        return set()
    return {str(name) for _seq, name, _unique, _origin, partial in found if not partial}


def _names_lost_row(connection: apsw.Connection, table: str, index: str, *, several: bool) -> bool:
    """Whether an index proves a lost row; alone it does so only beside a row of the table that cannot be one."""
    try:
        first = connection.execute(
            queries.statement(FILE, "first-column"), {"index": index, "table": table}
        ).fetchall()
        for column, number in first:
            types = {"types": "integer real" if number else "text"}
            blocks = ("names-lost-row",) if several else ("names-lost-row", "has-odd-row")
            return all(
                connection.execute(
                    queries.fill(
                        queries.statement(FILE, block), table=table, index=index, column=str(column)
                    ),
                    types,
                ).fetchall()
                == [(1,)]
                for block in blocks
            )
    except apsw.Error:
        return False  # a table without rowids, or an index that cannot be read
    return False
