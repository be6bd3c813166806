"""An index of the store is missing

What it means
-------------
No row is wrong. Without `idx_messages_session` opening a session reads the whole table of messages: in a public report 59
seconds at 21,000 sessions. Without the unique index of titles two sessions can get the same title.

Why it happens
--------------
A file restored from a dump or a recovery that carried rows only, an index that was dropped for a bulk change or because it
was damaged, a unique index that could not be made because two titles are equal.

Repair
------
The index is made as the store makes it. It is exact and changes no row; undo takes the index away again. Hermes makes
missing indexes itself at its next start. The unique index of titles is only made where no two titles are equal: else
duplicate-titles comes first.

Safety
------
Exact. Only indexes are asked for that belong to a known shape of which the file has every column. One that HDB002 calls
damaged is not missing. What an index is made of is not compared, nor are indexes that nobody knows.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...known_shapes import indexes_of
from ...model import Finding, Remedy, Safety, Severity, Statement
from .._declare import ScanContext, declare
from ._expected import columns_of, expected_of

TITLES = "idx_sessions_title_unique"

EQUAL_TITLES = (
    "two sessions have the same title: duplicate-titles (HDB406) first, then hermes-dbtools repair again"
)


def _find(context: ScanContext) -> Iterator[Finding]:
    number = expected_of(context).number
    there = set(context.shape.indexes) | context.gate.indexes
    for table, indexes in sorted(indexes_of(number, columns_of(context.shape)).items()):
        for index in sorted(indexes - there):
            yield _finding(context, table, index)


def _finding(context: ScanContext, table: str, index: str) -> Finding:
    unique = index == TITLES
    refused = EQUAL_TITLES if unique and list(DAMAGE.rows(context, "equal-titles")) else None
    step = DAMAGE.step(
        key=index,
        answer="create",
        title=f"make {index} on {table}",
        statements=(Statement(f"create-{index}", {}, 0, table, "create", names={"index": index}),),
        session_ids=(),
    )
    return DAMAGE.finding(
        table=table,
        key=index,
        message="nothing keeps two titles apart" if unique else "what it serves reads the whole table",
        evidence={"index": index, "unique": unique},
        remedies=(Remedy("create", Safety.EXACT, None if refused else step, refused),),
    )


DAMAGE = declare(
    __name__,
    __doc__,
    code="HDB102",
    severity=Severity.WARNING,
    safety=Safety.EXACT,
    answers=("create",),
    reads=("sessions",),
    noun=("index", "indexes"),
    find=_find,
)
