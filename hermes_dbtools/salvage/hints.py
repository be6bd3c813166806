"""Tell apart tables whose rows look alike by what the first value of a row must be; reads pages, not files."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from .leaves import Cell
from .records import varint

_DIGEST = re.compile(r"[0-9a-f]{64}")

Preferred = Callable[[bytes, Cell], bool]


def preferred(table: str, tables: Iterable[str]) -> Preferred:
    """Whether a row, by its first value, can belong to a table that shares its look with another."""
    names = frozenset(tables)
    if table == "sqlite_sequence":
        return lambda page, cell: _first(page, cell) in names
    if table == "system_prompts":
        return lambda page, cell: _DIGEST.fullmatch(_first(page, cell)) is not None
    return lambda page, cell: (
        _first(page, cell) not in names and _DIGEST.fullmatch(_first(page, cell)) is None
    )


def _first(page: bytes, cell: Cell) -> str:
    """The first value of a record where that is text, else ''."""
    _rowid, _size, start, local = cell
    record = page[start : start + local]
    try:
        header, at = varint(record, 0)
        serial, _at = varint(record, at)
    except IndexError:
        return ""
    if serial < 13 or not serial % 2:
        return ""
    content = record[header : header + ((serial - 12) >> 1)]
    return content.decode("utf-8", "replace")
