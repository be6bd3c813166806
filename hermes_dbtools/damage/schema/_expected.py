"""What a file should have by its own number, and what of that it lacks; judges nothing."""

from __future__ import annotations

from collections.abc import Mapping

from ... import known_shapes
from ...known_shapes import Expected, Names
from ...shape import Shape
from .._declare import NotApplicable, ScanContext

Missing = Mapping[str, tuple[str, ...]]
"""Names that a table lacks, in alphabetical order, by table in alphabetical order."""


def expected_of(context: ScanContext) -> Expected:
    """What every known shape of the file's number has.

    Raises NotApplicable where nothing is known of it: no number, one below all known ones, or a newer shape.
    """
    number = context.shape.schema_version
    if context.shape.newer:
        raise NotApplicable("the file is newer than this tool knows (HDB105)")
    if number is None:
        raise NotApplicable("the file says no schema_version")
    found = known_shapes.expected(number)
    if found is None:
        raise NotApplicable(f"nothing is known of files of number {number}: they are older than 0.13.0")
    return found


def missing_columns(shape: Shape, columns: Names) -> Missing:
    """The columns that the file's tables lack; all of them where the table is missing."""
    there = columns_of(shape)
    lacking = {
        table: tuple(sorted(names - there.get(table, frozenset())))
        for table, names in sorted(columns.items())
    }
    return {table: names for table, names in lacking.items() if names}


def columns_of(shape: Shape) -> Names:
    """The columns of the file's ordinary tables."""
    return {name: frozenset(table.columns) for name, table in shape.tables.items() if table.kind == "table"}
