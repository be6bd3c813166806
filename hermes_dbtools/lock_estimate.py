"""Estimate how long a plan will keep the write lock; opens nothing.

The constants are upper ends of what tests/bench/ measures on a machine of 2 cores; they decide only whether `--online` may go
ahead, so they err on the long side.
"""

from __future__ import annotations

from .database import FileState
from .model import Plan

START = 0.05
PER_STEP = 0.000_2
PER_ROW = 0.000_03
PER_REMOVED_ROW = 0.000_3
PER_FILE_BYTE = 1.5e-9
PER_INDEXED_BYTE = 6e-9
PER_SEARCH_BYTE = 1e-7


def seconds(plan: Plan, state: FileState) -> float:
    """Seconds: a fixed start, the rows the steps change, the indexes they make, and checks that read the whole file."""
    statements = [statement for step in plan.steps for statement in step.statements]
    removed = sum(s.expect for s in statements if s.operation == "delete")
    changed = sum(s.expect for s in statements) - removed
    indexes = sum(s.operation == "create" for s in statements)
    search = PER_SEARCH_BYTE if any(step.search for step in plan.steps) else 0.0
    return (
        START
        + PER_STEP * len(plan.steps)
        + PER_ROW * changed
        + PER_REMOVED_ROW * removed
        + (PER_FILE_BYTE + PER_INDEXED_BYTE * indexes + search) * (state.size + (state.wal_size or 0))
    )
