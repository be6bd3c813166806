"""A session that its user deleted is there again.

What it means
-------------
The id has a tombstone, which says that the session was deleted on purpose, and a row in `sessions`. The runtime
believes the tombstone: it answers only requests that were made before the delete and refuses every new one, while
lists show the session as if it could be used.

Why it happens
--------------
Something made the row again that does not look at tombstones: an older release on the same file, token accounting
for a turn that ended after the delete, an import, or a restore of single tables.

Repair
------
By hand: whether the session should be there, only its user knows. The runbook shows both ways.

Safety
------
Nothing is planned. A tombstone without a session row is how every delete ends; messages without a row under a
tombstone are orphaned-messages, which never adopts them.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...model import Finding, Safety, Severity
from .._declare import ScanContext, declare, finite, printable, text


def _find(context: ScanContext) -> Iterator[Finding]:
    for value, started_at, ended_at, spoken in DAMAGE.rows(context, "find"):
        session_id = text(value)
        yield DAMAGE.finding(
            table="sessions",
            key=session_id,
            kind="with-messages" if spoken else "empty",
            message=f"{printable(session_id)} was deleted by its user and is there again"
            + ("" if spoken else ", without a message"),
            evidence={
                "started_at": finite(started_at),
                "ended_at": finite(ended_at),
                "has_messages": bool(spoken),
            },
            session_ids=(session_id,),
        )


DAMAGE = declare(
    __name__,
    __doc__,
    code="HDB905",
    severity=Severity.WARNING,
    safety=Safety.MANUAL,
    needs=("state_meta.key", "sessions.id"),
    reads=("messages", "sessions", "state_meta"),
    noun=("session", "sessions"),
    find=_find,
)
