"""Complete a schema of which pages are lost from the shapes that stores are known to have; guesses no row.

The shapes are those of `sql/fixture`. Which one it is follows from the objects that are left, and from the records that lie in
the pages: how many values they have and of which storage classes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass

import apsw

from .. import queries
from ..shape import read_shape
from .asking import rows
from .leaves import LEAF, read_leaf
from .pages import Pages
from .records import serial_types, varint
from .schema import FoundSchema, SchemaObject
from .tables import TableForm, form_of

SAMPLED_LEAVES = 2_000
"""Leaves looked at to tell the shapes apart."""

TOLD_BY = ("messages", "sessions")
"""The tables in which shapes differ the most."""


@dataclass(frozen=True, slots=True)
class KnownShape:
    """A shape by its name: its objects, without pages, and what rows of its tables look like."""

    name: str
    objects: tuple[SchemaObject, ...]
    forms: Mapping[str, TableForm]


def known_shapes() -> tuple[KnownShape, ...]:
    """Every known shape, by name."""
    return tuple(_known_shape(name, text) for name, text in sorted(_scripts()))


def complete(found: FoundSchema, pages: Pages) -> FoundSchema:
    """The schema with what its lost pages may have held; the same where it is whole or lacks nothing.

    A table that is added has no root page: its leaves are looked for among those that nobody claims.
    """
    if found.whole:
        return found
    shape = _nearest(found, pages)
    names = {one.name for one in found.objects}
    # Shadow tables are made by their index: a root page of theirs says nothing here.
    missing = [one for one in shape.objects if one.name not in names]
    if not missing:
        return found
    return FoundSchema((*found.objects, *missing), "known", shape.name, found.unreadable)


def _nearest(found: FoundSchema, pages: Pages) -> KnownShape:
    names = {one.name for one in found.objects}
    shapes = known_shapes()
    sample = list(_sample(pages))

    def nearness(shape: KnownShape) -> tuple[int, int, int]:
        own = {one.name for one in shape.objects}
        placed = exact = 0
        for types in sample:
            forms = [shape.forms[table] for table in TOLD_BY if shape.forms[table].looks_like(types)]
            placed += bool(forms)
            exact += any(len(form.columns) == len(types) for form in forms)
        return len(names & own) - len(names - own), placed + exact, -len(own - names)

    return max(shapes, key=nearness)


def _sample(pages: Pages) -> Iterator[list[int]]:
    """The serial types of the last row of leaves that nobody has claimed: the last was written by the newest release."""
    taken = 0
    for number, page in pages.unclaimed():
        if page[0] != LEAF or number == 1 or taken >= SAMPLED_LEAVES:
            continue
        cells = read_leaf(pages, number, page).cells
        if not cells:
            continue
        _rowid, _size, start, local = cells[-1]
        head = page[start : start + local]
        try:
            types = serial_types(head[: max(varint(head, 0)[0], 1)])
        except (ValueError, IndexError):
            continue
        taken += 1
        yield types


def _scripts() -> Iterator[tuple[str, str]]:
    for entry in (queries.resource("sql") / "fixture").iterdir():
        if entry.name.startswith("shape_") and entry.name.endswith(".sql"):
            yield entry.name.removeprefix("shape_").removesuffix(".sql"), entry.read_text("utf-8")


def _known_shape(name: str, script: str) -> KnownShape:
    with closing(apsw.Connection(":memory:")) as connection:
        connection.execute(script)
        made = rows(connection, queries.statement("salvage/schema", "objects"))
        shape = read_shape(connection)
    objects = tuple(SchemaObject(kind, one, table, 0, sql, added=True) for kind, one, table, sql in made)
    forms = {table: form_of(shape.tables[table]) for table in shape.canonical_tables}
    return KnownShape(name, objects, forms)
