"""Read the cells of table b-tree pages, each checked by itself; never takes a freeblock for a row, writes nothing.

Facts: the file format description of SQLite, section 1.6 (b-tree pages). A cell is taken when it lies inside its page,
apart from every other, when its rowid is in order and when its record has exactly the length that its header says.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from .pages import HEADER, Pages
from .records import fits, serial_types, signed, varint

LEAF, INTERIOR = 13, 5
INDEX_LEAF, INDEX_INTERIOR = 10, 2
TYPES = frozenset((LEAF, INTERIOR, INDEX_LEAF, INDEX_INTERIOR))

Cell = tuple[int, int, int, int]
"""Of one row: rowid, bytes of its payload, where in the page that begins, bytes of it on the page."""

Looks = Callable[[Sequence[int]], bool]
"""Whether a record of these serial types is, or can be, a row of some table."""

SMALLEST_CELL = 4


@dataclass(frozen=True, slots=True)
class Leaf:
    """The readable cells of one leaf in order of rowid; `unreadable` is how many others it says it has, -1 unknown."""

    page: int
    cells: tuple[Cell, ...]
    unreadable: int


def page_type(page: bytes, number: int) -> int:
    """What the first byte of a b-tree page says it is; 0 where no such page exists."""
    kind = page[HEADER if number == 1 else 0]
    return kind if kind in TYPES else 0


def read_leaf(pages: Pages, number: int, page: bytes) -> Leaf:
    """The cells of a table leaf, whatever state it is in. Chains of overflow pages are not looked at."""
    at = HEADER if number == 1 else 0
    count = int.from_bytes(page[at + 3 : at + 5], "big")
    first = at + 8
    if page[at] != LEAF or first + 2 * count > pages.usable:
        return Leaf(number, (), -1)
    floor = first + 2 * count
    cells: list[Cell] = []
    spans: list[tuple[int, int]] = []
    for place in range(first, floor, 2):
        cell, end = _cell(page, int.from_bytes(page[place : place + 2], "big"), floor, pages.usable)
        if cell is not None:
            cells.append(cell)
            spans.append((int.from_bytes(page[place : place + 2], "big"), end))
    if len(cells) == count and _ascending(cells) and _apart(spans):
        return Leaf(number, tuple(cells), 0)
    kept = _consistent(cells, spans)
    return Leaf(number, kept, count - len(kept))


def types_of(page: bytes, cell: Cell) -> list[int] | None:
    """The serial types of a row, None where they do not all lie on its page."""
    _rowid, _size, start, local = cell
    head = page[start : start + local]
    try:
        return serial_types(head[: max(varint(head, 0)[0], 1)])
    except (ValueError, IndexError):
        return None


def local_size(usable: int, size: int) -> int:
    """How many bytes of a payload of `size` bytes lie in a table leaf itself."""
    most = usable - 35
    if size <= most:
        return size
    least = (usable - 12) * 32 // 255 - 23
    local = least + (size - least) % (usable - 4)
    return local if local <= most else least


def chain(pages: Pages, page: bytes, cell: Cell, *, claimed: bool = False) -> list[int] | None:
    """The overflow pages of a cell, none where it fits its page, None where the chain is broken.

    They are not claimed; a page of somebody else breaks the chain, unless they were `claimed` for this very cell.
    """
    _rowid, size, start, local = cell
    if local == size:
        return []
    links = -(-(size - local) // (pages.usable - 4))
    number = int.from_bytes(page[start + local : start + local + 4], "big")
    found: list[int] = []
    for _ in range(links):
        if not pages.exists(number) or (pages.state[number] and not claimed):
            return None
        content = pages.page(number)
        found.append(number)
        number = int.from_bytes(content[:4], "big")
        if not number and not any(content):
            return None  # the last page of a chain ends in content: one of zeroes alone was overwritten
    return found if not number and len(set(found)) == links else None


def payload(pages: Pages, page: bytes, cell: Cell, links: list[int]) -> bytes:
    """The whole record of a cell, with the overflow pages that `chain` found."""
    _rowid, size, start, local = cell
    if not links:
        return page[start : start + local]
    parts = [page[start : start + local], *(pages.page(number)[4 : pages.usable] for number in links)]
    return b"".join(parts)[:size]


def children(pages: Pages, number: int, page: bytes) -> list[tuple[int, int]] | None:
    """The (page, highest rowid) below an interior page, the last without an end; None where it cannot be trusted."""
    at = HEADER if number == 1 else 0
    count = int.from_bytes(page[at + 3 : at + 5], "big")
    first = at + 12
    floor = first + 2 * count
    if page[at] != INTERIOR or floor > pages.usable:
        return None
    found: list[tuple[int, int]] = []
    for place in range(first, floor, 2):
        offset = int.from_bytes(page[place : place + 2], "big")
        if not floor <= offset <= pages.usable - 5:
            return None
        key, end = varint(page, offset + 4) if offset + 13 <= len(page) else _short_varint(page, offset + 4)
        if end > pages.usable:
            return None
        found.append((int.from_bytes(page[offset : offset + 4], "big"), signed(key)))
    found.append((int.from_bytes(page[at + 8 : at + 12], "big"), 2**63 - 1))
    numbers = [child for child, _key in found]
    ordered = all(low[1] < high[1] for low, high in pairwise(found))
    # Of a file that was cut off, some children are gone; of bytes that were overwritten, hardly any number is a page.
    there = sum(map(pages.exists, numbers))
    sound = ordered and len(set(numbers)) == len(numbers) and 2 * there > len(numbers)
    return found if sound else None


def _short_varint(page: bytes, at: int) -> tuple[int, int]:
    try:
        return varint(page, at)
    except IndexError:
        return 0, len(page) + 1


def _cell(page: bytes, offset: int, floor: int, usable: int) -> tuple[Cell | None, int]:
    if not floor <= offset <= usable - SMALLEST_CELL:
        return None, 0
    try:
        size, at = varint(page, offset)
        rowid, at = varint(page, at)
    except IndexError:
        return None, 0
    local = local_size(usable, size)
    end = at + local + (4 if local < size else 0)
    if end > usable or not fits(page, at, at + local, size):
        return None, 0
    return (signed(rowid), size, at, local), max(end, offset + SMALLEST_CELL)


def _ascending(cells: list[Cell]) -> bool:
    before = None
    for cell in cells:
        if before is not None and cell[0] <= before:
            return False
        before = cell[0]
    return True


def _apart(spans: list[tuple[int, int]]) -> bool:
    end_before = 0
    for start, end in sorted(spans):
        if start < end_before:
            return False
        end_before = end
    return True


def _consistent(cells: list[Cell], spans: list[tuple[int, int]]) -> tuple[Cell, ...]:
    """The cells of a damaged page that contradict no other: none of two that overlap or have the same rowid."""
    bad: set[int] = set()
    ordered = sorted(range(len(cells)), key=lambda i: spans[i])
    for low, high in pairwise(ordered):
        if spans[high][0] < spans[low][1]:
            bad |= {low, high}
    by_rowid: dict[int, int] = {}
    for place, cell in enumerate(cells):
        if cell[0] in by_rowid:
            bad |= {place, by_rowid[cell[0]]}
        by_rowid[cell[0]] = place
    return tuple(sorted(cell for place, cell in enumerate(cells) if place not in bad))
