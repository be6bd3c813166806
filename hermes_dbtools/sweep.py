"""The one pass over `messages` that reads content, shared by every class that needs it; keeps no content.

The pass itself runs inside SQLite and hands out only the rows that some class must look at again. A class that needs a
new kind of suspect adds a mark to sql/sweep.sql, never a pass.
"""

from __future__ import annotations

from array import array
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from . import known, utf8
from .model import Value

if TYPE_CHECKING:
    from .damage._declare import ScanContext

UNREADABLE_CALLS = -1
NOT_UTF8, NOT_A_TIME, NOT_JSON = 1, 2, 4
"""Flaws of a row, as the pass adds them up. The last may be a false alarm: the reader of the store is more lenient."""


@dataclass(slots=True)
class CallCounts:
    """Tool calls of one session: in its active rows, in all its rows, and whether some list could not be read."""

    active: int = 0
    total: int = 0
    unreadable: bool = False


@dataclass(slots=True)
class Sweep:
    """What the pass found. `calls` is by session id as bytes; `reference_rows` are message ids that mention a file.

    `flawed` are message ids by flaw.
    """

    done: bool = False
    passes: int = 0
    calls: dict[Value, CallCounts] = field(default_factory=dict)
    reference_rows: array[int] = field(default_factory=lambda: array("q"))
    flawed: dict[int, array[int]] = field(
        default_factory=lambda: {flaw: array("q") for flaw in (NOT_UTF8, NOT_A_TIME, NOT_JSON)}
    )

    def run(self, context: ScanContext) -> Sweep:
        """Make the pass if it has not been made; every later call is free."""
        if self.done:
            return self
        self.passes += 1
        utf8.register(context.connection)
        names = _columns(context)
        rows = context.rows("sweep", "suspects", names=names)
        for message_id, session_id, active, calls, mentions, flaws in rows:
            if calls:
                counts = self.calls.setdefault(session_id, CallCounts())
                if calls == UNREADABLE_CALLS:
                    counts.unreadable = True
                elif isinstance(calls, int):
                    counts.total += calls
                    counts.active += calls if active else 0
            if mentions and isinstance(message_id, int):
                self.reference_rows.append(message_id)
            if isinstance(flaws, int) and flaws and isinstance(message_id, int):
                for flaw, ids in self.flawed.items():
                    if flaws & flaw:
                        ids.append(message_id)
        self.done = True
        return self


def _columns(context: ScanContext) -> dict[str, tuple[str, ...]]:
    """The columns of the file's messages by what is asked of them."""
    return {
        "text_columns": context.shape.text_columns("messages"),
        "json_columns": tuple(
            column for column in known.MESSAGE_JSON if context.shape.has(f"messages.{column}")
        ),
    }
