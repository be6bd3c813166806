"""Read what a damaged file has from the pages of its schema, and complete it from the known shapes; writes nothing."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from ..model import Value
from .header import Header
from .pages import Pages
from .rows import leaf_rows
from .strays import find, wanted
from .trees import walk

KINDS = ("table", "index", "view", "trigger")


@dataclass(frozen=True, slots=True)
class SchemaObject:
    """One object of the schema with the text that made it; `root` is its first page, 0 where it is not known.

    `added`: the file may never have had it; a known shape has.
    """

    kind: str
    name: str
    table: str
    root: int
    sql: str
    added: bool = False

    @property
    def virtual(self) -> bool:
        """Whether it is a virtual table: in a store, a search index."""
        return self.sql.upper().startswith("CREATE VIRTUAL")


@dataclass(frozen=True, slots=True)
class FoundSchema:
    """The objects of a file in the order in which they were made. `origin` says how they were found.

    `file`: by its schema, whole. `pages`: some pages of the schema are lost, others were found again. `known`: some objects
    are taken from the known `shape`. `unreadable` are the damaged pages of the schema itself; of the
    `uncertain` tables more than one order of columns fits the rows.
    """

    objects: tuple[SchemaObject, ...]
    origin: Literal["file", "pages", "known"]
    shape: str = ""
    unreadable: tuple[int, ...] = ()
    uncertain: tuple[str, ...] = ()

    @property
    def whole(self) -> bool:
        """Whether SQLite can read it too."""
        return self.origin == "file"


def read_schema(pages: Pages, header: Header) -> FoundSchema:
    """The objects that the pages of the schema name, also those pages that no tree leads to any more."""
    tree = walk(pages, 1, lambda types: len(types) == 5)
    numbers = [tree.leaf(place)[0] for place in range(tree.leaf_count)]
    missed = wanted("sqlite_schema", tree, _looks_like)
    if missed is not None:
        numbers += find(pages, (missed,)).pages["sqlite_schema"]
    rows: dict[int, SchemaObject] = {}
    for number in (*numbers, *(page for page, _low, _high in tree.partial)):
        for rowid, values in leaf_rows(pages, number, header.codec, _looks_like, claimed=True):
            found = _object(values)
            if found is not None:
                rows.setdefault(rowid, found)
    objects = _once(found for _rowid, found in sorted(rows.items()))
    return FoundSchema(objects, "file" if tree.whole else "pages", "", tuple(sorted(set(tree.damaged))))


def _looks_like(types: Sequence[int]) -> bool:
    text = all(serial > 12 and serial % 2 for serial in types[:3])
    return len(types) == 5 and text and 0 <= types[3] <= 9 and (types[4] == 0 or types[4] % 2 == 1)


def _object(values: Sequence[Value]) -> SchemaObject | None:
    kind, name, table, root, sql = values
    if kind not in KINDS or not isinstance(name, str) or not isinstance(table, str):
        return None
    if sql is not None and not isinstance(sql, str):
        return None
    return SchemaObject(str(kind), name, table, root if isinstance(root, int) else 0, sql or "")


def _once(objects: Iterable[SchemaObject]) -> tuple[SchemaObject, ...]:
    found: dict[str, SchemaObject] = {}
    for one in objects:
        found.setdefault(one.name.lower(), one)
    return tuple(found.values())
