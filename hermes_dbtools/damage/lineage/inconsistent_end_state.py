"""A session is half ended, or ended before it began

What it means
-------------
The time of the end and its reason belong together: releases write both or neither. A session with a time and no
reason is ended for some readers and open for others; one with a reason and no time is open for sweeps and
closed for lists; an end before the start makes ages, durations and the order of a compressed conversation
wrong.

Why it happens
--------------
One of the two columns was written by hand, as public reports advise for stuck sessions, and the other was not;
or a third-party program closed or reopened the session; or the clock of the machine was set back, or a restore
mixed two rows.

Repair
------
Nothing is changed unless it is chosen. `complete` writes the part that is missing or wrong: as the end the time
of the newest message (the start where there is none), but no later than the start of the first continuation or
branch, which lists compare with it; as the reason the words completed_by_dbtools. An end without a reason that
messages have overtaken moves to the newest of them. To reopen the session instead, see the runbook.

Safety
------
Choice. One row changes, and only the columns that are wrong. Not reported: `expiry_finalized`, which stays set
when a session is reopened; an end up to 5 seconds before the start, which two clocks make; times that cannot be
times, which are invalid-timestamps. A closed session may later be removed by upstream's own auto-prune, as
every ended session.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...model import Finding, Remedy, Safety, Severity, Statement, Value
from .._declare import ScanContext, declare, moment, printable, text

REASON = "completed_by_dbtools"
"""The reason of an end that had none; a word of our own, so that it can be told from what a release wrote."""

_MESSAGES = {
    "end-without-reason": "it has the time of an end and no reason",
    "reason-without-end": "it has the reason of an end and no time",
    "end-before-start": "it ended before it began",
}


def _find(context: ScanContext) -> Iterator[Finding]:
    for row in DAMAGE.rows(context, "find"):
        session_id, endless, reasonless = text(row[0]), bool(row[1]), bool(row[2])
        started, was, newest, child = map(moment, row[3:])
        kind = "reason-without-end" if endless else "end-without-reason" if reasonless else "end-before-start"
        yield DAMAGE.finding(
            table="sessions",
            key=session_id,
            kind=kind,
            message=_MESSAGES[kind],
            evidence={
                "started_at": started,
                "ended_at": was,
                "newest_at": newest,
                "first_child_at": child,
                "has_reason": not reasonless,
            },
            session_ids=(session_id,),
            remedies=(
                Remedy("report", Safety.CHOICE),
                _complete(session_id, row[4], reasonless, started, newest, child),
            ),
        )


def _complete(
    session_id: Value,
    stored: Value,
    reasonless: bool,
    started: float | None,
    newest: float | None,
    child: float | None,
) -> Remedy:
    was = moment(stored)
    bindings: dict[str, Value] = {"session_id": session_id, "was": stored}
    overtaken = reasonless and was is not None and newest is not None and newest > was + 60
    wrong_end = was is None or overtaken or (started is not None and was < started - 5)
    if wrong_end:
        bindings["ended_at"] = min((at for at in (newest, child) if at is not None), default=started)
    if reasonless:
        bindings["end_reason"] = REASON
    block = (
        "complete-both" if wrong_end and reasonless else "complete-end" if wrong_end else "complete-reason"
    )
    step = DAMAGE.step(
        key=session_id,
        answer="complete",
        title=f"complete the end of {printable(session_id)}",
        statements=(Statement(block, bindings, 1, "sessions", "update"),),
        session_ids=(session_id,),
    )
    return Remedy("complete", Safety.CHOICE, step)


DAMAGE = declare(
    __name__,
    __doc__,
    code="HDB310",
    severity=Severity.WARNING,
    safety=Safety.CHOICE,
    answers=("report", "complete"),
    reads=("messages", "sessions"),
    noun=("session", "sessions"),
    find=_find,
)
