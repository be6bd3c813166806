"""Draw the family of a session: who hangs under whom, as what, by which marker; changes nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ..damage._declare import ScanContext, text
from ..model import Value
from .listing import words

FILE = "sessions/show"


@dataclass(frozen=True, slots=True)
class Relative:
    """One session of a family; `markers` are (name, id) as its configuration holds them."""

    id: Value
    parent: Value
    markers: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Place:
    """Where a session stands in the drawing: how deep, and whether the line comes back to a session above (a loop)."""

    relative: Relative
    depth: int
    loop: bool = False


def family(context: ScanContext, session_id: str) -> tuple[Place, ...]:
    """All that are connected with a session through parents, from the top, each once, in the order of ids.

    A parent without a row is the top of its children and has no place. In a loop the session itself is the top.
    """
    relatives = {relative.id: relative for relative in _relatives(context, session_id)}
    below: dict[Value, list[Value]] = {}
    for relative in relatives.values():
        if relative.parent is not None:
            below.setdefault(relative.parent, []).append(relative.id)
    tops = [one for one, relative in relatives.items() if relative.parent not in relatives] or [session_id]
    placed: list[Place] = []
    seen: set[Value] = set()
    for top in tops:
        _place(top, relatives, below, placed, seen)
    return tuple(placed)


def _place(
    top: Value,
    relatives: Mapping[Value, Relative],
    below: Mapping[Value, list[Value]],
    placed: list[Place],
    seen: set[Value],
) -> None:
    waiting = [(top, 0)]
    while waiting:
        session_id, depth = waiting.pop()
        loop = session_id in seen
        placed.append(Place(relatives[session_id], depth, loop))
        if not loop:
            seen.add(session_id)
            waiting += [(child, depth + 1) for child in reversed(below.get(session_id, []))]


def _relatives(context: ScanContext, session_id: str) -> list[Relative]:
    found = []
    for key, parent, branched, reset, delegated in context.rows(FILE, "family", {"id": session_id}):
        named = (("_branched_from", branched), ("_reset_from", reset), ("_delegate_from", delegated))
        markers = tuple((name, words(value)) for name, value in named if value is not None)
        found.append(Relative(text(key), text(parent), markers))
    return found
