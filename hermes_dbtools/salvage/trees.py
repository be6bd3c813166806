"""Walk a table b-tree page by page and map which of it can be read; claims the pages it finds, writes nothing."""

from __future__ import annotations

from array import array
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from itertools import pairwise

from .leaves import INTERIOR, LEAF, Leaf, Looks, chain, children, page_type, read_leaf, types_of
from .pages import Pages

LOWEST, HIGHEST = -(2**63), 2**63 - 1

DEEPEST = 40
"""Levels of a b-tree of 2 billion pages with the fewest children each: 31. More is a loop."""

_FIELDS = 4


@dataclass(frozen=True, slots=True)
class Run:
    """Neighbouring leaves that are whole: the first and last rowid, how many rows, and which leaves of the tree."""

    first: int
    last: int
    rows: int
    leaves: range


@dataclass(slots=True)
class Tree:
    """What is known of one tree. Leaves are kept as four numbers each: page, first rowid, last rowid, rows.

    `gaps` are the rowids (above, up to) of subtrees that cannot be reached; `damaged` the pages at fault. `partial` are leaves
    of which not every row can be read, with the rowids (above, up to) that belong there. `breaks` are the places in the
    sequence of whole leaves where something is missing before the next. `odd` are whole leaves whose first and last row do not
    look as the store writes them.
    """

    root: int
    numbers: array[int] = field(default_factory=lambda: array("q"))
    breaks: list[int] = field(default_factory=list)
    partial: list[tuple[int, int, int]] = field(default_factory=list)
    gaps: list[tuple[int, int]] = field(default_factory=list)
    damaged: list[int] = field(default_factory=list)
    odd: list[int] = field(default_factory=list)

    @property
    def whole(self) -> bool:
        """Whether every row of the tree can be read."""
        return not self.gaps and not self.partial

    @property
    def leaf_count(self) -> int:
        """How many leaves are whole."""
        return len(self.numbers) // _FIELDS

    @property
    def rows(self) -> int:
        """How many rows the whole leaves hold."""
        return sum(self.numbers[3::_FIELDS])

    def leaf(self, place: int) -> tuple[int, int, int, int]:
        """Page, first rowid, last rowid and rows of one whole leaf."""
        page, first, last, rows = self.numbers[_FIELDS * place : _FIELDS * (place + 1)]
        return page, first, last, rows

    def runs(self) -> Iterator[Run]:
        """The whole leaves, those together between which nothing is missing."""
        edges = sorted({0, *self.breaks, self.leaf_count})
        for start, stop in pairwise(edges):
            rows = sum(self.numbers[_FIELDS * start + 3 : _FIELDS * stop : _FIELDS])
            if rows:
                first, last = self.leaf(start)[1], self.leaf(stop - 1)[2]
                yield Run(first, last, rows, range(start, stop))

    def missing(self, low: int, high: int) -> None:
        """Note that the rowids above `low` and up to `high` cannot be reached."""
        self.gaps.append((low, high))
        self.breaks.append(self.leaf_count)

    def leave_out(self, leaves: Collection[int]) -> None:
        """Take whole leaves of another table out. The rows that belong there may have any rowid."""
        kept: array[int] = array("q")
        breaks: list[int] = []
        for place in range(self.leaf_count):
            if place in self.breaks:
                breaks.append(len(kept) // _FIELDS)
            if self.numbers[_FIELDS * place] in leaves:
                breaks.append(len(kept) // _FIELDS)
            else:
                kept.extend(self.leaf(place))
        self.numbers, self.breaks = kept, breaks
        self.damaged.extend(sorted(leaves))
        self.missing(LOWEST, HIGHEST)


def walk(pages: Pages, root: int, could_be: Looks, looks_like: Looks = lambda _types: True) -> Tree:
    """Map the tree below a root page. A root that is none leaves one gap of every rowid.

    A leaf whose first or last record could not be a row of the table is of another tree, whatever its rowids are; of one whose
    rows do not look as the store writes them (`looks_like`) that is to be asked.
    """
    tree = Tree(root)
    _Walk(pages, tree, could_be, looks_like).page(root, LOWEST, HIGHEST, 0)
    return tree


@dataclass(frozen=True, slots=True)
class _Walk:
    pages: Pages
    tree: Tree
    could_be: Looks
    looks_like: Looks

    def page(self, number: int, low: int, high: int, depth: int) -> None:
        """Map what lies below a page, to which the rowids above `low` and up to `high` belong."""
        pages, tree = self.pages, self.tree
        if depth > DEEPEST or not pages.claim(number):
            tree.missing(low, high)
            return
        page = pages.page(number)
        kind = page_type(page, number)
        if kind == LEAF:
            self.leaf(read_leaf(pages, number, page), page, low, high)
            return
        below = children(pages, number, page) if kind == INTERIOR else None
        if below is None:
            tree.damaged.append(number)
            tree.missing(low, high)
            return
        if not all(low < key < high for _child, key in below[:-1]):
            # Its keys are of another place: what lies below it may belong anywhere.
            tree.damaged.append(number)
            low, high = LOWEST, HIGHEST
        for child, key in below:
            up_to = min(key, high)
            self.page(child, low, up_to, depth + 1)
            low = up_to

    def leaf(self, leaf: Leaf, page: bytes, low: int, high: int) -> None:
        """Note a leaf as whole, partly readable, or of another place."""
        pages, tree = self.pages, self.tree
        rowids = [cell[0] for cell in leaf.cells]
        inside = sum(1 for rowid in rowids if low < rowid <= high)
        ends = list(_ends(page, leaf))
        foreign = not all(map(self.could_be, ends))
        if foreign or (rowids and not inside):
            pages.state[leaf.page] = (
                0  # whole or not, it belongs elsewhere: whoever misses its rows may claim it
            )
            tree.damaged.append(leaf.page)
            tree.missing(*((low, high) if foreign else (LOWEST, HIGHEST)))
            return
        if leaf.unreadable or inside < len(rowids) or not _claim_chains(pages, page, leaf):
            tree.damaged.append(leaf.page)
            tree.partial.append((leaf.page, low, high))
            tree.breaks.append(tree.leaf_count)
            return
        if rowids:
            tree.numbers.extend((leaf.page, rowids[0], rowids[-1], len(rowids)))
            if ends and not any(map(self.looks_like, ends)):
                tree.odd.append(leaf.page)


def _ends(page: bytes, leaf: Leaf) -> Iterator[list[int]]:
    """The serial types of the first and last record, where they lie on the page."""
    for cell in {leaf.cells[0], leaf.cells[-1]} if leaf.cells and not leaf.unreadable else ():
        types = types_of(page, cell)
        if types is not None:
            yield types


def _claim_chains(pages: Pages, page: bytes, leaf: Leaf) -> bool:
    claimed: list[int] = []
    for cell in leaf.cells:
        if cell[1] == cell[3]:
            continue
        links = chain(pages, page, cell)
        if links is None or not all(map(pages.claim, links)):
            for number in claimed:
                pages.state[number] = 0
            return False
        claimed += links
    return True
