"""A session holds the same messages several times

What it means
-------------
Messages of one session are equal in role, content, calls and time. `archived` and `kept-tails`: among the messages that
compressions set aside; nothing reads them but search and clean-up, and they make the file grow without end.
`active`: among the messages that are sent; the model reads them twice.

Why it happens
--------------
Each compression in place writes the messages that it keeps once more, so a copy stays behind each time; a loop of
compressions made 86,000 rows of 31 texts in one public report (12 GB, one session), 3,814 rows of 15 messages in
another. Active copies come from a restore that put rows in again or from a message that was saved twice.

Repair
------
`remove` deletes the copies among the messages that a compression set aside; the first of each stays. Active copies are
never removed: the runbook says how to look at them.

Safety
------
Lossy, though every text stays once. Not reported: what a compression keeps and what it set aside, which are equal by
design; the few copies that ordinary compressions leave around their summaries (up to 1,000 or 10 MB in a session);
messages that a restore made active again; equal messages at different times.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from ...model import Finding, Remedy, Safety, Severity, Statement, Value
from ...sizes import counted
from .._declare import ScanContext, declare, printable, text
from ._copies import Copies, by_design, copies

MOST_KEPT = 1000
MOST_KEPT_BYTES = 10_000_000
"""Copies, and their bytes, that compressions may leave in one session without a word."""


def _find(context: ScanContext) -> Iterator[Finding]:
    for session in _suspects(context):
        found = copies(DAMAGE, context, session)
        for archived in (True, False):
            group = found.get(archived)
            if group is None:
                continue
            if not archived:
                yield _active(session, group)
            elif by_design(DAMAGE, context, session, group):
                if group.count > MOST_KEPT or group.size > MOST_KEPT_BYTES:
                    yield _archived(context, session, group, "kept-tails")
            else:
                yield _archived(context, session, group, "archived")


def _suspects(context: ScanContext) -> Sequence[Value]:
    """Sessions with two messages of the same time."""
    found = dict.fromkeys(session for (session,) in DAMAGE.rows(context, "same-time"))
    return [text(session) for session in found]


def _archived(context: ScanContext, session: Value, group: Copies, kind: str) -> Finding:
    statements = [_remove(session, group)]
    # A session counts its active messages, and all of them where none is active.
    if any(none for (none,) in DAMAGE.rows(context, "none-active", {"session": session})):
        statements.append(Statement("recount", {"session": session}, 1, "sessions", "update"))
    step = DAMAGE.step(
        key=session,
        answer="remove",
        title=f"remove {group.count:,} copies of messages from {printable(session)}",
        statements=tuple(statements),
        session_ids=(session,),
        bytes_freed=group.size,
    )
    return DAMAGE.finding(
        table="messages",
        key=session,
        kind=kind,
        message=f"{group.count:,} of its archived messages are copies of {counted(group.originals, 'other')}",
        evidence=_evidence(group) | {"session": printable(session)},
        session_ids=(session,),
        remedies=(Remedy("remove", Safety.LOSSY, step),),
    )


def _remove(session: Value, group: Copies) -> Statement:
    bindings: Mapping[str, Value] = {"session": session, "first": group.first, "last": group.last}
    return Statement("remove", bindings, group.count, "messages", "delete", split="remove-rows")


def _active(session: Value, group: Copies) -> Finding:
    return DAMAGE.finding(
        table="messages",
        key=f"{printable(session)} active",
        kind="active",
        message=f"{group.count:,} of its active messages are copies of {counted(group.originals, 'other')}",
        evidence=_evidence(group) | {"session": printable(session)},
        session_ids=(session,),
        remedies=(Remedy("remove", Safety.LOSSY, refused="an active message is never removed"),),
    )


def _evidence(group: Copies) -> dict[str, object]:
    return {
        "rows": group.count,
        "originals": group.originals,
        "most_of_one": group.most,
        "bytes": group.size,
        "first_id": group.first,
        "last_id": group.last,
    }


DAMAGE = declare(
    __name__,
    __doc__,
    code="HDB605",
    severity=Severity.WARNING,
    safety=Safety.LOSSY,
    answers=("remove",),
    reads=("messages", "sessions"),
    noun=("session", "sessions"),
    sums=(("rows", "copies"), ("bytes", "bytes")),
    find=_find,
)
