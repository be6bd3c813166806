"""Two sessions with the same title, or a title that is blank

What it means
-------------
The store keeps titles apart with a unique index. Where two are equal the index is missing and cannot be made: naming,
resuming by name and import find the wrong session or fail, and each opening of the store tries the index again. A
blank title is shown as an empty line, and one blank title keeps every other from being blank too.

Why it happens
--------------
A restored or merged file, a file whose unique index was dropped, another program that writes titles without asking.
In a public report two equal titles kept the index from being made, and opening failed.

Repair
------
As the store itself does before it makes the index: the newest session keeps the title, the others become untitled
(lists show their first message instead). A blank title becomes NULL. The index itself is made by the store at its next
opening, or by missing-indexes.

Safety
------
Exact: it is what the store's own opening does. The old titles are kept in the undo file. Titles that are not UTF-8
belong to invalid-text. Titles that differ in case or in a space are different.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from itertools import groupby

from ... import utf8
from ...model import Finding, Remedy, Safety, Severity, Statement, Value
from ...sizes import counted
from .._declare import ScanContext, declare, printable, text, whole

TITLE_INDEX = "idx_sessions_title_unique"


def _find(context: ScanContext) -> Iterable[Finding]:
    utf8.register(context.connection)
    yield from _equal(context)
    for row, session in DAMAGE.rows(context, "find-blank"):
        yield _blank(whole(row), text(session))


def _equal(context: ScanContext) -> Iterator[Finding]:
    rows = DAMAGE.rows(context, "find-equal")
    for keeper, group in groupby(rows, key=lambda row: row[0]):
        others = [(whole(row), text(session)) for _keeper, row, session in group]
        yield _equal_finding(text(keeper), others, indexed=context.shape.has(f"index:{TITLE_INDEX}"))


def _equal_finding(keeper: Value, others: list[tuple[int, Value]], *, indexed: bool) -> Finding:
    rows = [row for row, _session in others]
    sessions = tuple(session for _row, session in others)
    key = printable(keeper)
    statement = Statement("untitle", {"rows": json.dumps(rows)}, len(rows), "sessions", "update")
    step = DAMAGE.step(
        key=key,
        answer="repair",
        title=f"leave the title to {key}, the newest of {len(rows) + 1} sessions",
        statements=(statement,),
        session_ids=sessions,
    )
    return DAMAGE.finding(
        table="sessions",
        key=key,
        kind="equal",
        message=f"{counted(len(rows), 'older session has', 'older sessions have')} its title",
        evidence={
            "sessions": len(rows) + 1,
            "older": [printable(session) for session in sessions[:20]],
            "unique_index": indexed,
        },
        session_ids=sessions,
        remedies=(Remedy("repair", Safety.EXACT, step),),
    )


def _blank(row: int, session: Value) -> Finding:
    key = printable(session)
    step = DAMAGE.step(
        key=f"blank:{key}",
        answer="repair",
        title=f"take the blank title from {key}",
        statements=(Statement("clear-blank", {"row": row}, 1, "sessions", "update"),),
        session_ids=(session,),
    )
    return DAMAGE.finding(
        table="sessions",
        key=f"blank:{key}",
        kind="blank",
        severity=Severity.NOTE,
        message="its title is blank",
        evidence={"session": key},
        session_ids=(session,),
        remedies=(Remedy("repair", Safety.EXACT, step),),
    )


DAMAGE = declare(
    __name__,
    __doc__,
    code="HDB406",
    severity=Severity.ERROR,
    safety=Safety.EXACT,
    answers=("repair",),
    needs=("sessions.title",),
    reads=("sessions",),
    noun=("title", "titles"),
    find=_find,
)
