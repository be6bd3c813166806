"""Find the leaves that no tree leads to any more, and whose they are; never takes a free page, writes nothing.

Where an interior page is lost, the leaves below it still lie in the file. One is taken for a table when nobody claims it, each
of its rows looks like a row of that table, and their rowids are missing there.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from .leaves import LEAF, Cell, Leaf, Looks, read_leaf, types_of
from .pages import TAKEN, Pages
from .trees import Tree


@dataclass(frozen=True, slots=True)
class Wanted:
    """A table that misses rows: what its rows look like, and which rowids (above, up to) are missing."""

    name: str
    looks_like: Looks
    gaps: tuple[tuple[int, int], ...]
    preferred: Callable[[bytes, Cell], bool]


@dataclass(frozen=True, slots=True)
class Strays:
    """The leaves found: pages in order of rowid for each table; `unplaced` could be of more than one and are of none."""

    pages: Mapping[str, tuple[int, ...]]
    unplaced: tuple[int, ...]


def wanted(
    name: str, tree: Tree, looks_like: Looks, preferred: Callable[[bytes, Cell], bool] | None = None
) -> Wanted | None:
    """What a tree misses, None where all of it was reached. `preferred` decides where rows look like those of several."""
    if not tree.gaps:
        return None
    return Wanted(name, looks_like, _merged(tree.gaps), preferred or (lambda _page, _cell: True))


def find(pages: Pages, tables: Sequence[Wanted]) -> Strays:
    """Look through every page that nobody has claimed, and claim the leaves that are found."""
    if not tables:
        return Strays({}, ())
    found: dict[str, list[tuple[int, int]]] = {table.name: [] for table in tables}
    unplaced: list[int] = []
    for number, page in pages.unclaimed():
        if page[0] != LEAF or number == 1:
            continue
        leaf = read_leaf(pages, number, page)
        if not leaf.cells:
            continue
        owners = _owners(tables, page, leaf)
        if len(owners) > 1:
            unplaced.append(number)
        elif owners:
            pages.state[number] = TAKEN
            found[owners[0].name].append((leaf.cells[0][0], number))
    ordered = {name: tuple(number for _rowid, number in sorted(leaves)) for name, leaves in found.items()}
    return Strays(ordered, tuple(unplaced))


def _owners(tables: Sequence[Wanted], page: bytes, leaf: Leaf) -> list[Wanted]:
    types = [types_of(page, cell) for cell in leaf.cells]
    first, last = leaf.cells[0][0], leaf.cells[-1][0]
    return [
        table
        for table in tables
        if _missing(table.gaps, first, last)
        and all(one is not None and table.looks_like(one) for one in types)
        and all(table.preferred(page, cell) for cell in leaf.cells)
    ]


def _missing(gaps: Sequence[tuple[int, int]], first: int, last: int) -> bool:
    place = bisect_right(gaps, (first - 1, 2**63)) - 1
    return place >= 0 and gaps[place][0] < first and last <= gaps[place][1]


def _merged(gaps: Sequence[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    merged: list[tuple[int, int]] = []
    for low, high in sorted(gaps):
        if merged and low <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(high, merged[-1][1]))
        else:
            merged.append((low, high))
    return tuple(merged)
