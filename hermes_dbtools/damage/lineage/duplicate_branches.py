"""Several branches of one session hold the same copied messages and nothing else

What it means
-------------
Branches that hang under the same parent consist of the same copied messages, and none of them was ever written to. They
are copies of what the parent has, take room, and fill every view of its branches.

Why it happens
--------------
A client that branched again and again without being asked: in a public report 7 and then 17 branches of one session
appeared in bursts, with 23 to 70 copied messages each, untitled and never shown to anyone.

Repair
------
The newest branch of each group is kept, the other ones are removed with their messages, as a delete in the store
does. Where a branch of the group has a title, it is kept too.

Safety
------
Lossy: it needs `--allow-lossy`, though every removed message is a copy of one that stays, and undo brings all back.
A group is what its rows prove: every message of a branch, tool results included, is one of the parent's, word for
word and in order, and all branches of the group have the same ones. Never removed: a branch with a title, a
pin, tokens spent, anything under it, or a marker, route, topic, goal, task or runtime row that names it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ...model import Finding, Remedy, Safety, Severity, Value
from .._declare import ScanContext, declare, printable, text, whole
from ._purge import named, removal, weigh
from ._transcripts import begins_alike, compare


@dataclass(frozen=True, slots=True)
class _Branch:
    """One branch that only copied: when it began, and whether nothing else is tied to it."""

    id: str
    started_at: float
    free: bool


def _find(context: ScanContext) -> Iterator[Finding]:
    groups: dict[tuple[Value, str], list[_Branch]] = {}
    for above, session, messages, started_at, free in list(DAMAGE.rows(context, "find")):
        parent, session_id = text(above), text(session)
        if not isinstance(parent, str) or not isinstance(session_id, str):
            continue
        if not begins_alike(context, session_id, parent):
            continue
        copy = compare(context, session_id, parent, texts_only=False)
        if copy.own == 0 and copy.copied == whole(messages):
            began = float(started_at) if isinstance(started_at, int | float) else 0.0
            groups.setdefault((parent, copy.digest), []).append(_Branch(session_id, began, bool(free)))
    for (parent, _digest), branches in groups.items():
        kept = max(branches, key=lambda one: (one.started_at, one.id))
        spare = _spare(context, [one.id for one in branches if one.free and one is not kept])
        if spare:
            yield _finding(context, parent, kept.id, len(branches), spare)


def _spare(context: ScanContext, ids: Sequence[str]) -> list[str]:
    """Those that nothing else names and no model was asked in."""
    if not ids:
        return []
    tied = named(context, ids)
    tied |= {row[0] for row in DAMAGE.rows(context, "used", {"ids": json.dumps(ids)})}
    return sorted(one for one in ids if one not in tied)


def _finding(context: ScanContext, parent: Value, kept: str, branches: int, spare: list[str]) -> Finding:
    weight = weigh(context, spare)
    step = DAMAGE.step(
        key=kept,
        answer="repair",
        title=f"remove {len(spare)} duplicates of branch {kept}: {weight.messages:,} messages",
        statements=removal(context, spare, weight),
        session_ids=tuple(spare),
        bytes_freed=weight.bytes,
    )
    return DAMAGE.finding(
        table="sessions",
        key=kept,
        message=f"{branches} branches of {printable(parent)} hold the same copied messages and nothing else",
        evidence={
            "parent_session_id": printable(parent),
            "branches": branches,
            "removable": len(spare),
            "rows": weight.messages,
            "bytes": weight.bytes,
        },
        session_ids=tuple(spare),
        remedies=(Remedy("repair", Safety.LOSSY, step),),
    )


DAMAGE = declare(
    __name__,
    __doc__,
    code="HDB308",
    severity=Severity.NOTE,
    safety=Safety.LOSSY,
    answers=("repair",),
    needs=("sessions.title",),
    reads=("messages", "sessions"),
    noun=("group of branches", "groups of branches"),
    sums=(("rows", "messages"), ("bytes", "bytes")),
    find=_find,
)
