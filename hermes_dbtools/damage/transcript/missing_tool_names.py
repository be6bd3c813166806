"""The result of a tool call does not say which tool it is of, though its call does

What it means
-------------
`tool_name` of a tool message is empty. Search by tool does not find it, reports by tool leave it out, and a provider
that wants the name with each result refuses the conversation. The call that it answers names the tool.

Why it happens
--------------
Releases and other programs that wrote the result without the name: in a public report every result of a store lacked it.

Repair
------
The name is taken from the call with the same id in the same session.

Safety
------
Exact. An id that calls of different tools share decides nothing and is not reported; nor is a result without a call in
its session, a call without a name, or a message that is not active. Names that are there are never changed.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...model import Finding, Remedy, Safety, Severity, Statement, Value
from ...sizes import counted
from .._declare import ScanContext, declare, printable, whole
from ._rows import by_session


def _find(context: ScanContext) -> Iterator[Finding]:
    for session, _ids in by_session(context, context.sweep.run(context).rows("unnamed")):
        for count, first, last in DAMAGE.rows(context, "nameable", {"session": session}):
            if count:
                yield _finding(session, whole(count), whole(first), whole(last))


def _finding(session: Value, count: int, first: int, last: int) -> Finding:
    statement = Statement(
        "repair",
        {"session": session, "first": first, "last": last},
        count,
        "messages",
        "update",
        split="repair-rows",
    )
    step = DAMAGE.step(
        key=session,
        answer="repair",
        title=f"name the tool of {counted(count, 'result')} in {printable(session)}",
        statements=(statement,),
        session_ids=(session,),
    )
    return DAMAGE.finding(
        table="messages",
        key=session,
        message=f"{counted(count, 'result')} without the name of the tool, which the call has",
        evidence={"results": count, "first_id": first, "last_id": last},
        session_ids=(session,),
        remedies=(Remedy("repair", Safety.EXACT, step),),
    )


DAMAGE = declare(
    __name__,
    __doc__,
    code="HDB607",
    severity=Severity.NOTE,
    safety=Safety.EXACT,
    answers=("repair",),
    reads=("messages", "sessions"),
    noun=("session", "sessions"),
    sums=(("results", "results"),),
    find=_find,
)
