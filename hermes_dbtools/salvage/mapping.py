"""Map a private copy: which pages hold the rows of which table, and what is known of the ids it gave; writes nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ..shape import Shape
from . import strays
from .carrying import Carried
from .foreign import give_back
from .hints import preferred
from .pages import Pages
from .rows import leaf_rows
from .schema import FoundSchema, SchemaObject
from .source import Source
from .tables import TableForm, form_of
from .trees import HIGHEST, LOWEST, Tree, walk


@dataclass(slots=True)
class MappedTable:
    """One table of the new file, what its rows look like, and where they lie in the copy."""

    form: TableForm
    tree: Tree
    strays: tuple[int, ...] = ()
    carried: Carried = field(default_factory=Carried)


@dataclass(frozen=True, slots=True)
class Store:
    """What was found in the copy: its schema, the shape that it makes, the tables with their pages, the highest ids given."""

    source: Source
    pages: Pages
    schema: FoundSchema
    shape: Shape
    mapped: tuple[MappedTable, ...]
    sequences: Mapping[str, int]
    sequences_whole: bool
    unplaced: tuple[int, ...]

    @property
    def whole(self) -> bool:
        """Whether every tree can be read whole."""
        return self.schema.whole and all(one.tree.whole for one in self.mapped)


def map_store(
    source: Source, pages: Pages, schema: FoundSchema, shape: Shape, made: Sequence[SchemaObject]
) -> Store:
    """Find the pages of every table that was made in the new file."""
    mapped = []
    for one in made:
        form = form_of(shape.tables[one.name])
        tree = Tree(one.root)
        if one.root and not form.without_rowid:
            tree = walk(pages, one.root, form.could_be, form.looks_like)
        if not one.root:
            tree.missing(LOWEST, HIGHEST)
        mapped.append(MappedTable(form, tree))
    sequences, all_known = _sequences(source, pages, schema)
    for table in mapped:
        give_back(pages, table.form, table.tree, schema.objects)
    unplaced = _place_strays(pages, mapped)
    return Store(source, pages, schema, shape, tuple(mapped), sequences, all_known, unplaced)


def _sequences(source: Source, pages: Pages, schema: FoundSchema) -> tuple[dict[str, int], bool]:
    """The highest ids that the file had given away, by table, and whether all of them could be read."""
    found: dict[str, int] = {}
    whole = True
    for one in schema.objects:
        if one.name != "sqlite_sequence" or not one.root:
            continue
        tree = walk(pages, one.root, lambda types: len(types) == 2)
        whole = tree.whole
        numbers = [tree.leaf(place)[0] for place in range(tree.leaf_count)]
        for number in (*numbers, *(page for page, _low, _high in tree.partial)):
            for _rowid, row in leaf_rows(pages, number, source.header.codec, lambda types: len(types) == 2):
                if isinstance(row[0], str) and isinstance(row[1], int):
                    found[row[0]] = row[1]
    return found, whole


def _place_strays(pages: Pages, mapped: Sequence[MappedTable]) -> tuple[int, ...]:
    names = [one.form.name for one in mapped]
    asked = []
    for one in mapped:
        missed = strays.wanted(one.form.name, one.tree, one.form.looks_like, preferred(one.form.name, names))
        if missed is not None:
            asked.append(missed)
    found = strays.find(pages, asked)
    for one in mapped:
        one.strays = found.pages.get(one.form.name, ())
    return found.unplaced
