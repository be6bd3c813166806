"""An upgrade stopped half-way

What it means
-------------
A table that an upgrade makes and takes away again is still there, the number of the file is ahead of its tables, or system
prompts are kept in two places. Rows may be in the table of the old name, where Hermes does not look for them.

Why it happens
--------------
A process that died or was stopped during its first start after an update, a full disk, another process that held the file:
the store makes `session_model_usage` and `telegram_dm_topic_bindings` anew under another name and moves the rows. Prompts are
moved row by row into their own table and the rest is left for the next start.

Repair
------
By hand. Where the old table has rows that the new one lacks, the runbook moves them; where it has none, it is taken away.
For a number ahead of the tables it sets the number back, so that Hermes does the steps again. Prompts in two places are read
from both and need nothing.

Safety
------
Manual. A number is called ahead only where the file has everything up to one number and nothing of any later one; what lacks
single columns is missing-columns. Prompts left in their rows are a note: older releases beside a new one write them there.
"""

from __future__ import annotations

from collections.abc import Iterator

from ... import known_shapes
from ...model import Finding, Safety, Severity
from ...sizes import size_text
from .._declare import NotApplicable, ScanContext, declare, whole
from ._expected import expected_of, missing_columns

LEFTOVERS = (
    ("session_model_usage_v21", "session_model_usage", "usage-only-there"),
    ("telegram_dm_topic_bindings_new", "telegram_dm_topic_bindings", "bindings-only-there"),
)
"""The name that an upgrade gives a table for a moment, the table it belongs to, and the block that counts what only it has."""


def _find(context: ScanContext) -> Iterator[Finding]:
    for name, table, block in LEFTOVERS:
        if context.shape.has(name):
            yield _leftover(context, name, table, block)
    yield from _ahead(context)
    yield from _prompts(context)


def _leftover(context: ScanContext, name: str, table: str, block: str) -> Finding:
    ((rows,),) = DAMAGE.rows(context, "rows", names={"table": name})
    ((size,),) = DAMAGE.rows(context, "bytes", {"name": name})
    only = [whole(row[0]) for row in DAMAGE.rows(context, block, names={"leftover": name})]
    there = only[0] if only else whole(rows)
    what = (
        f"{there:,} of its {whole(rows):,} rows are nowhere else" if there else "all its rows are in it too"
    )
    return DAMAGE.finding(
        table=table,
        key=table,
        kind="leftover-table",
        severity=Severity.ERROR if there else Severity.WARNING,
        message=f"the upgrade left {name}, {size_text(whole(size))}: {what}",
        evidence={
            "leftover": name,
            "rows": whole(rows),
            "rows_only_there": there,
            "bytes": whole(size),
            "table_exists": context.shape.has(table),
        },
    )


def _ahead(context: ScanContext) -> Iterator[Finding]:
    try:
        expected = expected_of(context)
    except NotApplicable:
        return
    reached = _reached(context, expected.number)
    if reached is None:
        return
    for table, columns in missing_columns(context.shape, expected.columns).items():
        yield DAMAGE.finding(
            table=table,
            key=table,
            kind="version-ahead",
            message=f"the file says number {context.shape.schema_version} and has the tables of {reached}",
            evidence={
                "schema_version": context.shape.schema_version,
                "shape_of": reached,
                "columns": list(columns),
            },
        )


def _reached(context: ScanContext, number: int) -> int | None:
    """The number whose shape the file has, where it has nothing of any later one; None for every other file."""
    reached: int | None = None
    stopped = False
    for step in known_shapes.steps(number):
        if not step.columns:
            continue
        lacking = missing_columns(context.shape, step.columns)
        if not lacking and not stopped:
            reached = step.number
        elif lacking == {table: tuple(sorted(names)) for table, names in sorted(step.columns.items())}:
            stopped = True
        else:
            return None
    return reached if stopped else None


def _prompts(context: ScanContext) -> Iterator[Finding]:
    for inline, moved, size in DAMAGE.rows(context, "prompts"):
        if not whole(inline) or not (whole(moved) or (context.shape.schema_version or 0) >= 25):
            continue
        yield DAMAGE.finding(
            table="sessions",
            key="system prompts",
            kind="half-moved-prompts",
            severity=Severity.NOTE,
            message=f"{whole(inline):,} system prompts are still in their sessions, {size_text(whole(size))}",
            evidence={"inline": whole(inline), "moved": whole(moved), "bytes": whole(size)},
        )


DAMAGE = declare(
    __name__,
    __doc__,
    code="HDB104",
    severity=Severity.ERROR,
    safety=Safety.MANUAL,
    reads=(
        "sessions",
        "session_model_usage",
        "telegram_dm_topic_bindings",
        "session_model_usage_v21",
        "telegram_dm_topic_bindings_new",
    ),
    noun=("leftover", "leftovers"),
    find=_find,
)
