"""A branch carries no branch marker, and no list shows it

What it means
-------------
A session begins with a copy of its parent's conversation, so it is a branch, but nothing in its row says so. While
its parent is open, or has ended for another reason than the branching, every release takes it for a run of a
sub-agent: no list shows it, and the conversation looks lost. `marked-as-delegate`: an upgrade has written down just
that, and a delete of the parent removes the branch with it.

Why it happens
--------------
Old releases and the API server's fork write no marker and rely on the parent having ended as branched. That breaks
when the parent is reopened or ends again with another reason (in a public report a branch of 188 messages
vanished so), when the parent had already ended, for a second end is not written, or when the parent stayed open (in
another report two live conversations were hidden). Healthy stores make the first form by themselves. An upgrade from
0.13 or 0.16 to 0.18 marks every such child as a sub-agent's run.

Repair
------
Only reported unless asked. `mark` writes `_branched_from` into the session's configuration, as newer releases do
themselves, in place of a delegate marker: lists show it, and a delete of its parent leaves it alone.

Safety
------
Choice. One value of one row changes, and undo takes it out again. Reported is only what its rows prove: its first
texts, at least one of each side and, without a title, at least three, are the parent's, word for word and in order, up
to the last row that the parent still has from then, without a gap. Not reported: a child of a session that compression
closed (its continuation begins with copied rows too), or of one reopened after it, where a summary or a gap breaks the
copy; a copy that begins with a compression's summary, for a second compression may have kept just that; runs of
sub-agents and tools by their source; children with another marker; a chat that a reset began anew; a session in a loop;
configurations that cannot be read. Hidden children without that proof are another matter (hidden-sessions): nothing
tells them from runs of sub-agents of old releases. Releases before 0.16 look at no marker: there the branch is listed
after the next upgrade.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...cycles import cyclic_sessions
from ...model import Finding, Remedy, Safety, Severity, Statement, Value
from .._declare import ScanContext, declare, moment, printable, text
from ._transcripts import Copy, begins_alike, compare

UNTITLED = 3
"""Copied texts that prove a branch without a title: a task and its answer may be handed on word for word."""


def _find(context: ScanContext) -> Iterator[Finding]:
    suspects = list(DAMAGE.rows(context, "find"))
    looped = cyclic_sessions(context.connection, context.has) if suspects else {}
    for session, above, parent_open, started_at, titled, delegated in suspects:
        session_id, parent = text(session), text(above)
        if session_id in looped or not begins_alike(context, session_id, parent):
            continue
        copy = compare(context, session_id, parent, texts_only=True)
        if copy.summarised or not (copy.reaches and copy.spoken and (titled or copy.copied >= UNTITLED)):
            continue
        yield DAMAGE.finding(
            table="sessions",
            key=session_id,
            kind="marked-as-delegate" if delegated else "open-parent" if parent_open else "ended-parent",
            message=f"branch of {printable(parent)} by its copied messages, {_MARKED[bool(delegated)]}",
            evidence=_evidence(parent, copy, started_at),
            session_ids=(session_id,),
            remedies=(Remedy("report", Safety.CHOICE), _mark(session_id, parent)),
        )


_MARKED = {
    False: "without a marker: no list shows it",
    True: "marked as a sub-agent's run: no list shows it, and a delete of its parent takes it along",
}


def _evidence(parent: Value, copy: Copy, started_at: Value) -> dict[str, object]:
    return {
        "parent_session_id": printable(parent),
        "copied_texts": copy.copied,
        "own_texts": copy.own,
        "started_at": moment(started_at),
    }


def _mark(session_id: Value, parent: Value) -> Remedy:
    if not isinstance(parent, str):
        reason = "the id of its parent is not UTF-8 text, which no marker can hold"
        return Remedy("mark", Safety.CHOICE, refused=reason)
    statement = Statement("mark", {"session_id": session_id, "parent": parent}, 1, "sessions", "update")
    step = DAMAGE.step(
        key=session_id,
        answer="mark",
        title=f"mark {printable(session_id)} as a branch of {parent}",
        statements=(statement,),
        session_ids=(session_id,),
    )
    return Remedy("mark", Safety.CHOICE, step)


DAMAGE = declare(
    __name__,
    __doc__,
    code="HDB302",
    severity=Severity.WARNING,
    safety=Safety.CHOICE,
    answers=("report", "mark"),
    needs=("sessions.title",),
    reads=("messages", "sessions"),
    noun=("branch", "branches"),
    find=_find,
)
