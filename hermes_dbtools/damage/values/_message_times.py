"""The unsound times of messages, one session at a time; judges through `_times`."""

from __future__ import annotations

import json
from collections.abc import Iterator

from ...model import Finding, Remedy, Safety, Statement, Value
from ...sizes import counted
from .._declare import Damage, ScanContext, printable, whole
from ._times import Answers, Moment, Span, answers, sound

CANNOT_UNDO = "it is NULL in a column that must not be NULL: an undo could not put it back"


def message_findings(
    damage: Damage, context: ScanContext, session: Value, start: float | None
) -> Iterator[Finding]:
    """A finding for each thing that can be done about the unsound times of one session's messages."""
    not_null = context.shape.tables["messages"].columns["timestamp"].not_null
    moments = [
        Moment(whole(id_), value, kind == "null")
        for id_, kind, value in damage.rows(context, "moments", {"session_id": session})
    ]
    around = {"first": moments[0].id, "last": moments[-1].id}
    before: Value = None
    after: Value = None
    if not any(sound(moment.value) for moment in moments):
        ((before, after),) = damage.rows(context, "around", around)
    found = answers(moments, Span(start, context.now, sound(before), sound(after)))
    nulls = {moment.id for moment in moments if moment.null and not_null}
    if found.divided:
        yield _message_finding(
            damage, session, "divide", list(found.divided), _divisions(found), Safety.EXACT
        )
    estimated = {id_: time for id_, time in found.estimated.items() if id_ not in nulls}
    if estimated:
        values = json.dumps([[id_, time] for id_, time in sorted(estimated.items())])
        one = Statement("estimate-messages", {"values": values}, len(estimated), "messages", "update")
        yield _message_finding(damage, session, "interpolate", list(estimated), (one,), Safety.LOSSY)
    if unknown := [id_ for id_ in found.unknown if id_ not in nulls]:
        yield _message_finding(damage, session, "manual", unknown, (), Safety.MANUAL)
    if nulls:
        yield _message_finding(damage, session, "null", sorted(nulls), (), Safety.LOSSY)


def _divisions(found: Answers) -> tuple[Statement, ...]:
    statements = []
    for by in sorted(set(found.divided.values())):
        ids = [id_ for id_, one in found.divided.items() if one == by]
        bindings: dict[str, Value] = {"ids": json.dumps(ids), "by": by}
        statements.append(Statement("divide-messages", bindings, len(ids), "messages", "update"))
    return tuple(statements)


def _message_finding(
    damage: Damage,
    session: Value,
    kind: str,
    ids: list[int],
    statements: tuple[Statement, ...],
    safety: Safety,
) -> Finding:
    words = {
        "divide": "in milliseconds or microseconds",
        "interpolate": "no time, to be spread between their neighbours",
        "manual": "no time, and no neighbour tells what it was",
        "null": "NULL in a column that must not be NULL",
    }
    prefix = {"divide": "", "interpolate": "unknown:"}.get(kind, f"{kind}:")
    key = f"{prefix}messages:{printable(session)}"
    messages = counted(len(ids), "message")
    report = Remedy("report", Safety.EXACT)
    remedies: tuple[Remedy, ...] = ()
    if statements:
        step = damage.step(
            key=key,
            answer=kind,
            title=f"{kind} the times of {messages} of {printable(session)}",
            statements=statements,
            session_ids=(session,),
        )
        remedies = (Remedy(kind, safety, step), report)
    elif kind == "null":
        remedies = (Remedy("interpolate", safety, refused=CANNOT_UNDO), report)
    return damage.finding(
        table="messages",
        key=key,
        kind=kind,
        message=f"times of {messages}: {words[kind]}",
        evidence={
            "session": printable(session),
            "values": len(ids),
            "first_id": min(ids),
            "last_id": max(ids),
        },
        session_ids=(session,),
        remedies=remedies,
    )
