"""The counter of message ids is behind the ids that exist

What it means
-------------
Ids of messages are never used twice: search rebuilds, display order and the marks of a refill rely on it. The counter
that keeps this promise says less than the highest id there is. SQLite then counts on from the rows, so the next
message still gets a free id; but once the newest rows are deleted their ids are given out again, and whatever was
remembered about them is taken for the new rows.

Why it happens
--------------
Rows put in with their ids by something that does not keep the counter: a salvage row by row, a merge of two files, a
copy of tables without `sqlite_sequence`, an edit of that table by hand.

Repair
------
The counter becomes the highest id; a missing counter is made. It is only ever raised.

Safety
------
Exact. SQLite records no changes of this table, and none is needed: an undo of the plan leaves the counter raised,
because to lower it would give out ids twice. No row of the store changes. A counter above the highest id is healthy:
rows were deleted.
"""

from __future__ import annotations

from collections.abc import Iterable

from ...model import Finding, Remedy, Safety, Severity, Statement
from .._declare import ScanContext, declare, whole

TABLE = "sqlite_sequence"


def _find(context: ScanContext) -> Iterable[Finding]:
    for highest, lowest, entries, behind in DAMAGE.rows(context, "find"):
        right, made = whole(highest), not entries
        statement = (
            Statement("insert", {"highest": right}, 1, TABLE, "insert")
            if made
            else Statement("raise", {"highest": right}, whole(behind), TABLE, "update")
        )
        step = DAMAGE.step(
            key="messages",
            answer="repair",
            title=f"raise the counter of message ids to {right}",
            statements=(statement,),
            session_ids=(),
        )
        yield DAMAGE.finding(
            table="messages",
            key="messages",
            message=f"the highest id is {right}, the counter {'is missing' if made else f'says {whole(lowest)}'}",
            evidence={
                "highest_id": right,
                "counter": None if made else whole(lowest),
                "entries": whole(entries),
            },
            remedies=(Remedy("repair", Safety.EXACT, step),),
        )


DAMAGE = declare(
    __name__,
    __doc__,
    code="HDB502",
    severity=Severity.ERROR,
    safety=Safety.EXACT,
    answers=("repair",),
    needs=("sqlite_sequence",),
    reads=("messages",),
    noun=("counter", "counters"),
    find=_find,
)
