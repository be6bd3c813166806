"""Make two states of a store and compare them; judges nothing."""

from __future__ import annotations

import shutil
from pathlib import Path

from hermes_dbtools.comparing.compare import CompareOptions, compare
from hermes_dbtools.comparing.model import Comparison, TableComparison
from hermes_dbtools.home import resolve
from tests.shapes.make import fill, make

NOW = 1_790_000_000.0
ROWS_ONLY = CompareOptions(damage=False, now=NOW)
WITH_DAMAGE = CompareOptions(now=NOW)


def twins(folder: Path, shape: str = "22") -> tuple[Path, Path]:
    """A filled store and a copy of it: before and after."""
    before = make(folder / "before.db", shape)
    fill(before)
    after = folder / "after.db"
    shutil.copyfile(before, after)
    return before, after


def compared(before: Path, after: Path, options: CompareOptions = ROWS_ONLY) -> Comparison:
    """The comparison of two files."""
    return compare(resolve(before), resolve(after), options)


def table(comparison: Comparison, name: str) -> TableComparison:
    """What it says of one table."""
    (found,) = (one for one in comparison.tables if one.table == name)
    return found


def differing(comparison: Comparison) -> dict[str, tuple[int, int, int]]:
    """Lost, gained and changed rows of the tables that have any."""
    return {
        one.table: (one.lost, one.gained, one.changed)
        for one in comparison.tables
        if one.lost or one.gained or one.changed
    }
