"""Words for what plans and receipts do to indexes and triggers, and for files that are newer than this tool; opens nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from ..model import Receipt, Step
from ..shown import one_line
from ..sizes import counted

UPDATE = ("update hermes-dbtools", "the file is newer than it knows: report only")
"""What to do about a newer file, and why."""


def objects_text(steps: Sequence[Step]) -> list[str]:
    """What steps make and drop, counted: `+2 indexes`, `-1 trigger`."""
    counts: Counter[tuple[str, str]] = Counter()
    for step in steps:
        for statement in step.statements:
            if statement.of_schema:
                counts[statement.operation, "index" if "index" in statement.names else "trigger"] += 1
    return [
        f"{'+' if made == 'create' else '-'}{_counted(count, kind)}" for (made, kind), count in counts.items()
    ]


def done_lines(receipt: Receipt) -> list[str]:
    """What a repair made and dropped."""
    return [
        one_line(f"  {'made' if change.after else 'dropped'} {change.type} {change.name} of {change.table}")
        for change in receipt.schema
    ]


def taken_back_lines(receipt: Receipt, *, done: bool) -> list[str]:
    """What an undo does to them."""
    drops, makes = ("dropped", "made again") if done else ("drop", "make again")
    return [
        one_line(f"  {drops if change.after else makes} {change.type} {change.name} of {change.table}")
        for change in receipt.schema
    ]


def _counted(count: int, kind: str) -> str:
    return counted(count, kind, {"index": "indexes", "trigger": "triggers"}[kind])
