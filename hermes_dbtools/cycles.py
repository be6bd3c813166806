"""Find the loops of the lineage: sessions that reach themselves over parents and markers; changes nothing.

Both graphs count together, for upstream's deletes follow both: a delegate's marker once led from a session back
to its parent, and the delete took the parent too. A session that names itself is a loop of one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import apsw

from . import queries
from .model import Value
from .utf8 import text

FILE = "damage/lineage/lineage_cycles"

Graph = dict[bytes, set[bytes]]


@dataclass(frozen=True, slots=True)
class Cycle:
    """One cyclic component: every session of it reaches every other, and itself.

    `ids` are in the order of their bytes. `over` is `parents` or `markers` where these links alone make a loop
    of it (parents first), else `both`.
    """

    ids: tuple[Value, ...]
    over: str


def find_cycles(connection: apsw.Connection, has: Callable[[str], bool]) -> tuple[Cycle, ...]:
    """Every cyclic component, in the order of its first id. `has` says which objects may be relied on.

    Reads each session once, on a read-only connection or inside the caller's transaction.
    """
    query = queries.choose(FILE, "links", has)
    return cycles_of(connection.execute(query.sql)) if query is not None else ()


def cyclic_sessions(connection: apsw.Connection, has: Callable[[str], bool]) -> dict[Value, Cycle]:
    """The loop that each session is part of, for the sessions that are: a delete of one must be refused."""
    return {session: cycle for cycle in find_cycles(connection, has) for session in cycle.ids}


def cycles_of(rows: Iterable[tuple[Value, ...]]) -> tuple[Cycle, ...]:
    """The same from rows of (id, parent, and what each marker names), all as bytes or None."""
    parents: Graph = {}
    markers: Graph = {}
    for session_id, parent, *named in rows:
        if not isinstance(session_id, bytes):
            continue
        if isinstance(parent, bytes):
            parents.setdefault(session_id, set()).add(parent)
        marked = {one for one in named if isinstance(one, bytes)}
        if marked:
            markers.setdefault(session_id, set()).update(marked)
    both = {key: parents.get(key, set()) | markers.get(key, set()) for key in parents.keys() | markers.keys()}
    return tuple(
        Cycle(tuple(text(key) for key in keys), _over(keys, parents, markers))
        for keys in sorted(_components(both))
    )


def _over(keys: tuple[bytes, ...], parents: Graph, markers: Graph) -> str:
    for word, graph in (("parents", parents), ("markers", markers)):
        inside = {key: graph.get(key, set()).intersection(keys) for key in keys}
        if any(True for _component in _components(inside)):
            return word
    return "both"


def _components(graph: Graph) -> Iterator[tuple[bytes, ...]]:
    """The strongly connected components that hold a loop, each sorted (Tarjan's algorithm, without recursion)."""
    order: dict[bytes, int] = {}
    lowest: dict[bytes, int] = {}
    open_keys: list[bytes] = []
    is_open: set[bytes] = set()
    for start in sorted(graph):
        if start in order:
            continue
        path = [(start, iter(sorted(graph[start])))]
        order[start] = lowest[start] = len(order)
        open_keys.append(start)
        is_open.add(start)
        while path:
            key, following = path[-1]
            step = next(following, None)
            if step is None:
                path.pop()
                if path:
                    above = path[-1][0]
                    lowest[above] = min(lowest[above], lowest[key])
                if lowest[key] == order[key]:
                    component = _closed(key, open_keys, is_open)
                    if len(component) > 1 or key in graph.get(key, ()):
                        yield tuple(sorted(component))
            elif step not in order:
                order[step] = lowest[step] = len(order)
                open_keys.append(step)
                is_open.add(step)
                path.append((step, iter(sorted(graph.get(step, ())))))
            elif step in is_open:
                lowest[key] = min(lowest[key], order[step])


def _closed(key: bytes, open_keys: list[bytes], is_open: set[bytes]) -> list[bytes]:
    component = []
    while True:
        member = open_keys.pop()
        is_open.discard(member)
        component.append(member)
        if member == key:
            return component
