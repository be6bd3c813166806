"""A column has lost its default

What it means
-------------
The store leaves this column out of its INSERT and relies on the default. Without it new rows get NULL, or the INSERT fails
where the column may not be NULL. With `messages.active` that means amnesia: rows that are NULL there are not part of the
conversation.

Why it happens
--------------
Early releases added columns to old files by their type alone. Tools that copy a table into a new file leave defaults out.

Repair
------
By hand. Rows that are NULL already are null-active; the column itself keeps its want of a default until the table is made
anew. Hermes sets `active` wherever it is NULL at each start, so a store that is opened daily loses at most a day; the
runbook makes the column anew on a copy.

Safety
------
Manual. Only columns are asked that have a default and must not be NULL in every known shape. A default without NOT NULL is
enough: nothing that the store writes becomes NULL then.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...known_shapes import facts
from ...model import Finding, Safety, Severity
from ...shape import Column
from .._declare import ScanContext, declare
from ._expected import expected_of


def _find(context: ScanContext) -> Iterator[Finding]:
    expected_of(context)
    for name, defaults in sorted(facts().defaults.items()):
        table = context.shape.tables.get(name)
        for column, default in (
            sorted(defaults.items()) if table is not None and table.kind == "table" else ()
        ):
            found = table.columns.get(column) if table is not None else None
            if found is not None and _plain(found.default) != default:
                yield _finding(name, found, default)


def _finding(table: str, column: Column, default: str) -> Finding:
    lost = column.default is None
    consequence = "an INSERT that leaves it out fails" if column.not_null else "new rows get NULL"
    return DAMAGE.finding(
        table=table,
        key=f"{table}.{column.name}",
        kind="lost" if lost else "changed",
        message=f"it has no default: {consequence}" if lost else f"its default is not {default}",
        evidence={"expected": default, "default": column.default, "not_null": column.not_null},
    )


def _plain(default: str | None) -> str | None:
    """A default without the brackets and spaces that say nothing."""
    if default is None:
        return None
    text = default.strip()
    while text.startswith("(") and text.endswith(")"):
        text = text[1:-1].strip()
    return text


DAMAGE = declare(
    __name__,
    __doc__,
    code="HDB106",
    severity=Severity.WARNING,
    safety=Safety.MANUAL,
    noun=("column", "columns"),
    find=_find,
)
