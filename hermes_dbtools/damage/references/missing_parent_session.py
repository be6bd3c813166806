"""A session names a parent that has no row.

What it means
-------------
`parent_session_id` holds the id of a session that does not exist. Each later write of that row that repeats
the parent, such as upstream's own upsert, fails with `FOREIGN KEY constraint failed`; and a session without a
marker of its own is shown by no list, for lists look at the parent to decide.

Why it happens
--------------
The parent was removed through a connection that does not enforce foreign keys, without detaching its children
first, as upstream's deletes do; or a file was merged or recovered in part.

Repair
------
`detach` sets the parent to NULL, which is what upstream does when it deletes a parent. It is the default for
branches, resets, continuations and every chat that a user typed in: they are listed afterwards. For the run
of a sub-agent or tool the default is `report`: detached, an unmarked one would appear among the chats.

Safety
------
One column of one row is set to NULL and undo brings the old id back; markers in `model_config` are not
touched. Where messages of the missing parent are left, orphaned-messages comes first: adopting it makes the
parent valid again.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...model import Finding, Remedy, Safety, Severity, Statement, Value
from .._declare import ScanContext, declare, printable
from ._adoption import adopted, identity


def _find(context: ScanContext) -> Iterator[Finding]:
    for row in DAMAGE.rows(context, "find"):
        session_id, parent = identity(row[0], row[1]), identity(row[2], row[3])
        branch, reset, delegate, helper, any_delegate, spoken, tombstoned = map(bool, row[4:])
        if adopted(parent, tombstoned, spoken):
            continue
        kind = _kind(branch, reset, delegate or helper)
        listed = (branch or reset) and not any_delegate and not helper
        yield DAMAGE.finding(
            table="sessions",
            key=session_id,
            kind=kind,
            message=f"{_NAMES[kind]} whose parent session has no row"
            + ("" if listed else "; no list shows it"),
            evidence={
                "parent": printable(parent),
                "kind": kind,
                "hidden": not listed,
                "parent_tombstoned": tombstoned,
                "parent_has_messages": spoken,
            },
            session_ids=(session_id,),
            remedies=_remedies(session_id, parent, kind),
        )


_NAMES = {
    "branch": "branch",
    "reset": "session after a reset",
    "delegate": "run of a sub-agent or tool",
    "other": "session",
}


def _kind(branch: bool, reset: bool, delegate: bool) -> str:
    # A branch of a delegate inherits the delegate's marker: the marker of its own kind wins.
    if branch:
        return "branch"
    if reset:
        return "reset"
    return "delegate" if delegate else "other"


def _remedies(session_id: Value, parent: Value, kind: str) -> tuple[Remedy, ...]:
    step = DAMAGE.step(
        key=session_id,
        answer="detach",
        title=f"detach session {printable(session_id)} from its missing parent",
        statements=(Statement("detach", {"id": session_id, "parent": parent}, 1, "sessions", "update"),),
        session_ids=(session_id,),
    )
    detach, report = Remedy("detach", Safety.EXACT, step), Remedy("report", Safety.EXACT)
    return (report, detach) if kind == "delegate" else (detach, report)


DAMAGE = declare(
    __name__,
    __doc__,
    code="HDB202",
    severity=Severity.ERROR,
    safety=Safety.CHOICE,
    answers=("detach", "report"),
    reads=("messages", "sessions", "state_meta"),
    noun=("session", "sessions"),
    extent="session",
    find=_find,
)
