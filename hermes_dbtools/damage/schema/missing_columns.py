"""A table lacks columns that every store of its number has

What it means
-------------
The file's own number says that some migration has run, but columns or whole tables that every known store of that number
has are not there. Hermes then fails at the first statement that names one: sessions cannot be listed, opened or saved.

Why it happens
--------------
A number that two lines of development gave to different shapes, a file restored from a partial copy, a table made anew by
hand or by a recovery tool, a migration that raised the number and did not do the rest. In a public report a file of number
7 had no `reasoning_content`, because that number had been given twice.

Repair
------
By hand: start Hermes once with the file in place. Each writable opening adds the columns and tables that are missing, empty.
What the columns held, if they were ever there, comes only from a backup.

Safety
------
Manual. Only what every known shape of the number has is asked for, for at least six shapes share the numbers 30 and 31.
The order of columns differs after upgrades and is no damage, nor is a column or table that nobody knows. A number lower than
the columns is normal: it only rises where full-text search can be used.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...model import Finding, Safety, Severity
from .._declare import ScanContext, declare
from ._expected import expected_of, missing_columns

SHOWN = 3


def _find(context: ScanContext) -> Iterator[Finding]:
    expected = expected_of(context)
    for table, columns in missing_columns(context.shape, expected.columns).items():
        gone = table not in context.shape.tables
        named = ", ".join(columns[:SHOWN]) + (
            f" and {len(columns) - SHOWN} more" if len(columns) > SHOWN else ""
        )
        yield DAMAGE.finding(
            table=table,
            key=table,
            kind="table" if gone else "columns",
            message="the table is missing" if gone else f"it lacks {named}",
            evidence={
                "schema_version": context.shape.schema_version,
                "expected_as_of": expected.number,
                "columns": list(columns),
            },
        )


DAMAGE = declare(
    __name__,
    __doc__,
    code="HDB101",
    severity=Severity.ERROR,
    safety=Safety.MANUAL,
    cedes_to=("HDB103", "HDB104"),
    noun=("table", "tables"),
    find=_find,
)
