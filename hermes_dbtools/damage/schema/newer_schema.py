"""The file is newer than this tool knows

What it means
-------------
A later Hermes has made or upgraded this file. What is found here is still worth reading, but it was judged by the rules of
older shapes, so nothing is ever changed: repair, undo and the session commands that write refuse.

Why it happens
--------------
Hermes was updated and hermes-dbtools was not. In a public report a reader of an older shape failed on a column that a newer
release had added.

Repair
------
By hand: update hermes-dbtools and scan again. Do not start an older Hermes on the file.

Safety
------
Manual, and a note: nothing is wrong with the file. A number above the newest known one counts, and a column of a known table
that nobody knows, that must not be NULL and has no default: what is written without it would fail. A table that nobody knows
is not newer: it is never dropped, and its foreign keys are followed.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...model import Finding, Safety, Severity
from .._declare import ScanContext, declare


def _find(context: ScanContext) -> Iterator[Finding]:
    for table, key, reason in context.shape.newer_marks:
        yield DAMAGE.finding(
            table=table,
            key=key,
            kind="number" if table == "schema_version" else "column",
            message=f"{reason}: report only, update hermes-dbtools",
            evidence={"schema_version": context.shape.schema_version},
        )


DAMAGE = declare(
    __name__,
    __doc__,
    code="HDB105",
    severity=Severity.NOTE,
    safety=Safety.MANUAL,
    noun=("sign", "signs"),
    find=_find,
)
