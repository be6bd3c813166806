"""Give back leaves that a tree leads to and that are another table's; reads pages of a private copy and writes nothing.

A page that was written to the place of another is whole, and its rowids may fit. It is taken for another table's only when none
of its rows looks as the store writes rows of this table, and an index that was read whole does not name all of them.
"""

from __future__ import annotations

import re
from array import array
from bisect import bisect_left
from collections.abc import Sequence

from .indexes import read_index
from .leaves import Leaf, chain, read_leaf, types_of
from .pages import Pages
from .schema import SchemaObject
from .tables import TableForm
from .trees import Tree

PARTIAL = re.compile(r"\)\s*WHERE\b", re.IGNORECASE)
"""An index that names only some of the rows."""


def give_back(pages: Pages, form: TableForm, tree: Tree, objects: Sequence[SchemaObject]) -> None:
    """Take such leaves out of a tree: nobody has claimed them then, and its own rows may lie anywhere."""
    if not tree.odd:
        return
    named = _named_rows(pages, form, objects)
    if named is None:
        return
    foreign = set()
    for number in tree.odd:
        page = pages.page(number)
        leaf = read_leaf(pages, number, page)
        if not _of_the_table(page, leaf, form, named):
            foreign.add(number)
            _release(pages, page, leaf)
    if foreign:
        tree.leave_out(foreign)


def _named_rows(pages: Pages, form: TableForm, objects: Sequence[SchemaObject]) -> array[int] | None:
    """The rowids that an index names, in order; None where none was read whole."""
    for one in objects:
        if one.kind == "index" and one.table == form.name and one.root and not PARTIAL.search(one.sql):
            found = array("q")
            if read_index(pages, one.root, lambda rowid, _record, found=found: found.append(rowid)):  # type: ignore[misc]
                return array("q", sorted(found))
    return None


def _of_the_table(page: bytes, leaf: Leaf, form: TableForm, named: array[int]) -> bool:
    types = [types_of(page, cell) for cell in leaf.cells]
    return any(one is None or form.looks_like(one) for one in types) or all(
        _is_in(named, cell[0]) for cell in leaf.cells
    )


def _is_in(ordered: array[int], rowid: int) -> bool:
    place = bisect_left(ordered, rowid)
    return place < len(ordered) and ordered[place] == rowid


def _release(pages: Pages, page: bytes, leaf: Leaf) -> None:
    pages.state[leaf.page] = 0
    for cell in leaf.cells:
        for link in chain(pages, page, cell, claimed=True) or () if cell[1] != cell[3] else ():
            pages.state[link] = 0
