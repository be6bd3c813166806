"""A session was never ended, and nobody has used it for a month

What it means
-------------
The session is open, without any message or other activity for 30 days (or as many as `--idle` says) before the file was last
used. It is harmless, but upstream's sweeps and prunes take ended sessions only, so such rows and their messages stay for ever;
in public reports from 29 % up to nearly all sessions of a store were open.

Why it happens
--------------
The process was killed, crashed or lost its connection before it wrote an end; some front ends of older releases never
write one.

Repair
------
Nothing is changed unless it is chosen. `close` ends the session at the time it was last used, with the reason
closed_idle_by_dbtools. Mind what follows: upstream's auto-prune deletes ended sessions by their age, with their messages;
measured on every release, a closed session that is old enough goes with the next prune, while the open one stayed.

Safety
------
Choice. Two columns of one row change; undo takes the end back, but not what a prune deleted since. Not reported: a session
that is live by the guard (lease, lock, ledger, registry), that a route or a topic names, or that a gateway which says it is
alive may still hold; one without title and messages (empty-sessions); one with a reason but no end
(inconsistent-end-state). A file that lies idle as a whole accuses nothing.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...model import Finding, Remedy, Safety, Severity, Statement, Value
from .._declare import DAY, ScanContext, declare, moment, printable, text
from ._activity import idle_since

REASON = "closed_idle_by_dbtools"
"""The reason of an end that we write: no release has such a word, so the rows can be told apart."""

FRESH = 1800.0
"""Seconds for which a backend's heartbeat says that it is alive: longer than any upstream waits between two."""

GRACE = 300.0
"""Seconds by which a backend may have started after a session that it holds (upstream's own sweep grants some)."""


def _find(context: ScanContext) -> Iterator[Finding]:
    before = idle_since(context)
    if before is None:
        return
    named: set[Value] | None = None
    owner = _oldest_backend(context)
    for row in DAMAGE.rows(context, "find", {"before": before}):
        session_id, (started, written, active) = text(row[0]), map(moment, row[1:])
        if started is None or session_id in context.live or (owner is not None and owner <= started + GRACE):
            continue
        named = _named(context) if named is None else named
        if session_id in named:
            continue
        last = max(at for at in (started, written, active) if at is not None)
        days = int((before + context.idle - last) // DAY)
        yield DAMAGE.finding(
            table="sessions",
            key=session_id,
            message=f"open, and idle for {days} days when the file was last used",
            evidence={"started_at": started, "last_used_at": last, "idle_days": days},
            session_ids=(session_id,),
            remedies=(Remedy("report", Safety.CHOICE), _close(session_id, last)),
        )


def _named(context: ScanContext) -> set[Value]:
    return {text(row[0]) for block in ("routed", "bound") for row in DAMAGE.rows(context, block)}


def _oldest_backend(context: ScanContext) -> float | None:
    """When the oldest backend that is alive started; None where none says that it is."""
    for count, started in DAMAGE.rows(context, "beating", {"since": context.now - FRESH}):
        if count:
            return moment(started) or 0.0
    return None


def _close(session_id: Value, last: float) -> Remedy:
    bindings: dict[str, Value] = {"session_id": session_id, "ended_at": last, "end_reason": REASON}
    step = DAMAGE.step(
        key=session_id,
        answer="close",
        title=f"close {printable(session_id)} (upstream's auto-prune may later delete what is closed, with its messages)",
        statements=(Statement("close", bindings, 1, "sessions", "update"),),
        session_ids=(session_id,),
    )
    return Remedy("close", Safety.CHOICE, step)


DAMAGE = declare(
    __name__,
    __doc__,
    code="HDB312",
    severity=Severity.NOTE,
    safety=Safety.CHOICE,
    answers=("report", "close"),
    reads=("gateway_heartbeats", "gateway_routing", "messages", "sessions", "telegram_dm_topic_bindings"),
    cedes_to=("HDB310",),
    noun=("session", "sessions"),
    find=_find,
)
