"""Say which sessions a delete takes along with each that was asked for; changes nothing.

Delegates go with the session that handed them out, over any number of hands. A local conversation of the runtime goes as a whole.
A compression chain goes as a whole where that was asked for. A branch marker wins over a delegate marker that was inherited.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from ..damage._declare import ScanContext, text
from ..model import Value
from .ids import there

FILE = "sessions/delete"

Graph = dict[Value, list[Value]]


@dataclass(frozen=True, slots=True)
class Lineages:
    """Who goes with whom: delegates below each session, neighbours in compression chains, local conversations."""

    delegates: Graph = field(default_factory=dict)
    chains: Graph = field(default_factory=dict)
    conversations: Graph = field(default_factory=dict)

    def going_with(self, root: str, *, whole_chain: bool) -> tuple[Value, ...]:
        """The root, then all that goes with it, in the order of their ids; a loop ends where it began."""
        graphs = [self.delegates, self.conversations, *([self.chains] if whole_chain else [])]
        found: set[Value] = {root}
        waiting: list[Value] = [root]
        while waiting:
            one = waiting.pop()
            for graph in graphs:
                for other in graph.get(one, ()):
                    if other not in found:
                        found.add(other)
                        waiting.append(other)
        return (root, *sorted(found - {root}, key=_order))


def read_lineages(context: ScanContext) -> Lineages:
    """Read the links of all sessions, once."""
    found = Lineages()
    for row in context.rows(FILE, "links"):
        session, parent, delegator = text(row[0]), text(row[1]), text(row[3])
        if delegator is not None and not row[4]:
            for above in {parent, delegator} - {None}:
                found.delegates.setdefault(above, []).append(session)
        if row[2]:
            found.chains.setdefault(session, []).append(parent)
            found.chains.setdefault(parent, []).append(session)
    _read_conversations(context, found)
    return found


def _read_conversations(context: ScanContext, found: Lineages) -> None:
    members: dict[Value, set[str]] = {}
    for owner, session in context.rows(FILE, "policies"):
        named = {one for one in (text(owner), text(session)) if isinstance(one, str)}
        members.setdefault(text(owner), set()).update(named)
    known = there(context, {one for named in members.values() for one in named}) if members else set()
    for named in members.values():
        first, *others = sorted(named & known) or [""]
        for other in others:
            found.conversations.setdefault(first, []).append(other)
            found.conversations.setdefault(other, []).append(first)


def trees(lineages: Lineages, roots: Iterable[str], *, whole_chain: bool) -> dict[str, tuple[Value, ...]]:
    """What goes with each root. A session is in one tree only; a root that goes with an earlier one has none."""
    taken: set[Value] = set()
    found: dict[str, tuple[Value, ...]] = {}
    for root in roots:
        if root not in taken:
            found[root] = tuple(
                one for one in lineages.going_with(root, whole_chain=whole_chain) if one not in taken
            )
            taken.update(found[root])
    return found


def _order(session_id: Value) -> bytes:
    return session_id if isinstance(session_id, bytes) else str(session_id).encode("utf-8", "surrogatepass")
