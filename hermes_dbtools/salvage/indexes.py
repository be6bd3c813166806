"""Read which rows an index names, page by page past every damaged one; reads no row and writes nothing.

An entry of an index ends in the rowid of its row (file format description of SQLite, section 2.5), so it proves a row that the
table itself has lost.
"""

from __future__ import annotations

from collections.abc import Callable

from .leaves import INDEX_INTERIOR, INDEX_LEAF, chain, page_type, payload
from .pages import HEADER, Pages
from .records import fits, serial_types, varint
from .trees import DEEPEST

Take = Callable[[int, bytes], None]
"""What is done with the rowid and the whole record of an entry."""

_SIZES = (0, 1, 2, 3, 4, 6, 8)
_ZERO, _ONE = 8, 9


def read_index(pages: Pages, root: int, take: Take) -> bool:
    """Give every entry that can be read to `take`. Returns whether that was all of them."""
    return _page(pages, root, take, bytearray(pages.count + 1), 0)


def _page(pages: Pages, number: int, take: Take, seen: bytearray, depth: int) -> bool:
    if depth > DEEPEST or not pages.exists(number) or seen[number]:
        return False
    seen[number] = 1
    page = pages.page(number)
    kind = page_type(page, number)
    if kind not in (INDEX_LEAF, INDEX_INTERIOR):
        return False
    at = HEADER if number == 1 else 0
    count = int.from_bytes(page[at + 3 : at + 5], "big")
    first = at + (8 if kind == INDEX_LEAF else 12)
    floor = first + 2 * count
    if floor > pages.usable:
        return False
    whole = True
    for place in range(first, floor, 2):
        offset = int.from_bytes(page[place : place + 2], "big")
        if not floor <= offset <= pages.usable - 4:
            whole = False
            continue
        if kind == INDEX_INTERIOR:
            child = int.from_bytes(page[offset : offset + 4], "big")
            whole &= _page(pages, child, take, seen, depth + 1)
            offset += 4
        whole &= _entry(pages, page, offset, take)
    if kind == INDEX_INTERIOR:
        child = int.from_bytes(page[at + 8 : at + 12], "big")
        whole &= _page(pages, child, take, seen, depth + 1)
    return whole


def _entry(pages: Pages, page: bytes, offset: int, take: Take) -> bool:
    try:
        size, at = varint(page, offset)
    except IndexError:
        return False
    local = _local_size(pages.usable, size)
    if at + local > pages.usable or not fits(page, at, at + local, size):
        return False
    cell = (0, size, at, local)
    links = chain(pages, page, cell, claimed=True)
    record = payload(pages, page, cell, links) if links is not None else b""
    rowid = _last_number(record) if fits(record, 0, len(record), size) else None
    if rowid is None:
        return False
    take(rowid, record)
    return True


def _last_number(record: bytes) -> int | None:
    """The last value of a record where that is a whole number."""
    try:
        serial = serial_types(record)[-1]
    except (ValueError, IndexError):
        return None
    if serial in (_ZERO, _ONE):
        return serial - _ZERO
    if not 1 <= serial < len(_SIZES):
        return None
    return int.from_bytes(record[-_SIZES[serial] :], "big", signed=True)


def _local_size(usable: int, size: int) -> int:
    """How many bytes of a payload of `size` bytes lie in an index page itself."""
    most = (usable - 12) * 64 // 255 - 23
    if size <= most:
        return size
    least = (usable - 12) * 32 // 255 - 23
    local = least + (size - least) % (usable - 4)
    return local if local <= most else least
