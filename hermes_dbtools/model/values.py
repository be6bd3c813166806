"""One SQLite value, and the fixed words of findings and repairs; computes nothing."""

from __future__ import annotations

from enum import IntEnum, StrEnum
from typing import Literal

Value = str | bytes | int | float | None
"""One SQLite value. TEXT that is not UTF-8 travels as its bytes (design rule: values cannot stop us)."""


class Severity(IntEnum):
    """How bad a finding is; the order is the order of `--fail-on`."""

    NOTE = 1
    WARNING = 2
    ERROR = 3

    @property
    def word(self) -> str:
        """Lower-case word as documents and tables print it."""
        return self.name.lower()


class Safety(StrEnum):
    """What a repair may do to data: see `Damage.safety`."""

    EXACT = "exact"
    LOSSY = "lossy"
    CHOICE = "choice"
    MANUAL = "manual"


class Status(StrEnum):
    """The outcome of one damage class on one database."""

    CLEAN = "clean"
    DAMAGED = "damaged"
    COULD_NOT_LOOK = "could-not-look"
    NOT_APPLICABLE = "not-applicable"
    SKIPPED = "skipped"


Extent = Literal["rows", "session", "apart"]
"""What the deletes of a class are. `rows`: single rows. `session`: all that their table holds of a session, so a later step
that updates its rows there has nothing to do. `apart`: rows of `state_meta` that belong to no session."""
