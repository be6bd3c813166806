"""Sessions are their own ancestors: parents or markers form a loop.

What it means
-------------
Following `parent_session_id`, or what `_branched_from`, `_delegate_from` and `_reset_from` name, leads from a
session back to itself. Lists and resumes that walk the lineage stop after a hundred steps or never, and a delete
that goes down to sub-agents comes round to the session it began with: in a public report a delete took the parent
of the session that was to go.

Why it happens
--------------
Something else than Hermes wrote the links: a script that re-parented sessions, a merge of two stores that used
one id for different sessions, a marker patched in by hand to make a hidden session visible again.

Repair
------
By hand: which link of a loop is the wrong one, the rows do not say. The runbook shows how to look at the sessions
and how to take one link out.

Safety
------
Nothing is planned, and this tool deletes no session that is part of a loop. Both graphs count together: parents,
markers and a mixture of both. A marker that is no text, or that names a session that is gone, closes no loop.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...cycles import Cycle, find_cycles
from ...model import Finding, Safety, Severity
from .._declare import ScanContext, declare, printable

SHOWN = 20
"""Sessions of one loop that the evidence names; its count is exact."""

_OVER = {"parents": "parents", "markers": "markers", "both": "parents and markers together"}


def _find(context: ScanContext) -> Iterator[Finding]:
    for cycle in find_cycles(context.connection, context.has):
        yield _finding(cycle)


def _finding(cycle: Cycle) -> Finding:
    size = len(cycle.ids)
    who = (
        "a session that is its own ancestor"
        if size == 1
        else f"{size:,} sessions that are their own ancestors"
    )
    return DAMAGE.finding(
        table="sessions",
        key=cycle.ids[0],
        kind="itself" if size == 1 else "loop",
        message=f"{who}, over {_OVER[cycle.over]}",
        evidence={
            "sessions": size,
            "over": cycle.over,
            "session_ids": [printable(session) for session in cycle.ids[:SHOWN]],
        },
        session_ids=cycle.ids,
    )


DAMAGE = declare(
    __name__,
    __doc__,
    code="HDB305",
    severity=Severity.ERROR,
    safety=Safety.MANUAL,
    needs=("sessions.parent_session_id", "sessions.model_config"),
    reads=("sessions",),
    noun=("loop", "loops"),
    sums=(("sessions", "sessions"),),
    find=_find,
)
