"""A message calls a tool and no result of the call is there

What it means
-------------
An assistant message asks for a tool, and no message of the session, nor of the sessions it goes on in, holds the
result. Providers refuse such a conversation as a whole. Release 0.19 and newer put a stub in the place of the result
each time they send it; older ones fail with each request until the messages are no longer sent.

Why it happens
--------------
The agent was stopped, crashed or was cut off between the call and its result. Public reports tell of a gateway that was
wedged because the last message of a session was such a call, and of calls without results after a compression.

Repair
------
Nothing is changed unless it is chosen. `answer` adds a result that says that the real one was lost, for calls of the
session's last turn: there it stands next to its call.

Safety
------
Choice. A new message always comes last, so calls of earlier turns cannot be answered in their place and are only
reported. Not reported: the last call of a session that is live, whose result may still come; a call whose result the
continuation after a compression holds; calls without an id; messages that are not active; messages with broken calls
(invalid-tool-arguments).
"""

from __future__ import annotations

import json
from array import array
from collections.abc import Iterator, Mapping

from ...model import Finding, Remedy, Safety, Severity, Statement, Value
from ...sizes import counted
from ...tool_calls import read_calls
from .._declare import ScanContext, declare, printable, whole
from ._rows import by_session, last_spoken, lineage, texts

NOTE = "[hermes-dbtools] The result of this call was lost: its turn was cut off."
Waiting = dict[int, list[tuple[str, ...]]]
"""Calls without result by message, each as the ids that a result may name."""


def _find(context: ScanContext) -> Iterator[Finding]:
    # Ids are given out here, so that the search index knows the rows before they are there.
    start = next((whole(found) for (found,) in DAMAGE.rows(context, "next-id")), 1)
    for session, ids in by_session(context, context.sweep.run(context).pairing.unanswered):
        waiting = _waiting(context, session, ids)
        if not waiting:
            continue
        last = last_spoken(context, session)
        earlier = {message_id: calls for message_id, calls in waiting.items() if message_id != last}
        if last in waiting and session not in context.live:
            yield _last_turn(session, last, waiting[last], start)
            start += len(waiting[last])
        if earlier:
            yield _finding(session, f"{printable(session)} earlier", "earlier-turns", earlier, _TOO_LATE)


def _waiting(context: ScanContext, session: Value, ids: array[int]) -> Waiting:
    waiting: Waiting = {}
    for message_id, encoded, _answered in texts(context, ids):
        read = read_calls(encoded or b"")
        if read is None or not read.sent or any(call.arguments_broken for call in read.calls):
            continue
        if calls := [call.ids for call in read.calls if call.ids]:
            waiting[message_id] = calls
    _without(waiting, context, "results", session)
    for other in lineage(context, session) if waiting else ():
        _without(waiting, context, "all-results", other)
    return waiting


def _without(waiting: Waiting, context: ScanContext, block: str, session: Value) -> None:
    """Take out the calls that a result of this session answers."""
    wanted = {name for calls in waiting.values() for ids in calls for name in ids}
    there = set()
    for (name,) in DAMAGE.rows(context, block, {"session": session}):
        if isinstance(name, bytes) and (answered := name.decode("utf-8", "replace")) in wanted:
            there.add(answered)
    for message_id, calls in list(waiting.items()) if there else ():
        left = [ids for ids in calls if not there.intersection(ids)]
        if left:
            waiting[message_id] = left
        else:
            del waiting[message_id]


def _last_turn(session: Value, message_id: int, calls: list[tuple[str, ...]], start: int) -> Finding:
    key = printable(session)
    return _finding(
        session, key, "last-turn", {message_id: calls}, _answer(session, message_id, calls, start)
    )


def _finding(session: Value, key: str, kind: str, waiting: Waiting, remedy: Remedy) -> Finding:
    calls = sum(map(len, waiting.values()))
    where = "its last turn" if kind == "last-turn" else "earlier turns"
    return DAMAGE.finding(
        table="messages",
        key=key,
        kind=kind,
        message=f"{counted(calls, 'call')} of {where} without a result",
        evidence={
            "session": printable(session),
            "calls": calls,
            "messages": len(waiting),
            "first_id": min(waiting),
            "last_id": max(waiting),
        },
        session_ids=(session,),
        remedies=(Remedy("report", Safety.CHOICE), remedy),
    )


def _answer(session: Value, message_id: int, calls: list[tuple[str, ...]], start: int) -> Remedy:
    names = sorted({ids[0] for ids in calls})
    if not all(name.isascii() and name.isprintable() for name in names):
        return Remedy("answer", Safety.CHOICE, refused="the id of a call is no plain text")
    bindings: Mapping[str, Value] = {
        "session": session,
        "message": message_id,
        "calls": json.dumps(names),
        "note": NOTE,
        "start": start,
        "first": start,
        "last": start + len(names) - 1,
    }
    statements = (
        Statement("answer", bindings, len(names), "messages", "insert", split="answer-rows"),
        Statement("recount", {"session": session}, 1, "sessions", "update"),
    )
    title = f"answer {counted(len(names), 'call')} of the last turn of {printable(session)}"
    step = DAMAGE.step(
        key=session, answer="answer", title=title, statements=statements, session_ids=(session,)
    )
    return Remedy("answer", Safety.CHOICE, step)


_TOO_LATE = Remedy(
    "answer",
    Safety.CHOICE,
    refused="a new message comes last: a result for a call of an earlier turn would not stand next to it",
)

DAMAGE = declare(
    __name__,
    __doc__,
    code="HDB601",
    severity=Severity.NOTE,
    safety=Safety.CHOICE,
    answers=("report", "answer"),
    reads=("messages", "sessions"),
    noun=("session", "sessions"),
    sums=(("calls", "calls"),),
    find=_find,
)
