"""Say which old sessions may go, by whole lineages only; deletes none and writes nothing.

A lineage is what a delete takes together: a compression chain, its delegates, a local conversation of the runtime. Branches and
resets are conversations of their own. A lineage goes when it is old as a whole, not pinned, and every session of it that is no
delegate has ended and matches; else it is spared as a whole.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import dataclass, field

from .. import queries
from ..damage._declare import ScanContext, text
from ..home import Home
from ..model import UsageError, Value
from .reading import look
from .targets import Lineages, read_lineages

FILE = "sessions/prune"

UNITS = {"h": 3600.0, "d": 86400.0, "w": 7 * 86400.0, "m": 30 * 86400.0, "y": 365 * 86400.0}
_AGE = re.compile(r"(\d{1,6}(?:\.\d{1,3})?)([hdwmy]?)")

FILTERS = (
    "source",
    "end-reason",
    "title",
    "model",
    "folder",
    "user",
    "archived",
    "min-messages",
    "max-messages",
)
"""What may be asked besides the age; the block `by-<name>` answers."""


@dataclass(frozen=True, slots=True)
class Filters:
    """What a session must be to be pruned: older than `age` seconds, and all of `wanted`, by names of FILTERS."""

    age: float
    wanted: Mapping[str, str | int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Candidates:
    """What may go, and how many lineages with a match are spared. `roots` name one session of each lineage that goes."""

    roots: tuple[str, ...]
    pinned: int
    half_matched: int


def age_seconds(words: str) -> float:
    """An age such as `30d`, `12h`, `2w`, or a number of days, in seconds. Raises UsageError."""
    found = _AGE.fullmatch(words.strip().lower())
    if found is None:
        raise UsageError(f"{words[:40]!r}: not an age; say 30d, 12h, 2w, 6m (30 days each) or 1y")
    return float(found[1]) * UNITS[found[2] or "d"]


def candidates(home: Home, filters: Filters, now: float) -> Candidates:
    """What a prune at `now` (epoch seconds) may take. Raises CouldNotLook, and UsageError for a filter the file cannot answer."""
    return look(home, now, lambda context: candidates_of(context, filters))


def candidates_of(context: ScanContext, filters: Filters) -> Candidates:
    """The same on an open store."""
    lineages = read_lineages(context)
    matched = _matched(context, filters)
    ended: set[Value] = set()
    old: set[Value] = set()
    order: list[Value] = []
    for row in context.rows(FILE, "times", {"before": context.now - filters.age}):
        session = text(row[0])
        order.append(session)
        if row[1]:
            ended.add(session)
        if row[2]:
            old.add(session)
    fit = (ended & old) if matched is None else (ended & old & matched)
    pinned = _ids(context, "pinned", {})
    delegates = {one for below in lineages.delegates.values() for one in below}
    roots: list[str] = []
    spared_pinned = half = 0
    for lineage in _components(lineages, order):
        if not lineage & fit:
            continue
        root = _root(lineages, lineage, delegates, fit, old)
        if lineage & pinned:
            spared_pinned += 1
        elif root is None:
            half += 1
        else:
            roots.append(root)
    return Candidates(tuple(roots), spared_pinned, half)


def _root(
    lineages: Lineages, lineage: Set[Value], delegates: Set[Value], fit: Set[Value], old: Set[Value]
) -> str | None:
    """A session that takes the whole lineage along, where all of it may go."""
    if not lineage <= old or not all(one in fit or one in delegates for one in lineage):
        return None
    for one in sorted(one for one in lineage & fit if isinstance(one, str)):
        if set(lineages.going_with(one, whole_chain=True)) == lineage:
            return one
    return None


def _components(lineages: Lineages, order: Iterable[Value]) -> Iterator[Set[Value]]:
    """The lineages, each as the set of its sessions, in the order of their first ids."""
    neighbours: dict[Value, set[Value]] = {}
    for graph in (lineages.delegates, lineages.chains, lineages.conversations):
        for one, others in graph.items():
            for other in others:
                neighbours.setdefault(one, set()).add(other)
                neighbours.setdefault(other, set()).add(one)
    there = set(order)
    seen: set[Value] = set()
    for start in order:
        if start in seen:
            continue
        found, waiting = {start}, [start]
        while waiting:
            fresh = (neighbours.get(waiting.pop(), set()) & there) - found
            found |= fresh
            waiting += fresh
        seen |= found
        yield found


def _matched(context: ScanContext, filters: Filters) -> set[Value] | None:
    """The sessions that fit every filter; None where none was asked for."""
    found: set[Value] | None = None
    for name, value in filters.wanted.items():
        if name not in FILTERS:
            raise UsageError(f"{name}: no such filter; there are {', '.join(FILTERS)}")
        if not _answers(context, f"by-{name}"):
            raise UsageError(
                f"the sessions of this file say nothing of {name}: it is too old for this filter"
            )
        ids = _ids(context, f"by-{name}", {"value": value})
        found = ids if found is None else found & ids
    return found


def _answers(context: ScanContext, block: str) -> bool:
    return queries.choose(FILE, block, context.has) is not None


def _ids(context: ScanContext, block: str, bindings: Mapping[str, Value]) -> set[Value]:
    return {text(row[0]) for row in context.rows(FILE, block, bindings)}
