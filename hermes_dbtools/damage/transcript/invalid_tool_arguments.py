"""A tool call has arguments that are not a JSON object

What it means
-------------
`function.arguments` of a call is text that does not parse as JSON, or JSON that is no object. Providers refuse the
whole conversation each time it is sent, so the session cannot go on. Newer releases replace such arguments by empty
ones in what they send; what is stored stays as it is.

Why it happens
--------------
The answer of a model was cut off in the middle of a call, or a compression or a user interface wrote a shortened or
placeholder text in the place of the arguments. In public reports one gateway had to be stopped four times in a day,
and rows were removed by hand to make the session work again.

Repair
------
Nothing is changed unless it is chosen. `set-aside` makes the message with the call and the results of its calls
inactive, as a rewind does: they are kept and no longer sent.

Safety
------
Choice. Arguments that are empty, blank or missing are accepted upstream and not reported, nor are arguments stored as
an object instead of text, nor messages that are not active. Arguments that were replaced by `{}` cannot be told from
real ones.
"""

from __future__ import annotations

from array import array
from collections.abc import Collection, Iterator
from dataclasses import dataclass

from ...model import Finding, Remedy, Safety, Severity, Value
from ...sizes import counted
from ...tool_calls import read_calls
from .._declare import ScanContext, declare, printable, whole
from ._rows import by_session, set_aside, texts


@dataclass(frozen=True, slots=True)
class _Broken:
    """What is wrong in one session: calls, their messages, and the results that go with them."""

    calls: int
    messages: list[int]
    results: list[int]


def _find(context: ScanContext) -> Iterator[Finding]:
    for session, ids in by_session(context, context.sweep.run(context).pairing.broken):
        broken = _broken(context, session, ids)
        if broken.calls:
            yield _finding(context, session, broken)


def _broken(context: ScanContext, session: Value, ids: array[int]) -> _Broken:
    calls: dict[int, int] = {}
    for message_id, encoded, _answered in texts(context, ids):
        read = read_calls(encoded or b"")
        if found := sum(call.arguments_broken for call in read.calls) if read and read.sent else 0:
            calls[message_id] = found
    return _Broken(sum(calls.values()), sorted(calls), list(_results(context, session, calls)))


def _results(context: ScanContext, session: Value, messages: Collection[int]) -> Iterator[int]:
    """The active results that follow each of these messages up to the next message that is none."""
    follows = False
    for message_id, is_result in DAMAGE.rows(context, "order", {"session": session}) if messages else ():
        if not is_result:
            follows = message_id in messages
        elif follows:
            yield whole(message_id)


def _finding(context: ScanContext, session: Value, broken: _Broken) -> Finding:
    title = (
        f"set aside {counted(len(broken.messages), 'message')} with broken calls and "
        f"{counted(len(broken.results), 'result')} in {printable(session)}"
    )
    remedy = set_aside(DAMAGE, context, session, (*broken.messages, *broken.results), title)
    return DAMAGE.finding(
        table="messages",
        key=session,
        message=f"{counted(broken.calls, 'tool call')} with arguments that are no JSON object",
        evidence={
            "calls": broken.calls,
            "messages": len(broken.messages),
            "results": len(broken.results),
            "first_id": broken.messages[0],
            "last_id": broken.messages[-1],
        },
        session_ids=(session,),
        remedies=(Remedy("report", Safety.CHOICE), remedy),
    )


DAMAGE = declare(
    __name__,
    __doc__,
    code="HDB603",
    severity=Severity.ERROR,
    safety=Safety.CHOICE,
    answers=("report", "set-aside"),
    reads=("messages", "sessions"),
    noun=("session", "sessions"),
    sums=(("calls", "calls"),),
    find=_find,
)
