"""Compression closed a session, and nothing continues it

What it means
-------------
A compression ends a session and goes on in a new one. Here the new one does not exist: the session is closed for good
and every release rejects what is written to it, while lists show it as if it went on. It is an error where it is in
use all the same: messages later than a minute after its end, or a route that sends a chat to it.

Why it happens
--------------
The compression closed the session and failed before it made the continuation (in a public report a session of
12,132 messages rejected every write since). Or the user deleted the continuation: releases then leave what it
continued as it was, so such a session by itself is no more than a note.

Repair
------
Only reported unless asked. `reopen` clears the end, as operators do by hand: the session is open, its messages are
what they were, and the next compression closes it again.

Safety
------
Choice; undo closes it again. What continues a session: any session under it, ended or not, that no marker ties to it
and that is no tool run. Not reported: a session that has one; a live one, and one closed within the last quarter of an
hour in a file that is in use, for its continuation may be on the way; a tool run. The session of a chat is not
reopened where no route names it: that would revive a chat whose end was deleted.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...model import Finding, Remedy, Safety, Severity, Statement, Value
from .._declare import ScanContext, declare, moment, printable, text, whole

UNDER_WAY = 900.0
"""Seconds for which a compression in a file that is held may still make its continuation."""


def _find(context: ScanContext) -> Iterator[Finding]:
    live = frozenset(context.live)
    for session, ended, newest, rows, late, of_chat, routed, in_use in DAMAGE.rows(context, "find"):
        session_id, ended_at = text(session), moment(ended)
        if session_id in live or _under_way(context, ended_at):
            continue
        used = bool(late) or bool(in_use)
        why = "it is in use" if used else "nothing uses it"
        yield DAMAGE.finding(
            table="sessions",
            key=session_id,
            kind="in-use" if used else "unused",
            severity=Severity.ERROR if used else Severity.NOTE,
            message=f"closed by a compression, and nothing continues it: every write is rejected; {why}",
            evidence={
                "ended_at": ended_at,
                "newest_message_at": moment(newest),
                "rows": whole(rows),
                "messages_after_end": whole(late),
                "routed": bool(in_use),
            },
            session_ids=(session_id,),
            remedies=(
                Remedy("report", Safety.CHOICE),
                _reopen(session_id, chat_without_route=bool(of_chat) and not routed),
            ),
        )


def _under_way(context: ScanContext, ended_at: float | None) -> bool:
    return context.file.holders.held and ended_at is not None and context.now - ended_at < UNDER_WAY


def _reopen(session_id: Value, *, chat_without_route: bool) -> Remedy:
    if chat_without_route:
        reason = "no route names this chat: reopening could revive one whose end was deleted"
        return Remedy("reopen", Safety.CHOICE, refused=reason)
    step = DAMAGE.step(
        key=session_id,
        answer="reopen",
        title=f"reopen {printable(session_id)}, which nothing continues",
        statements=(Statement("reopen", {"session_id": session_id}, 1, "sessions", "update"),),
        session_ids=(session_id,),
    )
    return Remedy("reopen", Safety.CHOICE, step)


DAMAGE = declare(
    __name__,
    __doc__,
    code="HDB306",
    severity=Severity.ERROR,
    safety=Safety.CHOICE,
    answers=("report", "reopen"),
    reads=("gateway_routing", "messages", "sessions"),
    noun=("session", "sessions"),
    sums=(("rows", "messages"),),
    find=_find,
)
