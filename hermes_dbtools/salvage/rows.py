"""Give the rows of a leaf, decoded by ourselves, one at a time; reads pages of a private copy and writes nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from ..model import Value
from .leaves import chain, payload, read_leaf
from .pages import TAKEN, Pages
from .records import decode, serial_types
from .trees import HIGHEST, LOWEST

Row = tuple[int, list[Value]]
"""A rowid and the values of its record."""


def leaf_rows(
    pages: Pages,
    number: int,
    codec: str,
    could_be: Callable[[Sequence[int]], bool],
    *,
    bounds: tuple[int, int] = (LOWEST, HIGHEST),
    claimed: bool = False,
) -> Iterator[Row]:
    """Rowid and values of each row of a leaf that can be read whole and whose serial types `could_be` those of a row.

    Only rowids above the first and up to the second of `bounds` are taken. `claimed`: the overflow pages were claimed for
    these rows when the leaf was found whole. Rows that cannot be read are left out.
    """
    page = pages.page(number)
    for cell in read_leaf(pages, number, page).cells:
        if not bounds[0] < cell[0] <= bounds[1]:
            continue
        links = chain(pages, page, cell, claimed=claimed)
        if links is None:
            continue
        record = payload(pages, page, cell, links)
        try:
            if not could_be(serial_types(record)):
                continue
            values = decode(record, codec)
        except ValueError:
            continue
        for link in links:
            pages.state[link] = TAKEN
        yield cell[0], values
