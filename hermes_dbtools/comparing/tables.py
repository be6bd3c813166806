"""Compare one table of two files: count what is lost, gained and changed, and name the first rows; keeps no value of a row."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Literal

import apsw

from .. import queries
from ..damage._declare import printable, text
from ..model import Value
from ..shape import Shape
from .columns import Pairing, pair
from .conversions import MOVING, Difference, Upgrade, explained, is_bookkeeping
from .model import RowName, TableComparison
from .rows import FILE, Layout, Row, Tally, walk

NAMED = 1_000
"""Rows named of each kind; counts are exact."""

OWN_NOTES = "notes of the store about itself"

NAMEABLE = frozenset((
    "id", "session_id", "hash", "execution_id", "admission_id", "delegation_id", "key", "day", "seq", "sequence",
    "obligation_id",
))  # fmt: skip
"""Key columns that hold ids of the store. Others may hold chats, addresses or paths, which are never printed."""

File = tuple[apsw.Connection, Shape]


@dataclass(slots=True)
class _Findings:
    """What the walk over one table tells."""

    upgrade: Upgrade
    pairing: Pairing
    lost: int = 0
    gained: int = 0
    changed: int = 0
    columns: Counter[str] = field(default_factory=Counter)
    converted: Counter[str] = field(default_factory=Counter)
    lost_rows: list[RowName] = field(default_factory=list)
    gained_rows: list[RowName] = field(default_factory=list)
    changed_rows: list[RowName] = field(default_factory=list)

    def __call__(self, layout: Layout, before: Row | None, after: Row | None) -> None:
        """Take up one row that differs."""
        row = before or after
        if row is None or is_bookkeeping(self.pairing.table, self._key(layout, row)):
            self.converted[OWN_NOTES] += 1
        elif before is None:
            self.gained += 1
            self._name(self.gained_rows, layout, row)
        elif after is None:
            self.lost += 1
            self._name(self.lost_rows, layout, row)
        else:
            self._pair(layout, before, after)

    def _pair(self, layout: Layout, before: Row, after: Row) -> None:
        steps: set[str] = set()
        left: list[str] = []
        for column in layout.changed(before, after):
            difference = Difference(
                self.pairing.table,
                column,
                self._key(layout, before),
                layout.value(before, column),
                layout.value(after, column),
            )
            step = explained(self.upgrade, difference)
            if step:
                steps.add(step)
            else:
                left.append(column)
        if left:
            self.changed += 1
            self.columns.update(left)
            self._name(self.changed_rows, layout, before, tuple(left))
        else:
            self.converted.update(steps)

    def _key(self, layout: Layout, row: Row) -> Value:
        return layout.value(row, self.pairing.columns[0])

    def _name(self, names: list[RowName], layout: Layout, row: Row, columns: tuple[str, ...] = ()) -> None:
        if len(names) >= NAMED or self.pairing.how == "by-row":
            return
        keys = self.pairing.columns[: self.pairing.keys]
        if not NAMEABLE.issuperset(keys):
            keys = tuple(name for name in keys if name == "session_id")
        owned = "session_id" in self.pairing.columns and "session_id" not in keys
        key = " ".join(_word(layout, row, name) for name in keys)
        if key or owned:
            names.append(RowName(key, _word(layout, row, "session_id") if owned else "", columns))


def compare_table(before: File, after: File, upgrade: Upgrade, name: str, tally: Tally) -> TableComparison:
    """Compare one table that at least one of the files has; `tally` grows with its rows."""
    one, other = before[1].tables.get(name), after[1].tables.get(name)
    if name in MOVING:
        return TableComparison(name, "left-out", MOVING[name])
    try:
        if one is None or other is None:
            return _alone(before, after, name)
        pairing = pair(one, other)
        try:
            return _compare(before, after, _Findings(upgrade, pairing), tally, careful=False)
        except UnicodeDecodeError:
            return _compare(before, after, _Findings(upgrade, pairing), tally, careful=True)
    except (apsw.Error, UnicodeDecodeError) as error:
        return TableComparison(name, "could-not-look", f"{type(error).__name__}: {error}")


def _compare(before: File, after: File, found: _Findings, tally: Tally, *, careful: bool) -> TableComparison:
    walk(before, after, Layout(found.pairing, careful), found, tally)
    return TableComparison(
        found.pairing.table,
        "compared",
        before=tally.before,
        after=tally.after,
        lost=found.lost,
        gained=found.gained,
        changed=found.changed,
        columns=dict(sorted(found.columns.items())),
        converted=dict(sorted(found.converted.items())),
        left_out=found.pairing.left_out,
        lost_rows=tuple(found.lost_rows),
        gained_rows=tuple(found.gained_rows),
        changed_rows=tuple(found.changed_rows),
    )


def _alone(before: File, after: File, name: str) -> TableComparison:
    """A table that one file lacks: all of its rows are lost or gained."""
    side: Literal["before", "after"] = "before" if name in before[1].tables else "after"
    connection = before[0] if side == "before" else after[0]
    ((count,),) = connection.execute(queries.fill(queries.statement(FILE, "row-total"), table=name))
    rows = int(count)
    if side == "before":
        return TableComparison(name, "compared", "only before", before=rows, lost=rows)
    return TableComparison(name, "compared", "only after", after=rows, gained=rows)


def _word(layout: Layout, row: Row, column: str) -> str:
    return printable(text(layout.value(row, column)))
