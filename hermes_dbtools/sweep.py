"""The one pass over `messages` that reads content, shared by every class that needs it; keeps no content.

The pass itself runs inside SQLite and hands out only the rows that some class must look at again. A class that needs a
new kind of suspect adds a line with a mark to sql/sweep.sql and asks for its rows by that name; it never adds a pass.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from heapq import merge
from itertools import groupby
from typing import TYPE_CHECKING

from . import known, queries, utf8
from .model import Value
from .tool_calls import Pairing, read_calls

if TYPE_CHECKING:
    from .damage._declare import ScanContext

NOT_UTF8, NOT_A_TIME, NOT_JSON, OUT_OF_DOMAIN = "not_utf8", "not_a_time", "not_json", "out_of_domain"
"""Marks of bad values. The third may be a false alarm: the reader of the store is more lenient."""

_MARK = re.compile(r":([a-z]\w*)")


@dataclass(slots=True)
class CallCounts:
    """Tool calls of one session: in its active rows, in all its rows, and whether some list could not be read."""

    active: int = 0
    total: int = 0
    unreadable: bool = False


@dataclass(slots=True)
class Sweep:
    """What the pass found. `calls` is by session id as bytes; `marked` holds message ids by mark, in order."""

    done: bool = False
    passes: int = 0
    calls: dict[Value, CallCounts] = field(default_factory=dict)
    pairing: Pairing = field(default_factory=Pairing)
    marked: dict[str, array[int]] = field(default_factory=dict)
    tell: Callable[[str], None] = lambda _how_far: None
    """Told how much of the messages has been read, in hundredths of their ids."""

    def run(self, context: ScanContext) -> Sweep:
        """Make the pass if it has not been made; every later call is free."""
        if self.done:
            return self
        self.passes += 1
        utf8.register(context.connection)
        bits = marks(context)
        self.marked = {name: array("q") for name in bits}
        by_bit = [(bit, self.marked[name]) for name, bit in bits.items()]
        pairing = self.pairing
        place = _place(context, self.tell)
        for message_id, session, active, calls, result, marked in context.rows(
            "sweep", "suspects", bits, _columns(context)
        ):
            if place is not None and message_id >= place.due:  # type: ignore[operator]
                place.reached(message_id)  # type: ignore[arg-type]
            if marked:
                for bit, ids in by_bit:
                    if marked & bit:  # type: ignore[operator]
                        ids.append(message_id)  # type: ignore[arg-type]
            if calls is not None:
                self._count(session, bool(active), message_id, calls)
            elif result is not None and active:
                pairing.result(session, message_id, result)  # type: ignore[arg-type]
        pairing.close()
        self.done = True
        return self

    def rows(self, mark: str) -> array[int]:
        """Ids of messages with a mark. Raises KeyError for a mark that the pass does not set."""
        return self.marked[mark]

    @property
    def reference_rows(self) -> array[int]:
        """Ids of messages that may name a file."""
        return self.marked["reference"]

    @property
    def naming_rows(self) -> array[int]:
        """Ids of messages that may name a file of a folder that the store owns, `reference_rows` among them."""
        merged = merge(self.marked["reference"], self.marked["naming"])
        return array("q", (key for key, _same in groupby(merged)))

    @property
    def flawed(self) -> Mapping[str, array[int]]:
        """Ids of messages by the mark of a bad value."""
        return {mark: self.marked[mark] for mark in (NOT_UTF8, NOT_A_TIME, NOT_JSON, OUT_OF_DOMAIN)}

    def _count(self, session: Value, active: bool, message_id: Value, encoded: Value) -> None:
        counts = self.calls.get(session)
        if counts is None:
            counts = self.calls[session] = CallCounts()
        read = read_calls(encoded) if isinstance(encoded, bytes) else None
        if read is None:
            counts.unreadable = True
            return
        counts.total += read.count
        if active:
            counts.active += read.count
            self.pairing.calls(session, message_id, read.calls)  # type: ignore[arg-type]


@dataclass(slots=True)
class _Place:
    """How far the pass has come from the first to the last id. State: `due` is the id from which there is more to say."""

    first: int
    last: int
    due: int
    tell: Callable[[str], None]

    def reached(self, message_id: int) -> None:
        done, all_ = int(message_id) - self.first, self.last - self.first + 1
        percent = 100 * done // all_
        self.tell(f"reading messages: {percent} %")
        self.due = self.first + all_ * (percent + 1) // 100 + 1


def _place(context: ScanContext, tell: Callable[[str], None]) -> _Place | None:
    """None where ids do not tell: they are no numbers, so they need not rise."""
    for first, last in context.rows("sweep", "extent"):
        if isinstance(first, int) and isinstance(last, int):
            return _Place(first, last, first, tell)
    return None


def marks(context: ScanContext) -> Mapping[str, int]:
    """The marks of the pass over this file, each a bit, in the order in which the statement names them."""
    query = queries.choose("sweep", "suspects", context.has)
    names = dict.fromkeys(_MARK.findall(query.sql)) if query else {}
    return {name: 1 << place for place, name in enumerate(names)}


def _columns(context: ScanContext) -> dict[str, tuple[str, ...]]:
    """The columns of the file's messages by what is asked of them."""
    return {
        "text_columns": context.shape.text_columns("messages"),
        "flag_columns": (
            "active",
            *(column for column in known.MESSAGE_FLAGS if context.shape.has(f"messages.{column}")),
        ),
        "naming_columns": tuple(
            column for column in known.MESSAGE_NAMING if context.shape.has(f"messages.{column}")
        ),
        "json_columns": tuple(
            column for column in known.MESSAGE_JSON if context.shape.has(f"messages.{column}")
        ),
    }
