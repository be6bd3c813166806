"""Messages without an active flag: the agent forgets them

What it means
-------------
Every reader of the store asks for messages whose flag is 1. Where it is NULL the message is on disk but
neither shown, nor sent to the model, nor found again: the conversation seems to start anew.

Why it happens
--------------
The column was added to an older file without its NOT NULL and its default (a hand-made or interrupted
upgrade, a restored table), so rows written by code that relies on the default get NULL. Newer releases set
the flag when they open the store for writing, which is why a running gateway shows it most.

Repair
------
The flag becomes 1, and 0 where the row is marked as set aside by a compaction: that is what those rows had.

Safety
------
Exact. Only NULL flags are written. A file whose messages have no such column (0.13) is not judged.
"""

from __future__ import annotations

from collections.abc import Iterable

from ...model import Finding, Remedy, Safety, Severity, Statement
from .._declare import ScanContext, declare, printable, text, whole


def _find(context: ScanContext) -> Iterable[Finding]:
    for session, rows, compacted, first, last in DAMAGE.rows(context, "find"):
        session_id = text(session)
        count, aside = whole(rows), whole(compacted)
        statement = Statement(
            block="repair",
            bindings={"session_id": session_id, "first": first, "last": last},
            expect=count,
            table="messages",
            operation="update",
            split="repair-rows",
        )
        step = DAMAGE.step(
            key=session_id,
            answer="repair",
            title=f"set the active flag of {count} messages of {printable(session_id)}",
            statements=(statement,),
            session_ids=(session_id,),
        )
        yield DAMAGE.finding(
            table="messages",
            key=session_id,
            message=f"{count} messages have no active flag and are not read: {count - aside} live, "
            f"{aside} set aside by a compaction",
            evidence={"messages": count, "compacted": aside, "first_id": first, "last_id": last},
            session_ids=(session_id,),
            remedies=(Remedy("repair", Safety.EXACT, step),),
        )


DAMAGE = declare(
    __name__,
    __doc__,
    code="HDB404",
    severity=Severity.ERROR,
    safety=Safety.EXACT,
    answers=("repair",),
    needs=("messages.active",),
    reads=("messages",),
    noun=("session", "sessions"),
    sums=(("messages", "messages"),),
    find=_find,
)
