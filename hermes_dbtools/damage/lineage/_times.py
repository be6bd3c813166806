"""Read the times that lineage classes compare; judges none of them (that is for invalid-timestamps)."""

from __future__ import annotations

import math

from ...model import Value

DAY = 86_400.0
"""Seconds of a day."""

LATEST = 4_200_000_000.0
"""Epoch seconds, in 2103, that upstream's readers take for the end of all times."""


def moment(value: Value) -> float | None:
    """A time in epoch seconds; None where it is not a number that can be one."""
    if isinstance(value, int | float) and math.isfinite(value) and 0 < value < LATEST:
        return float(value)
    return None
