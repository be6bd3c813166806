"""Tell whether the pages of an index and its own records of them fit each other; reads no entry and writes nothing.

FTS5 numbers a new segment by its record (https://www.sqlite.org/fts5.html, section 9.2), so where that is older than the
segments the next write runs into one that is there: in a public report each append failed with "constraint failed". And it
finds the page of a word by `<index>_idx` alone: without a row there the words of a page are not found, although they are all
there. The check of FTS5 itself looks neither at segments that the record does not name nor for rows that `_idx` lacks.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import apsw

from .search_definition import SearchIndex
from .search_sql import names, rows, run

SECOND_FORM = b"\xff\x00\x00\x01"
"""What stands behind the cookie where the record counts entries too: `fts5_index.c` calls it the V2 format."""

COOKIE_BYTES = 4
COUNTS_OF_SECOND_FORM = 5
"""Numbers behind each segment there: two origins, pages and entries of tombstones, entries."""

SEGMENT_SHIFT = 37
"""A page of a segment has the id of the segment, moved so many bits, and its number."""


@dataclass(frozen=True, slots=True)
class Segment:
    """The first and the last page of a segment, as the record has them; 0 for one that a merge has emptied."""

    first: int
    last: int


def misfit(connection: apsw.Connection, index: SearchIndex) -> str:
    """Which segment the record does not name, or `_idx` has no page of, or ''. Raises apsw errors."""
    named = _record(connection, index)
    if named is None:
        return f"{index.name}_data: its record of segments cannot be read"
    present = {number for (number,) in run(connection, "segments", parts=names(index))}
    if not all(isinstance(number, int) for number in present):
        return f"{index.name}_idx: its pages are those of another table"
    if unnamed := sorted(present.difference(named)):
        return f"{index.name}_idx: segment {unnamed[0]} is not in the index's record"
    for number in sorted(set(named).difference(present)):
        if next(_pages_with_words(connection, index, number, named[number]), None) is not None:
            return f"{index.name}_idx: it leads to no page of segment {number}"
    return ""


def unreachable(connection: apsw.Connection, index: SearchIndex) -> str:
    """Which page `_idx` does not lead to, or ''; reads the beginning of every page. Raises apsw errors."""
    for number, segment in (_record(connection, index) or {}).items():
        led = {page for (page,) in rows(connection, "pages_led_to", {"segment": number}, names(index))}
        for page in _pages_with_words(connection, index, number, segment):
            # A merge cuts pages off the front of a segment and leaves the row of the page that is now first as it was.
            if page not in led and (page != segment.first or page == 1):
                return f"{index.name}_idx: it does not lead to page {page} of segment {number}"
    return ""


def _record(connection: apsw.Connection, index: SearchIndex) -> Mapping[int, Segment] | None:
    """The segments that the record of an index names, by number; None where it cannot be read."""
    found = run(connection, "segment_record", parts=names(index))
    try:
        return _named(bytes(found[0][0])) if found else {}
    except (IndexError, TypeError):
        return None


def _pages_with_words(
    connection: apsw.Connection, index: SearchIndex, number: int, segment: Segment
) -> Iterator[int]:
    """The pages of a segment on which a word begins: behind the size that a page tells follow the places of its words."""
    if not segment.last:
        return
    start = number << SEGMENT_SHIFT
    bindings = {"first": start + segment.first, "last": start + segment.last}
    for id_, size, told in rows(connection, "segment_pages_told", bindings, names(index)):
        if (size or 0) > int.from_bytes((told or b"")[2:4], "big"):
            yield id_ - start


def _named(record: bytes) -> Mapping[int, Segment]:
    """The segments that a record names. Raises IndexError where it is cut short."""
    second = record[COOKIE_BYTES : 2 * COOKIE_BYTES] == SECOND_FORM
    numbers = _Numbers(record, 2 * COOKIE_BYTES if second else COOKIE_BYTES)
    levels, _segments, _writes = numbers.next(), numbers.next(), numbers.next()
    found = {}
    for _level in range(levels):
        _merged = numbers.next()
        for _segment in range(numbers.next()):
            number = numbers.next()
            found[number] = Segment(numbers.next(), numbers.next())
            numbers.skip(COUNTS_OF_SECOND_FORM if second else 0)
    return found


class _Numbers:
    """Numbers of variable length, one after the other. State: the place of the next one."""

    def __init__(self, record: bytes, at: int) -> None:
        self._record = record
        self._at = at

    def next(self) -> int:
        value = 0
        for place in range(9):
            byte = self._record[self._at]
            self._at += 1
            if place == 8:
                return value << 8 | byte
            value = value << 7 | byte & 0x7F
            if byte < 0x80:
                break
        return value

    def skip(self, count: int) -> None:
        for _ in range(count):
            self.next()
