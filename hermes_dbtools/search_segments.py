"""Tell whether an index has pages of segments that its own record does not name; reads no entry and writes nothing.

FTS5 numbers a new segment by that record (https://www.sqlite.org/fts5.html, section 9.2), so where it is older than the
segments the next write runs into one that is there: in a public report each append failed with "constraint failed". The check
of FTS5 itself looks only at segments that the record names.
"""

from __future__ import annotations

import apsw

from .search_definition import SearchIndex
from .search_sql import names, run

SECOND_FORM = b"\xff\x00\x00\x01"
"""What stands behind the cookie where the record counts entries too: `fts5_index.c` calls it the V2 format."""

COOKIE_BYTES = 4
COUNTS_OF_SECOND_FORM = 5
"""Numbers behind each segment there: two origins, pages and entries of tombstones, entries."""


def unnamed_segment(connection: apsw.Connection, index: SearchIndex) -> str:
    """Which segment the record does not name, or ''. Raises apsw errors."""
    filled = names(index)
    records = run(connection, "segment_record", parts=filled)
    present = [int(number) for (number,) in run(connection, "segments", parts=filled)]
    if not present:
        return ""
    try:
        named = _named(bytes(records[0][0])) if records else frozenset()
    except (IndexError, TypeError):
        return f"{index.name}_data: its record of segments cannot be read"
    unnamed = [number for number in present if number not in named]
    return f"{index.name}_idx: segment {unnamed[0]} is not in the index's record" if unnamed else ""


def _named(record: bytes) -> frozenset[int]:
    """The segments that a record names. Raises IndexError where it is cut short."""
    second = record[COOKIE_BYTES : 2 * COOKIE_BYTES] == SECOND_FORM
    numbers = _Numbers(record, 2 * COOKIE_BYTES if second else COOKIE_BYTES)
    levels, _segments, _writes = numbers.next(), numbers.next(), numbers.next()
    found = set()
    for _level in range(levels):
        _merged = numbers.next()
        for _segment in range(numbers.next()):
            found.add(numbers.next())
            numbers.skip(2 + (COUNTS_OF_SECOND_FORM if second else 0))
    return frozenset(found)


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
