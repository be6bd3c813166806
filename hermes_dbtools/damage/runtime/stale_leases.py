"""Nobody holds a lease or lock any more.

What it means
-------------
A turn lease keeps two processes from writing to one conversation, a compression lock from compressing one session
twice. The row has run out, or the process that took it is gone, or no session has its id and the turn began more
than an hour ago. While it has not run out the session counts as busy, and its deletes are refused.

Why it happens
--------------
A process was killed in the middle of a turn. The store takes over a row that has run out when the same conversation
goes on, and sweeps old ones then; a conversation that does not go on keeps it.

Repair
------
The row is removed, as the store does it when it takes the next lease.

Safety
------
Exact, and only while nobody else has the file open: a holder that was merely stopped may renew a row that has run
out. A row that has not run out is only taken for stale where its process provably does not exist on this host:
never where the file may be shared with other hosts, where a gateway of another host served it within the last day,
or where the holder names no process. A row whose end cannot be read is invalid-timestamps. Holders are neither
printed nor kept in a plan.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from ...model import Finding, Remedy, Safety, Severity, Statement, Value
from ...processes import Processes, processes_of
from .._declare import ScanContext, declare, finite, printable
from ..references._adoption import identity

HELD = "others have the file open, and a holder among them may renew the row: stop them first"

HEARTBEAT = 86400.0
"""Seconds for which the host of a gateway is remembered, as the guard does."""

LONG = 3600.0
"""Seconds after which a turn of a session without a row is no longer the beginning of one."""

PLACES = (
    ("leases", "session_turn_leases", "drop-lease", "turn lease"),
    ("locks", "compression_locks", "drop-lock", "compression lock"),
)


def _find(context: ScanContext) -> Iterator[Finding]:
    processes: Processes | None = None
    for block, table, drop, what in PLACES:
        for value, storage, holder, taken_at, ends_at, there in DAMAGE.rows(context, block):
            processes = processes or _processes(context)
            kind = _kind(context.now, processes, holder, taken_at, ends_at, there=bool(there))
            if kind:
                session_id = identity(value, storage)
                remedy = _remedy(context, table, drop, what, session_id, ends_at)
                yield _finding(table, what, session_id, kind, taken_at, ends_at, bool(there), remedy)


def _processes(context: ScanContext) -> Processes:
    since = {"since": context.now - HEARTBEAT}
    hosts = [row[0] for row in context.rows("guard/seeds", "other-hosts", since)]
    return processes_of(
        context.file.path, (host.decode("utf-8", "replace") for host in hosts if isinstance(host, bytes))
    )


def _kind(
    now: float, processes: Processes, holder: Value, taken_at: Value, ends_at: Value, *, there: bool
) -> str:
    """Why the row is stale, or ''."""
    end = finite(ends_at)
    if end is None:
        return ""
    if end <= now:
        return "expired"
    if processes.holder_gone(holder):
        return "dead-holder"
    began = taken_at if isinstance(taken_at, int | float) else -math.inf
    return "missing-session" if not there and began < now - LONG else ""


def _remedy(
    context: ScanContext, table: str, drop: str, what: str, session_id: Value, ends_at: Value
) -> Remedy:
    refused = HELD if context.file.holders.held else None
    step = DAMAGE.step(
        key=f"{table} {printable(session_id)}",
        answer="remove",
        title=f"remove the stale {what} of {printable(session_id)}",
        statements=(Statement(drop, {"id": session_id, "expires_at": ends_at}, 1, table, "delete"),),
        session_ids=(session_id,),
    )
    return Remedy("remove", Safety.EXACT, None if refused else step, refused)


_WORDS = {
    "expired": "has run out",
    "dead-holder": "is held by a process that is gone",
    "missing-session": "is of a session that has no row",
}


def _finding(
    table: str,
    what: str,
    session_id: Value,
    kind: str,
    taken_at: Value,
    ends_at: Value,
    there: bool,
    remedy: Remedy,
) -> Finding:
    return DAMAGE.finding(
        table=table,
        key=f"{table} {printable(session_id)}",
        kind=kind,
        message=f"the {what} of {printable(session_id)} {_WORDS[kind]}",
        evidence={
            "session_id": printable(session_id),
            "acquired_at": finite(taken_at),
            "expires_at": finite(ends_at),
            "session_exists": there,
        },
        session_ids=(session_id,),
        remedies=(remedy, Remedy("report", Safety.EXACT)),
    )


DAMAGE = declare(
    __name__,
    __doc__,
    code="HDB903",
    severity=Severity.NOTE,
    safety=Safety.EXACT,
    answers=("remove", "report"),
    needs=("compression_locks.session_id",),
    reads=("compression_locks", "session_turn_leases", "sessions"),
    noun=("stale lease", "stale leases"),
    find=_find,
)
