"""A chat is routed to a session that is not there, or under the key of another chat.

What it means
-------------
`gateway_routing` sends the next message of a chat to a session id that `sessions` does not have. The gateway
keeps such a route and goes on under the old id: a new, empty session of that id appears, or, where the id has
a tombstone or cannot be used, the message is refused. The kind `key-mismatch` is a route that is kept under one
chat's key while its entry says another: one chat is answered in the name of another.

Why it happens
--------------
Up to 0.19 every delete leaves the routes of its session; so do scripts and other user interfaces. In a public
report an agent held such an id and no message could be saved. A key that does not match comes from a copied or
edited row.

Repair
------
`drop` removes the route: the next message of that chat finds its newest open session again or begins a new one.
Where messages of the id are left, orphaned-messages adopts the session and nothing is reported here.

Safety
------
Dropping loses which session the chat was in, and what its entry remembers, so it is planned only with
`--allow-lossy`; undo brings it back. A route to a session that merely ended, and one whose entry cannot be
read, are other damage. On files with a ledger the routes of a session that was provably deleted are
branched-root-leftovers. Chat keys are neither printed nor kept in a plan.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ...model import Finding, Remedy, Safety, Severity, Statement, Value
from ...sizes import counted
from .._declare import ScanContext, declare, printable, text, whole
from ._missing import adopted_ids

TABLE = "gateway_routing"

_UNSAFE = re.compile(r"\.\.|[/\\]|^[A-Za-z]:")
"""Ids that the gateway refuses when it loads a route, for they could lead out of a folder (its session.py)."""


def _find(context: ScanContext) -> Iterator[Finding]:
    rows = [(text(row[0]), *row[1:]) for row in DAMAGE.rows(context, "missing")]
    adopted = adopted_ids(context, (row[0] for row in rows))
    for session_id, count, used, tombstoned in rows:
        if session_id not in adopted:
            yield _missing(session_id, whole(count), whole(used), tombstoned=bool(tombstoned))
    for value, count, used in DAMAGE.rows(context, "mismatched"):
        yield _mismatched(text(value), whole(count), whole(used))


def _missing(session_id: Value, routes: int, used: int, *, tombstoned: bool) -> Finding:
    unusable = not isinstance(session_id, str) or _UNSAFE.search(session_id) is not None
    fails = tombstoned or unusable
    return DAMAGE.finding(
        table=TABLE,
        key=session_id,
        kind="missing-session",
        severity=Severity.WARNING if fails else Severity.NOTE,
        message=f"{counted(routes, 'route')} to a session that has no row"
        + ("; the gateway cannot use it" if fails else ""),
        evidence={"routes": routes, "in_use": used, "tombstoned": tombstoned, "unusable_id": unusable},
        session_ids=(session_id,),
        remedies=_remedies(session_id, session_id, routes, "drop-missing", "to missing session"),
    )


def _mismatched(session_id: Value, routes: int, used: int) -> Finding:
    key = f"key-mismatch {printable(session_id)}"
    return DAMAGE.finding(
        table=TABLE,
        key=key,
        kind="key-mismatch",
        severity=Severity.WARNING,
        message=f"{counted(routes, 'route')} to {printable(session_id)} kept under another chat's key",
        evidence={"session_id": printable(session_id), "routes": routes, "in_use": used},
        session_ids=(session_id,),
        remedies=_remedies(key, session_id, routes, "drop-mismatched", "under a wrong key to"),
    )


def _remedies(key: Value, session_id: Value, routes: int, block: str, what: str) -> tuple[Remedy, ...]:
    step = DAMAGE.step(
        key=key,
        answer="drop",
        title=f"drop {counted(routes, 'route')} {what} {printable(session_id)}",
        statements=(Statement(block, {"id": session_id}, routes, TABLE, "delete"),),
        session_ids=(session_id,),
    )
    return Remedy("drop", Safety.LOSSY, step), Remedy("report", Safety.EXACT)


DAMAGE = declare(
    __name__,
    __doc__,
    code="HDB207",
    severity=Severity.NOTE,
    safety=Safety.LOSSY,
    answers=("drop", "report"),
    needs=("gateway_routing.entry_json", "gateway_routing.session_key"),
    reads=("gateway_routing", "messages", "sessions", "state_meta"),
    noun=("lost target", "lost targets"),
    sums=(("routes", "routes"),),
    extent="session",
    find=_find,
)
