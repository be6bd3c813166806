"""A session has ended and goes on

What it means
-------------
A session is closed, and yet messages were written to it more than a minute after its end, or a route that is in use
still sends a chat to it. Lists call it ended, sweeps may take it for finished and remove it with its messages,
compression refuses it, and the gateway may begin a new, empty session for every message.

Why it happens
--------------
A sweep closed a chat that was alive (in public reports as ws_orphan_reap, with a new empty session for each message), an
old close stamp was never cleared when the session was used again (an over-long session could then not be
compressed any more), or routing kept naming an ended row (messages were dropped for hours without a word).

Repair
------
Nothing is changed unless it is chosen. `reopen` clears the end and its reason, as a resume in upstream does.

Safety
------
Choice. Reopening is refused where it would break more than it mends: for a session that a reset ended on purpose
(reopening undoes the reset), for one that a compression ended and that has a continuation (there would be two
tips), for one whose branches are listed only while it has ended as branched (they would disappear), and for a
chat that no route names. Not reported: a route to a session that a reset, a pause or a compression ended, which is
how the gateway remembers it; a suspended route; a session that ended as branched and has no branch, or as compressed
and has no continuation, which are other damage; messages up to a minute late.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...model import Finding, Remedy, Safety, Severity, Statement, Value
from ...sizes import counted
from .._declare import ScanContext, declare, moment, printable, text, whole

_REFUSALS = {
    "reset": "a reset ended it on purpose: reopening would undo that",
    "compression": "its compressed conversation goes on elsewhere: reopening would make two tips",
    "branched": "branches without a marker are listed only while it has ended as branched",
}


def _find(context: ScanContext) -> Iterator[Finding]:
    for row in DAMAGE.rows(context, "find"):
        session_id, ended_by, late = text(row[0]), str(row[2]), whole(row[4])
        chat, routed, in_use, plain_children = map(bool, row[5:])
        kind = "later-messages" if late else "routed"
        yield DAMAGE.finding(
            table="sessions",
            key=session_id,
            kind=kind,
            message=f"it ended, and {counted(late, 'message')} came more than a minute later"
            if late
            else "it ended, and a route that is in use sends a chat to it",
            evidence={
                "ended_at": moment(row[1]),
                "newest_message_at": moment(row[3]),
                "messages": late,
                "routed": routed,
                "route_in_use": in_use,
            },
            session_ids=(session_id,),
            remedies=(
                Remedy("report", Safety.CHOICE),
                _reopen(session_id, row[1], _refusal(ended_by, plain_children, chat and not routed)),
            ),
        )


def _refusal(ended_by: str, plain_children: bool, chat_without_route: bool) -> str:
    if ended_by == "reset" or (ended_by and plain_children):
        return _REFUSALS[ended_by]
    if chat_without_route:
        return "no route names this chat: reopening could revive one whose end was deleted"
    return ""


def _reopen(session_id: Value, ended_at: Value, refusal: str) -> Remedy:
    if refusal:
        return Remedy("reopen", Safety.CHOICE, refused=refusal)
    statement = Statement("reopen", {"session_id": session_id, "ended_at": ended_at}, 1, "sessions", "update")
    step = DAMAGE.step(
        key=session_id,
        answer="reopen",
        title=f"reopen {printable(session_id)}",
        statements=(statement,),
        session_ids=(session_id,),
    )
    return Remedy("reopen", Safety.CHOICE, step)


DAMAGE = declare(
    __name__,
    __doc__,
    code="HDB311",
    severity=Severity.WARNING,
    safety=Safety.CHOICE,
    answers=("report", "reopen"),
    reads=("gateway_routing", "messages", "sessions"),
    cedes_to=("HDB306", "HDB310"),
    noun=("session", "sessions"),
    sums=(("messages", "messages"),),
    find=_find,
)
