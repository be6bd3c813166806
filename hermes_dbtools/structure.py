"""The structural gate: is every canonical table readable, and what is damaged if not; never reads a row for its content.

`quick_check` is asked table by table, because one bad page makes the whole-file check raise, and because one bad search
page must never read as a damaged database (measured, and in public reports). Lines about values (NULL in a NOT NULL
column and the like) are not structure and stop nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

import apsw

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


@dataclass(slots=True)
class _Lines:
    found: dict[tuple[str, str], list[str]] = field(default_factory=dict)

    def add(self, kind: str, index: str, line: str) -> None:
        self.found.setdefault((kind, index), []).append(line)


def check_structure(
    connection: apsw.Connection, shape: Shape, on_table: Callable[[str], None] = lambda _table: None
) -> Gate:
    """Ask `quick_check` of each canonical table. A check that raises is damage; what it gave before is kept.

    Asked of the schema it also walks the list of free pages, of which a damaged one costs rows with the next write.
    """
    damages: list[StructuralDamage] = []
    for table in (*shape.canonical_tables, *(name for name in OF_SQLITE if name in shape.tables), SCHEMA):
        on_table(table)
        lines = _Lines()
        try:
            for (line,) in connection.execute(f"PRAGMA quick_check({quote(table)})"):
                _sort_line(shape, str(line), lines)
        except (apsw.CorruptError, apsw.IOError, apsw.NotADBError) as error:
            lines.add("table", "", f"the check stopped: {error}")
        damages.extend(
            StructuralDamage(table, kind, index, len(found), found[0], _pages(found))  # type: ignore[arg-type]
            for (kind, index), found in sorted(lines.found.items())
        )
    return Gate(tuple(damages), shape.canonical_tables)


def _pages(lines: list[str]) -> tuple[int, ...]:
    return tuple(sorted({int(number) for line in lines for number in _PAGE.findall(line)})[:MOST_PAGES])


def classify(line: str) -> Literal["ok", "value", "search", "structure"]:
    """What a line of `quick_check` is about: nothing, a value, a search index, or the structure of the file."""
    if line == "ok":
        return "ok"
    if _VALUE_LINES.match(line):
        return "value"
    return "search" if _SEARCH_LINES.search(line) else "structure"


def _sort_line(shape: Shape, text: str, lines: _Lines) -> None:
    for line in text.splitlines():
        if classify(line) != "structure" or line.startswith("*** in database"):
            continue
        kind, index = "free-list" if line.startswith("Freelist:") else "table", ""
        if tree := _TREE.search(line):
            object_kind, name = _object_at(shape, int(tree.group(1)))
            if object_kind == "index":
                kind, index = "index", name
        elif (row := _ROW_INDEX.search(line)) and row.group(1) in shape.indexes:
            kind, index = "index", row.group(1)
        lines.add(kind, index, line)


def _object_at(shape: Shape, root_page: int) -> tuple[str, str]:
    return shape.root_pages.get(root_page, ("", ""))
