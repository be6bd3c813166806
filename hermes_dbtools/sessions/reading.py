"""Look at a store for a command on sessions, and find the session that a word means; changes nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from .. import database
from ..damage._declare import ScanContext, text
from ..home import Home
from ..model import CouldNotLook, UsageError
from ..shape import read_shape
from ..structure import Gate
from . import ids

T = TypeVar("T")

FILE = "sessions/show"
LONGEST_TITLE = 100
"""Letters that upstream allows a title."""


def look(home: Home, now: float, body: Callable[[ScanContext], T]) -> T:
    """Run `body` on one unchanging state of the store, more than once where that moved; `now` is epoch seconds.

    Raises CouldNotLook where its rows cannot be read or relied on.
    """

    def run(reading: database.Reading) -> T:
        if not reading.rows_trusted:
            raise CouldNotLook(
                f"{reading.state.path}: rows of this file cannot be relied on; hermes-dbtools runbook split-wal"
            )
        shape = read_shape(reading.connection)
        return body(ScanContext(reading.connection, shape, home, reading.state, Gate(), now))

    return database.read(home.database, run)


def named(context: ScanContext, word: str) -> str:
    """The id that a word means: an id, the beginning of exactly one, or a title.

    Raises UsageError where it means none or several.
    """
    try:
        (session_id,) = ids.resolve(context, (word,))
    except UsageError:
        if not 0 < len(word) <= LONGEST_TITLE or not word.isprintable():
            raise
        found = [text(row[0]) for row in context.rows(FILE, "titled", {"title": word})]
        if len(found) > 1:
            raise UsageError(f"{ids.short(word)!r}: several sessions have this title; give an id") from None
        if not found or not isinstance(found[0], str):
            raise
        return found[0]
    return session_id
