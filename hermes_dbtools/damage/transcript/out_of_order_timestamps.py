"""The times of a session's messages run backwards

What it means
-------------
An active message carries an earlier time than the one before it. The order that counts is that of the ids, and Hermes
reads by it, so nothing breaks there; whatever sorts by time (exports, other readers) tears calls from their results.

Why it happens
--------------
The clock of the machine was set back (a virtual machine or a laptop that slept, a time server), rows were put in again
by a restore or a merge, or a script wrote times of its own.

Repair
------
By hand: which of the times is right cannot be told from the rows. The runbook says how to look.

Safety
------
Manual. Not reported, for stores make it so: sessions with compacted messages and continuations of a compression, whose
kept messages keep their old times behind a new summary; what follows a summary; steps back of up to a second; times
that are none (invalid-timestamps).
"""

from __future__ import annotations

from collections.abc import Iterator

from ...model import Finding, Safety, Severity, Value
from ...sizes import counted
from .._declare import ScanContext, declare, text, whole

STEP = 1.0
"""Seconds by which a clock may be set back without a word."""


def _find(context: ScanContext) -> Iterator[Finding]:
    for session in _suspects(context):
        if next((bool(found) for (found,) in DAMAGE.rows(context, "compacted", {"session": session})), True):
            continue
        back = [row for row in DAMAGE.rows(context, "back", {"session": session, "step": STEP}) if not row[2]]
        if back:
            yield _finding(session, back)


def _suspects(context: ScanContext) -> list[Value]:
    """Sessions in which the order of times is not that of ids: some id is smaller than the one before it in time."""
    suspects: list[Value] = []
    session: Value = None
    last: Value = 0
    flagged = False
    for this, message_id in DAMAGE.rows(context, "by-time"):
        if this != session:
            session, flagged = this, False
        elif message_id < last and not flagged:  # type: ignore[operator]
            suspects.append(text(this))
            flagged = True
        last = message_id
    return suspects


def _finding(session: Value, back: list[tuple[Value, ...]]) -> Finding:
    steps = [float(step) for _id, step, _summary in back if isinstance(step, int | float)]
    return DAMAGE.finding(
        table="messages",
        key=session,
        message=f"time runs backwards at {counted(len(back), 'message')}, by up to {max(steps):,.0f} s",
        evidence={
            "messages": len(back),
            "first_id": whole(back[0][0]),
            "last_id": whole(back[-1][0]),
            "largest_step_seconds": max(steps),
        },
        session_ids=(session,),
    )


DAMAGE = declare(
    __name__,
    __doc__,
    code="HDB604",
    severity=Severity.NOTE,
    safety=Safety.MANUAL,
    reads=("messages", "sessions"),
    noun=("session", "sessions"),
    sums=(("messages", "messages"),),
    find=_find,
)
