"""An upgrade took a chat for the run of a sub-agent, and no list shows it any more

What it means
-------------
The chat carries the marker `_delegate_from` with the word `__orphaned__` instead of a session. Every release since 0.17
leaves sessions with that marker out of its lists, for ever; the messages are all there, and search finds them.

Why it happens
--------------
The step to schema 16, which runs once at the first start of 0.17 or later, marks every session without parent, title and
children that has a tool's answer and at most 25 messages: sub-agents whose parent was deleted look so, and so does every
short chat that used a tool and was never given a title. Measured: an upgrade from 0.13 to 0.19 hid five real chats.

Repair
------
Nothing is changed unless it is chosen. `strip` takes the marker out, and the chat is listed again.

Safety
------
Choice, because nothing in a row tells such a chat from a sub-agent's run of 0.13 or 0.16, which had the source of its parent:
one with a single message of a user may be one. `evidence.user_messages` and the runbook help to tell them apart. One value of one
row changes. Not reported: sessions of the sources subagent, tool, cron and unknown; those without a message of a user; those
with a parent.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...model import Finding, Remedy, Safety, Severity, Statement
from .._declare import ScanContext, declare, moment, printable, text, whole


def _find(context: ScanContext) -> Iterator[Finding]:
    for row in DAMAGE.rows(context, "find"):
        session_id = text(row[0])
        statement = Statement("strip", {"session_id": session_id}, 1, "sessions", "update")
        step = DAMAGE.step(
            key=session_id,
            answer="strip",
            title=f"take the marker of the upgrade out of {printable(session_id)}",
            statements=(statement,),
            session_ids=(session_id,),
        )
        yield DAMAGE.finding(
            table="sessions",
            key=session_id,
            message=f"a chat with {whole(row[2]):,} messages that no list shows since an upgrade",
            evidence={
                "started_at": moment(row[1]),
                "messages": whole(row[2]),
                "user_messages": whole(row[3]),
                "titled": bool(row[4]),
            },
            session_ids=(session_id,),
            remedies=(Remedy("report", Safety.CHOICE), Remedy("strip", Safety.CHOICE, step)),
        )


DAMAGE = declare(
    __name__,
    __doc__,
    code="HDB315",
    severity=Severity.WARNING,
    safety=Safety.CHOICE,
    answers=("report", "strip"),
    reads=("messages", "sessions"),
    noun=("chat", "chats"),
    sums=(("messages", "messages"),),
    find=_find,
)
