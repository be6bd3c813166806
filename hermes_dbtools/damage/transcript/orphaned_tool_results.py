"""A message holds the result of a tool call that nothing has made

What it means
-------------
A tool message names a call, and no message of the session or of its lineage makes that call, not even one that was set
aside. Providers refuse a result without a call; Release 0.19 and newer leave it out each time they send the conversation.

Why it happens
--------------
The message with the call was removed by hand or by a script, lost in a recovery, or cut off when older releases rewrote
a conversation; the session that held it was deleted while its continuation lives on. Such pairs come apart in public
reports after a compression, and every request then fails with an error of the provider.

Repair
------
Nothing is changed unless it is chosen. `set-aside` makes the results inactive, as a rewind does: they are kept and no
longer sent.

Safety
------
Choice. Not reported: a result whose call a compression set aside, or that an ancestor or a continuation holds; a result
without an id; a result in a lineage with calls that cannot be read, for one of them may be its call (invalid-json).
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator

from ...model import Finding, Remedy, Safety, Severity, Value
from ...sizes import counted
from ...tool_calls import read_calls
from .._declare import ScanContext, declare, printable
from ._rows import by_session, lineage, set_aside, texts


def _find(context: ScanContext) -> Iterator[Finding]:
    for session, ids in by_session(context, context.sweep.run(context).pairing.strays):
        strays = _strays(context, session, ids)
        if strays:
            yield _finding(context, session, strays)


def _strays(context: ScanContext, session: Value, ids: array[int]) -> list[int]:
    """The messages among these whose call is nowhere; none where calls cannot be read."""
    strays: dict[str, list[int]] = {}
    for message_id, _calls, answered in texts(context, ids):
        if answered:
            strays.setdefault(answered.decode("utf-8", "replace"), []).append(message_id)
    if strays and not _take_out(context, session, strays):
        return []
    for other in lineage(context, session) if strays else ():
        if not _take_out(context, other, strays):
            return []
    return sorted(message_id for messages in strays.values() for message_id in messages)


def _take_out(context: ScanContext, session: Value, strays: dict[str, list[int]]) -> bool:
    """Take out the results whose call a session makes; False where a list of calls cannot be read."""
    for (encoded,) in DAMAGE.rows(context, "calls", {"session": session}):
        read = read_calls(encoded) if isinstance(encoded, bytes) else None
        if read is None:
            return False
        for call in read.calls:
            for name in call.ids:
                strays.pop(name, None)
        if not strays:
            return True
    return True


def _finding(context: ScanContext, session: Value, strays: list[int]) -> Finding:
    title = f"set aside {counted(len(strays), 'result')} without a call in {printable(session)}"
    remedy = set_aside(DAMAGE, context, session, strays, title)
    return DAMAGE.finding(
        table="messages",
        key=session,
        message=f"{counted(len(strays), 'result')} of a tool call that no message makes",
        evidence={"results": len(strays), "first_id": strays[0], "last_id": strays[-1]},
        session_ids=(session,),
        remedies=(Remedy("report", Safety.CHOICE), remedy),
    )


DAMAGE = declare(
    __name__,
    __doc__,
    code="HDB602",
    severity=Severity.NOTE,
    safety=Safety.CHOICE,
    answers=("report", "set-aside"),
    reads=("messages", "sessions"),
    noun=("session", "sessions"),
    sums=(("results", "results"),),
    find=_find,
)
