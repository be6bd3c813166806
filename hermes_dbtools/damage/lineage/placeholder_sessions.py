"""A session stands for something that cannot be told any more

What it means
-------------
One of three kinds. `ghost`: a row of the source unknown without any message, made only because usage was accounted to an id
that had no row. `unplaced`: the same source, with messages, without parent, title and configuration: the run of a sub-agent that
lost where it belongs, or a chat that usage was accounted to before it was made. `parentless-subagent`: a sub-agent's run
without parent and without any marker. Lists show all three among the chats, and no delete of another session takes them along.

Why it happens
--------------
Token accounting makes the row it misses. A sub-agent's row could not be made while its parent's was not yet committed, and the
row that was made later had no parent and no markers (in a public report such runs flooded the list). A session was deleted while
its agent went on (in another report a row made for such an id then looked real).

Repair
------
Nothing is changed unless it is chosen. `relink` puts the run under the session whose `delegate_task` call, or its answer, names
it: parent, source and marker where the release has one. An empty ghost that nothing needs is empty-sessions.

Safety
------
Choice. Relinking is offered only where exactly one session's call names the id, and refused where that session lies below it or
its configuration can take no marker. A finding is a note, and a warning only when such a call names the id. Not reported, unless
a call names it: a titled session of the source unknown, which is a real chat; one with messages on files of 0.13 and 0.16, where
a real chat keeps the source that accounting gave it.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...model import Finding, Remedy, Safety, Severity, Statement, Value
from .._declare import ScanContext, declare, moment, printable, text
from ._naming import named_by

REPORT = Remedy("report", Safety.CHOICE)

_MESSAGES = {
    "ghost": "a row of unknown source without any message, made to account for usage",
    "unplaced": "messages of unknown source: a sub-agent's run that lost its parent, or a chat that lost its source",
    "parentless-subagent": "a sub-agent's run without parent and markers",
}


def _find(context: ScanContext) -> Iterator[Finding]:
    rows = list(DAMAGE.rows(context, "find"))
    ids = [session_id for row in rows if isinstance(session_id := text(row[0]), str)]
    named = named_by(DAMAGE, context, ids) if ids else {}
    older = not context.has("sessions.session_key")
    for row in rows:
        session_id = text(row[0])
        unknown, spoken, titled, configured, takes_marker = map(bool, row[1:6])
        kind = "parentless-subagent" if not unknown else "unplaced" if spoken else "ghost"
        namers = named.get(session_id, set()) if isinstance(session_id, str) else set()
        if not namers and unknown and (titled or (spoken and (older or configured))):
            continue
        yield DAMAGE.finding(
            table="sessions",
            key=session_id,
            kind=kind,
            severity=Severity.WARNING if namers else Severity.NOTE,
            message=_MESSAGES[kind] + ("; a delegate_task call names it" if namers else ""),
            evidence={
                "started_at": moment(row[6]),
                "named_by": sorted(printable(one) for one in namers),
            },
            session_ids=(session_id,),
            remedies=(REPORT, *_relink(context, session_id, namers, takes_marker or older)),
        )


def _relink(
    context: ScanContext, session_id: Value, namers: set[Value], takes_marker: bool
) -> tuple[Remedy, ...]:
    if not namers:
        return ()
    if len(namers) > 1:
        return (Remedy("relink", Safety.CHOICE, refused="calls of several sessions name it"),)
    (parent,) = namers
    above = {text(row[0]) for row in DAMAGE.rows(context, "parents", {"session_id": parent})}
    if session_id in above:
        return (Remedy("relink", Safety.CHOICE, refused="the session that names it lies below it"),)
    if not takes_marker:
        return (Remedy("relink", Safety.CHOICE, refused="its configuration can take no marker"),)
    bindings: dict[str, Value] = {"session_id": session_id, "parent": parent}
    step = DAMAGE.step(
        key=session_id,
        answer="relink",
        title=f"put {printable(session_id)} under {printable(parent)}, whose call names it",
        statements=(Statement("relink", bindings, 1, "sessions", "update"),),
        session_ids=(session_id, parent),
    )
    return (Remedy("relink", Safety.CHOICE, step),)


DAMAGE = declare(
    __name__,
    __doc__,
    code="HDB314",
    severity=Severity.NOTE,
    safety=Safety.CHOICE,
    answers=("report", "relink"),
    reads=("messages", "sessions"),
    cedes_to=("HDB313",),
    noun=("session", "sessions"),
    find=_find,
)
