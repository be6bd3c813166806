"""Say which sessions a live session reaches; writes one temporary table and no table of the file.

Whoever changes a session changes its delegates and its whole compression chain with it. Seen from a live
session that is: along its chain both ways, and from a delegate up to those who delegated it, to a fixed
point. A marker that names another row than the parent was inherited through a compression and forks nothing.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping

import apsw

from . import queries
from .model import LiveSession, Value
from .utf8 import text

FILE = "guard/closure"


def reach(
    connection: apsw.Connection, has: Callable[[str], bool], seeds: Mapping[bytes, LiveSession]
) -> dict[Value, LiveSession]:
    """The seeds, by the bytes of their ids, and all they reach: each with the nearest seed as its reason.

    In the order of the ids' bytes. `has` says which objects of the file may be relied on.
    """
    if not seeds:
        return {}
    chains, delegators = _links(_rows(connection, has, seeds))
    reached = dict(seeds)
    waiting = deque((key, key, False) for key in sorted(seeds))
    while waiting:
        key, seed, delegated = waiting.popleft()
        steps = [(other, delegated) for other in chains.get(key, ())]
        steps += [(other, True) for other in delegators.get(key, ())]
        for other, below in sorted(steps):
            if other not in reached:
                reached[other] = _member(other, seeds[seed], below=below)
                waiting.append((other, seed, below))
    return {reached[key].session_id: reached[key] for key in sorted(reached)}


def _rows(
    connection: apsw.Connection, has: Callable[[str], bool], seeds: Mapping[bytes, LiveSession]
) -> list[tuple[Value, ...]]:
    connection.execute(_sql("make", has))
    connection.execute(_sql("clear", has))
    connection.executemany(_sql("fill", has), ({"id": key} for key in seeds))
    rows = list(connection.execute(_sql("reach", has)))
    connection.execute(_sql("clear", has))
    return rows


def _sql(block: str, has: Callable[[str], bool]) -> str:
    query = queries.choose(FILE, block, has)
    if query is None:
        raise KeyError(f"{FILE}.sql has no {block!r} that fits every file")
    return query.sql


def _links(rows: list[tuple[Value, ...]]) -> tuple[dict[bytes, set[bytes]], dict[bytes, set[bytes]]]:
    """Neighbours in compression chains, both ways, and the delegators of each delegate."""
    chains: dict[bytes, set[bytes]] = {}
    delegators: dict[bytes, set[bytes]] = {}
    for session_id, parent, continues, delegate_from, delegated in rows:
        if not isinstance(session_id, bytes):
            continue
        if continues and isinstance(parent, bytes):
            chains.setdefault(session_id, set()).add(parent)
            chains.setdefault(parent, set()).add(session_id)
        if delegated:
            named = {one for one in (parent, delegate_from) if isinstance(one, bytes)}
            delegators.setdefault(session_id, set()).update(named)
    return chains, delegators


def _member(key: bytes, seed: LiveSession, *, below: bool) -> LiveSession:
    shown = f"hex:{seed.session_id.hex()}" if isinstance(seed.session_id, bytes) else str(seed.session_id)
    place = f"delegate {shown} below it" if below else f"compression chain of {shown}"
    return LiveSession(text(key), f"{place}: {seed.reason}", seed.holder, seed.expires_at)
