"""A topic of a private Telegram chat is bound to a session that has no row.

What it means
-------------
`telegram_dm_topic_bindings` shows a session that `sessions` does not have: what is written in that topic
resumes nothing, and writing the binding again fails with `FOREIGN KEY constraint failed`. The kind `v1-table`
is another, milder thing: the table is of the first layout, without ON DELETE CASCADE, so a binding stops the
delete of its session.

Why it happens
--------------
A binding goes with its session only where foreign keys are enforced; a delete through a connection that does
not enforce them leaves it. A table of the first layout stays until topics are next switched on.

Repair
------
`drop` removes the binding; the topic gets a new session when it is next used. Where messages of the same id
are left, orphaned-messages adopts the session and nothing is reported here. A `v1-table` is rebuilt by
upstream at the next /topic: the runbook says how to go on until then.

Safety
------
Dropping loses which session the topic showed, so it is planned only with `--allow-lossy`; undo brings it
back.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...model import Finding, Remedy, Safety, Severity, Statement
from ...sizes import counted
from .._declare import ScanContext, declare, printable, whole
from ._adoption import adopted, identity

TABLE = "telegram_dm_topic_bindings"


def _find(context: ScanContext) -> Iterator[Finding]:
    yield from _first_layout(context)
    for value, storage, count, spoken, tombstoned in DAMAGE.rows(context, "find"):
        session_id, rows = identity(value, storage), whole(count)
        if adopted(session_id, bool(tombstoned), bool(spoken)):
            continue
        step = DAMAGE.step(
            key=session_id,
            answer="drop",
            title=f"drop {counted(rows, 'topic binding')} of missing session {printable(session_id)}",
            statements=(Statement("drop", {"id": session_id}, rows, TABLE, "delete"),),
            session_ids=(session_id,),
        )
        yield DAMAGE.finding(
            table=TABLE,
            key=session_id,
            message=f"{counted(rows, 'topic binding')} to a session that has no row",
            evidence={"rows": rows, "tombstoned": bool(tombstoned), "has_messages": bool(spoken)},
            session_ids=(session_id,),
            remedies=(Remedy("drop", Safety.LOSSY, step), Remedy("report", Safety.EXACT)),
        )


def _first_layout(context: ScanContext) -> Iterator[Finding]:
    keys = [key for key in context.shape.tables[TABLE].foreign_keys if key.parent.lower() == "sessions"]
    if any(key.on_delete.upper() != "CASCADE" for key in keys):
        yield DAMAGE.finding(
            table=TABLE,
            key=TABLE,
            kind="v1-table",
            severity=Severity.NOTE,
            message="the table is of the first layout: a binding stops the delete of its session",
            evidence={"on_delete": keys[0].on_delete},
        )


DAMAGE = declare(
    __name__,
    __doc__,
    code="HDB205",
    severity=Severity.ERROR,
    safety=Safety.LOSSY,
    answers=("drop", "report"),
    needs=("telegram_dm_topic_bindings.session_id",),
    reads=("messages", "sessions", "state_meta", "telegram_dm_topic_bindings"),
    extent="session",
    find=_find,
)
