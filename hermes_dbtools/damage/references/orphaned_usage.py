"""Usage rows belong to a session that has no row.

What it means
-------------
`session_model_usage` or `session_daily_usage` counts tokens and cost of a session that `sessions` does not
have. Sums over these tables are too high, and upstream's rebuild of the table during an upgrade fails on such
a row.

Why it happens
--------------
These rows go with their session only where foreign keys are enforced. A delete through a connection that does
not enforce them leaves the rows behind; so does a partial recovery.

Repair
------
`drop` removes the rows. Where messages of the same id are left, orphaned-messages adopts the session and
nothing is reported here: the rows are valid again.

Safety
------
Dropping loses figures that nothing else holds, so it is planned only with `--allow-lossy`; undo brings them
back.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...model import Finding, Remedy, Safety, Severity, Statement
from ...sizes import counted
from .._declare import ScanContext, declare, printable, whole
from ._adoption import adopted, identity

TABLES = (("by-model", "session_model_usage"), ("by-day", "session_daily_usage"))


def _find(context: ScanContext) -> Iterator[Finding]:
    for block, table in TABLES:
        for value, storage, count, spoken, tombstoned in DAMAGE.rows(context, block):
            session_id, rows = identity(value, storage), whole(count)
            if adopted(session_id, bool(tombstoned), bool(spoken)):
                continue
            # One id may be in both tables, and a key must say which finding is meant.
            key = f"{table} {printable(session_id)}"
            step = DAMAGE.step(
                key=key,
                answer="drop",
                title=f"drop {counted(rows, 'row')} of {table} of missing session {printable(session_id)}",
                statements=(Statement(f"drop-{block}", {"id": session_id}, rows, table, "delete"),),
                session_ids=(session_id,),
            )
            yield DAMAGE.finding(
                table=table,
                key=key,
                message=f"{counted(rows, 'usage row')} of a session that has no row",
                evidence={
                    "session_id": printable(session_id),
                    "rows": rows,
                    "tombstoned": bool(tombstoned),
                    "has_messages": bool(spoken),
                },
                session_ids=(session_id,),
                remedies=(Remedy("drop", Safety.LOSSY, step), Remedy("report", Safety.EXACT)),
            )


DAMAGE = declare(
    __name__,
    __doc__,
    code="HDB203",
    severity=Severity.ERROR,
    safety=Safety.LOSSY,
    answers=("drop", "report"),
    needs=("session_model_usage.session_id",),
    reads=("messages", "session_daily_usage", "session_model_usage", "sessions", "state_meta"),
    sums=(("rows", "usage rows"),),
    extent="session",
    find=_find,
)
