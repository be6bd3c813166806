"""Tell apart tables whose rows look alike by what the first values of a row must be; reads pages, not files."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from .leaves import Cell
from .records import body_size, varint

_DIGEST = re.compile(r"[0-9a-f]{64}")
_OTHERS_HOLDER = {"compression_locks": ":turn=", "session_turn_leases": ":nonce="}
"""What the holder of a row of the other table has in its name (hermes-agent 0.19): a turn, or the nonce of a compression."""

Preferred = Callable[[bytes, Cell], bool]


def preferred(table: str, tables: Iterable[str]) -> Preferred:
    """Whether a row, by its first values, can belong to a table that shares its look with another."""
    names = frozenset(tables)
    if table == "sqlite_sequence":
        return lambda page, cell: _text(page, cell, 0) in names
    if table == "system_prompts":
        return lambda page, cell: _DIGEST.fullmatch(_text(page, cell, 0)) is not None
    other = _OTHERS_HOLDER.get(table)
    return lambda page, cell: (
        (first := _text(page, cell, 0)) not in names
        and _DIGEST.fullmatch(first) is None
        and (other is None or other not in _text(page, cell, 1))
    )


def _text(page: bytes, cell: Cell, place: int) -> str:
    """A value of a record where that is text, as far as it lies in the page, else ''."""
    _rowid, _size, start, local = cell
    record = page[start : start + local]
    try:
        header, first = varint(record, 0)
        at = first
        for _before in range(place):
            _serial, at = varint(record, at)
        serial, _at = varint(record, at)
    except IndexError:
        return ""
    if serial < 13 or not serial % 2:
        return ""
    begins = header + body_size(record[first:at])
    return record[begins : begins + ((serial - 12) >> 1)].decode("utf-8", "replace")
