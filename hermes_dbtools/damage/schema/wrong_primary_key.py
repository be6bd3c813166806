"""A table has another primary key than the store writes by

What it means
-------------
Statements of the store that update a row or add it if it is not there name the key they go by. Where the table has another
key, or none, each of them fails, or every write adds one more row. For `session_model_usage` that means no counting of
tokens; for `gateway_routing` that messages of a chat do not find their session after a restart.

Why it happens
--------------
A primary key cannot be changed by adding columns, so an upgrade makes the table anew; one that was passed over, for lack of
a lock or of memory, leaves the old key under the new number. Tools that copy tables (`CREATE TABLE … AS SELECT`, some recoveries)
leave none at all. A public report shows 261 such warnings in one log.

Repair
------
By hand: the runbook makes the table anew with its rows, on a copy. No plan changes a table without a key, for such a change
could not be undone.

Safety
------
Manual. Keys are compared as sets, and only of tables that are known; `session_model_usage` may have its old key in files
below number 22. A key that is right and a column order that differs is no damage.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...known_shapes import facts
from ...model import Finding, Safety, Severity
from .._declare import ScanContext, declare
from ._expected import expected_of


def _find(context: ScanContext) -> Iterator[Finding]:
    number = expected_of(context).number
    known = facts()
    for name, key in sorted(known.keys.items()):
        table = context.shape.tables.get(name)
        if table is None or table.kind != "table" or frozenset(table.primary_key) == key:
            continue
        if number < known.rekeyed.get(name, 0):
            continue
        has = ", ".join(table.primary_key)
        yield DAMAGE.finding(
            table=name,
            key=name,
            kind="other-key" if has else "no-key",
            message=f"its primary key is ({has})" if has else "it has no primary key",
            evidence={
                "primary_key": list(table.primary_key),
                "expected": sorted(key),
                "missing_columns": sorted(key - set(table.columns)),
            },
        )


DAMAGE = declare(
    __name__,
    __doc__,
    code="HDB103",
    severity=Severity.ERROR,
    safety=Safety.MANUAL,
    noun=("table", "tables"),
    find=_find,
)
