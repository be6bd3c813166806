"""Complete a schema of which pages are lost from the shapes that stores are known to have; guesses no row.

The shapes are those of `sql/fixture`. Which one it is follows from the objects that are left, and from the records that lie in
the pages: how many values they have and of which storage classes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace

import apsw

from .. import known, queries
from ..file_sql import run_one
from .asking import rows
from .columns import Types, best_text, columns_of
from .leaves import LEAF, Leaf, children, read_leaf, types_of
from .pages import Pages
from .schema import FoundSchema, SchemaObject
from .tables import form_of_columns

OPTIONAL = ("telegram",)
"""Parts of the store that some homes have and no shape does, by the name of their script."""

SAMPLED_LEAVES = 2_000
"""Leaves looked at to tell the shapes apart."""


@dataclass(frozen=True, slots=True)
class KnownShape:
    """A shape by its name, with its objects; these have no pages."""

    name: str
    objects: tuple[SchemaObject, ...]

    @property
    def tables(self) -> Mapping[str, str]:
        """The texts of its ordinary tables."""
        return {one.name: one.sql for one in self.objects if one.kind == "table" and not _of_search(one)}


def known_shapes() -> tuple[KnownShape, ...]:
    """Every known shape, oldest first."""
    return tuple(_known_shape(name, text) for name, text in sorted(_scripts(), key=_age))


def complete(found: FoundSchema, pages: Pages) -> FoundSchema:
    """The schema with what its lost pages may have held; the same where it is whole and every text makes its object.

    A table that is added without a root page is looked for among the leaves that nobody claims.
    """
    spoiled = {one.name: one for one in _spoiled(found.objects)}
    if found.whole and not spoiled:
        return found
    kept = tuple(one for one in found.objects if one.name not in spoiled)
    shapes = known_shapes()
    strays = list(_sample(pages))
    kinds = _foreign_kinds(kept, strays)
    shape = _nearest(kept, shapes, kinds)
    missing: list[SchemaObject] = []
    uncertain: list[str] = []
    for one in (*_lacking(kept, shape, shapes), *_optional(kept, shapes[0], kinds)):
        old = spoiled.get(one.name)
        texts = list(dict.fromkeys(other.tables[one.name] for other in shapes if one.name in other.tables))
        if texts:
            samples = list(_below(pages, old.root)) if old else strays
            text = best_text(one.name, texts, samples, old.sql if old else "")
            uncertain += [] if text.certain else [one.name]
            missing.append(replace(one, sql=text.sql, root=old.root if old else 0))
        else:
            missing.append(one)
    if not missing:
        return replace(found, objects=kept)
    return FoundSchema((*kept, *missing), "known", shape.name, found.unreadable, tuple(uncertain))


def _lacking(
    kept: Sequence[SchemaObject], shape: KnownShape, shapes: Sequence[KnownShape]
) -> Iterator[SchemaObject]:
    """What the file lacks of a shape. A search index is completed from a shape that has it in the layout of the file."""
    names = {one.name for one in kept}
    layouts = {
        base: next((one for one in (shape, *reversed(shapes)) if _fits(base, kept, one.objects)), None)
        for base in known.SEARCH_TABLES
    }
    for one in shape.objects:
        if one.name not in names and not _base(one):
            yield one
    for base, source in layouts.items():
        # Shadow tables are made by their index: a root page of theirs says nothing here.
        for one in source.objects if source else ():
            if one.name not in names and _base(one) == base and not (one.kind == "table" and not one.virtual):
                yield one


def _optional(
    kept: Sequence[SchemaObject], oldest: KnownShape, strays: Sequence[Types]
) -> Iterator[SchemaObject]:
    """What the file lacks of a part that some homes have, where records of it lie about."""
    names = {one.name for one in kept}
    without = {one.name for one in oldest.objects}
    for name in OPTIONAL:
        script = _script(f"shape_{oldest.name}") + _script(name)
        with_part = _known_shape(name, script).objects
        part = KnownShape(name, tuple(one for one in with_part if one.name not in without))
        if _explained(part, names, strays):
            yield from (one for one in part.objects if one.name not in names)


def _base(one: SchemaObject) -> str:
    """The search index that an object belongs to, or ''."""
    names = sorted(known.SEARCH_TABLES, key=len, reverse=True)
    return next((name for name in names if one.name == name or one.name.startswith(f"{name}_")), "")


def _fits(base: str, kept: Sequence[SchemaObject], objects: Sequence[SchemaObject]) -> bool:
    """Whether what a file has of a search index and what a shape has of it are of one layout."""
    own = [one for one in kept if _base(one) == base and (one.kind != "table" or one.virtual)]
    other = {one.name: one for one in objects if _base(one) == base}
    return all(one.name in other and _external(one) == _external(other[one.name]) for one in own)


def _external(one: SchemaObject) -> bool:
    """Whether an object of a search index is of one that keeps no copy of the text."""
    return bool(re.search(r"\bcontent\s*=|'delete'", one.sql, re.IGNORECASE))


def _spoiled(objects: Sequence[SchemaObject]) -> tuple[SchemaObject, ...]:
    """Tables, views, indexes and triggers whose text makes none; search indexes may only lack their tokenizer here."""
    spoiled = []
    with closing(apsw.Connection(":memory:")) as connection:
        for one in objects:
            if not one.sql or one.virtual or one.name.startswith("sqlite_") or _of_search(one):
                continue
            try:
                run_one(connection, one.sql)
            except apsw.Error:
                spoiled.append(one)
    return tuple(one for one in spoiled if one.kind == "table" or not _about(one, spoiled))


def _about(one: SchemaObject, spoiled: Sequence[SchemaObject]) -> bool:
    """Whether it failed only for the table that it belongs to."""
    return any(other.kind == "table" and other.name == one.table for other in spoiled)


def _nearest(
    kept: Sequence[SchemaObject], shapes: Sequence[KnownShape], strays: Sequence[Types]
) -> KnownShape:
    """The shape that shares the most objects; of several that whose other tables have the most and lack the fewest records
    among those that lie about, then that which adds the fewest objects, then the newest.
    """
    names = {one.name for one in kept}

    def nearness(shape: KnownShape) -> tuple[int, int, int]:
        own = {one.name for one in shape.objects}
        explained = _explained(shape, names, strays)
        without = len(shape.tables.keys() - names) - explained
        return len(names & own) - len(names - own), explained - without, -len(own - names)

    return max(reversed(shapes), key=nearness)


def _explained(shape: KnownShape, names: set[str], strays: Sequence[Types]) -> int:
    """How many tables that the file lacks can each have a kind of record of their own among these, as long as theirs.

    Tables are counted, not records: most rows of a file may be older than its shape, and shorter.
    """
    forms = [
        form_of_columns(name, columns_of(name, sql))
        for name, sql in shape.tables.items()
        if name not in names
    ]
    fitting = [
        [
            place
            for place, types in enumerate(strays)
            if len(types) == len(form.columns) and form.looks_like(types)
        ]
        for form in forms
    ]
    taken: dict[int, int] = {}
    return sum(_takes_one(table, fitting, taken, set()) for table in range(len(fitting)))


def _takes_one(table: int, fitting: Sequence[Sequence[int]], taken: dict[int, int], tried: set[int]) -> bool:
    """Whether a table gets a kind, if need be one of another table that takes another instead (maximum matching)."""
    for kind in fitting[table]:
        if kind not in tried:
            tried.add(kind)
            if kind not in taken or _takes_one(taken[kind], fitting, taken, tried):
                taken[kind] = table
                return True
    return False


def _foreign_kinds(kept: Sequence[SchemaObject], strays: Sequence[Types]) -> list[Types]:
    """One record of each kind that is of none of the tables that the file has."""
    forms = [
        form_of_columns(one.name, columns_of(one.name, one.sql))
        for one in kept
        if one.kind == "table" and one.sql and not one.name.startswith("sqlite_") and not _of_search(one)
    ]
    kinds = {_kind(types): types for types in strays}.values()
    return [types for types in kinds if not any(form.looks_like(types) for form in forms)]


def _kind(types: Types) -> str:
    """The storage classes of a record; whole and other numbers are one, for SQLite keeps 3.0 as 3."""
    return "".join("-" if not one else "n" if one < 12 else "bt"[one % 2] for one in types)


def _sample(pages: Pages) -> Iterator[Types]:
    """The last record of leaves that nobody has claimed: the last was written by the newest release."""
    taken = 0
    for number, page in pages.unclaimed():
        if page[0] == LEAF and number > 1 and taken < SAMPLED_LEAVES:
            taken += 1
            yield from _last(page, read_leaf(pages, number, page))


def _below(pages: Pages, root: int) -> Iterator[Types]:
    """The same of the leaves of a tree whose pages can be found by their numbers."""
    waiting, taken = [root], 0
    while waiting and taken < SAMPLED_LEAVES:
        number = waiting.pop()
        if not pages.exists(number):
            continue
        page = pages.page(number)
        taken += 1
        if page[0] == LEAF:
            yield from _last(page, read_leaf(pages, number, page))
        else:
            waiting += [child for child, _key in (children(pages, number, page) or ())][::-1]


def _last(page: bytes, leaf: Leaf) -> Iterator[Types]:
    types = types_of(page, leaf.cells[-1]) if leaf.cells else None
    if types is not None:
        yield types


def _script(name: str) -> str:
    return (queries.resource("sql") / "fixture" / f"{name}.sql").read_text("utf-8")


def _scripts() -> Iterator[tuple[str, str]]:
    for entry in (queries.resource("sql") / "fixture").iterdir():
        if entry.name.startswith("shape_") and entry.name.endswith(".sql"):
            name = entry.name.removesuffix(".sql")
            yield name.removeprefix("shape_"), _script(name)


def _age(script: tuple[str, str]) -> tuple[int, str]:
    """Numbers come first; the shapes without one are later, and of those each repeats the one before it in its text."""
    name, text = script
    return (int(name), "") if name.isdigit() else (1_000 + len(text), name)


def _known_shape(name: str, script: str) -> KnownShape:
    with closing(apsw.Connection(":memory:")) as connection:
        connection.execute(script)
        made = rows(connection, queries.statement("salvage/schema", "objects"))
    return KnownShape(
        name, tuple(SchemaObject(kind, one, table, 0, sql, added=True) for kind, one, table, sql in made)
    )


def _of_search(one: SchemaObject) -> bool:
    """Whether it is a search index or one of the tables that SQLite keeps it in."""
    return one.virtual or (
        one.kind == "table" and one.name.startswith(tuple(f"{name}_" for name in known.SEARCH_TABLES))
    )
