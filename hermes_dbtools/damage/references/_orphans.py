"""Gather what is known of messages without a session: rows, children, dependents; decides nothing.

One `Orphan` stands for one missing session id, whatever the number of its messages.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field

from ...model import Value
from .._declare import Damage, ScanContext, whole
from ._adoption import identity, refusal

DEPENDENTS = (
    ("usage", "session_model_usage"),
    ("daily", "session_daily_usage"),
    ("bindings", "telegram_dm_topic_bindings"),
)
"""Blocks that count rows which declare a reference to a session and are worth nothing without it."""


@dataclass(frozen=True, slots=True)
class Child:
    """A session whose parent is missing.

    `helper` says it is the run of a sub-agent or tool, `marked` that one of its markers names the parent.
    """

    id: Value
    helper: bool
    started_at: float | None
    marked: bool

    @property
    def chat(self) -> bool:
        """Whether nothing of its own says why it is a child: no marker, and no helper's run."""
        return not self.helper and not self.marked


@dataclass(frozen=True, slots=True)
class Orphan:
    """The messages of one missing session; times are epoch seconds, None where no row has a credible one."""

    id: Value
    tombstoned: bool
    rows: int
    active_rows: int
    calls: int
    active_calls: int
    bytes: int
    first_at: float | None
    last_at: float | None
    first_id: Value
    last_id: Value
    children: tuple[Child, ...] = ()
    dependents: Mapping[str, int] = field(default_factory=dict)

    @property
    def refusal(self) -> str:
        """Why the session may not be recreated, or ''."""
        return refusal(self.id, self.tombstoned)

    @property
    def continuation(self) -> Child | None:
        """The child that went on after compression closed the missing session, if exactly one can be it."""
        later = [
            child
            for child in self.children
            if child.chat
            and child.started_at is not None
            and self.last_at is not None
            and child.started_at >= self.last_at
        ]
        return later[0] if len(later) == 1 else None

    @property
    def strays(self) -> tuple[Child, ...]:
        """Children that no list would show under the recreated session."""
        return tuple(child for child in self.children if child.chat and child is not self.continuation)


def orphans(damage: Damage, context: ScanContext) -> list[Orphan]:
    """Every missing session that messages name, in id order; asks for the rest only where there is one."""
    rows = list(damage.rows(context, "find"))
    if not rows:
        return []
    children = _children(damage, context)
    dependents = _dependents(damage, context)
    found = []
    for value, storage, tombstoned, count, active, calls, active_calls, size, first, last, low, high in rows:
        session_id = identity(value, storage)
        found.append(
            Orphan(
                session_id,
                bool(tombstoned),
                whole(count),
                whole(active),
                whole(calls),
                whole(active_calls),
                whole(size),
                _moment(first),
                _moment(last),
                low,
                high,
                tuple(children[session_id]),
                dependents[session_id],
            )
        )
    return found


def _children(damage: Damage, context: ScanContext) -> dict[Value, list[Child]]:
    found: dict[Value, list[Child]] = defaultdict(list)
    for parent, parent_storage, child, storage, helper, started_at, marked in damage.rows(
        context, "children"
    ):
        found[identity(parent, parent_storage)].append(
            Child(identity(child, storage), bool(helper), _moment(started_at), bool(marked))
        )
    return found


def _dependents(damage: Damage, context: ScanContext) -> dict[Value, dict[str, int]]:
    found: dict[Value, dict[str, int]] = defaultdict(dict)
    for block, _table in DEPENDENTS:
        for value, storage, count in damage.rows(context, block):
            found[identity(value, storage)][block] = whole(count)
    return found


def _moment(value: Value) -> float | None:
    return float(value) if isinstance(value, int | float) else None
