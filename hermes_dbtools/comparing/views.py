"""Say which sessions went out of the store's own list between two states, and why; reads no content."""

from __future__ import annotations

from collections.abc import Mapping

import apsw

from .. import queries
from ..damage._declare import printable, whole
from ..model import CouldNotLook, Value
from ..shape import Shape
from ..visibility import Standing, standings
from .model import OutOfView
from .rows import FILE

NAMED = 1_000
"""Sessions named; their count is exact."""

File = tuple[apsw.Connection, Shape]


def out_of_view(before: File, after: File, lost: int) -> tuple[int, tuple[OutOfView, ...]]:
    """How many sessions were listed before and are not after, and the first of them in the order of their ids.

    Each file is judged by the rules of the release that it belongs to. `lost` is how many rows of sessions are gone: the list is
    read with indexes, and a stale one leaves rows out. Raises CouldNotLook then; apsw errors pass through.
    """
    earlier, later = standings(before[0], before[1].has), standings(after[0], after[1].has)
    gone = [key for key, standing in earlier.items() if standing.shown and not _shown(later.get(key))]
    if sum(key not in later for key in gone) > lost:
        raise CouldNotLook("an index of sessions is stale; next: hermes-dbtools scan --deep")
    return len(gone), tuple(_told(key, later, before, after) for key in gone[:NAMED])


def _shown(standing: Standing | None) -> bool:
    return standing is not None and standing.shown


def _told(key: Value, later: Mapping[Value, Standing], before: File, after: File) -> OutOfView:
    standing = later.get(key)
    if standing is None:
        return OutOfView(printable(key), "gone", _loss(key, before, after))
    why = "; ".join(rule.sentence for rule in standing.rules)
    if standing.through is not None:
        why = f"of {printable(standing.through)}, which it belongs to: {why}"
    return OutOfView(printable(key), "there", why)


def _loss(key: Value, before: File, after: File) -> str:
    if _rows(after, "tombstone", key):
        return "it was deleted on purpose: a tombstone names it"
    had, has = _total(before, key), _total(after, key)
    if not had:
        return "its row is gone; it held no messages"
    if has:
        return f"its row is gone; {has:,} of its {had:,} messages are still there"
    ((first,),) = _rows(before, "first-message", key)
    if _rows(after, "message-there", first) == [(1,)]:
        return f"its row is gone; its {had:,} messages are of another session now"
    return f"its row is gone, and its {had:,} messages with it"


def _total(file: File, key: Value) -> int:
    ((count,),) = _rows(file, "message-total", key)
    return whole(count)


def _rows(file: File, block: str, key: Value) -> list[tuple[Value, ...]]:
    query = queries.choose(FILE, block, file[1].has)
    if query is None:
        raise KeyError(f"{FILE}.sql has no {block!r} that fits every file")
    return list(file[0].execute(query.sql, {"id": key}))
