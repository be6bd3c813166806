"""Try the triggers of a full-text index on a message made up in memory; never touches a file and judges no text of a trigger.

A trigger of the right name that writes another row, another text or nothing looks like the store's own, and the index falls
behind with the next message. What it does is asked by letting it do it, so a trigger that a later release words in another way
is not accused. Where the schema cannot be made in memory (a tokenizer that is not here, a function that only the store has),
nothing is said.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

import apsw

from . import queries
from .file_sql import run_one

FILE = "search/feeding"
EVENTS = ("INSERT", "UPDATE", "DELETE")
"""In the order in which they happen to a message."""
FIRST_TEXT, SECOND_TEXT = "hermesdbtoolsfirst 你好世界", "hermesdbtoolssecond 再见世界"


@dataclass(frozen=True, slots=True)
class Fed:
    """What an index and the triggers that feed it are made by. `tables` and `views` are what they may read, by their texts."""

    name: str
    inline: bool
    create_sql: str
    triggers: tuple[tuple[str, str], ...]
    tables: tuple[str, ...]
    views: tuple[str, ...]


@lru_cache(maxsize=64)
def misled(fed: Fed, events: tuple[str, ...]) -> frozenset[str]:
    """Those of some events (INSERT, …) after which the index does not hold what it should; none where nobody can tell."""
    connection = apsw.Connection(":memory:")
    try:
        return _Trial(connection, fed).misled(events) if _made(connection, fed) else frozenset()
    except apsw.Error:
        return frozenset()
    finally:
        connection.close()


def _made(connection: apsw.Connection, fed: Fed) -> bool:
    """Whether the index is there with its triggers. A table that cannot be made may not be needed."""
    for sql in (*fed.tables, *fed.views):
        _tried(connection, sql)
    return all(_tried(connection, sql) for sql in (fed.create_sql, *(sql for _name, sql in fed.triggers)))


def _tried(connection: apsw.Connection, sql: str) -> bool:
    try:
        run_one(connection, sql)
    except apsw.Error:
        return False
    return True


@dataclass(slots=True)
class _Trial:
    """One message that comes in, changes and goes. After each event the index is as it should be, by hand where need be."""

    connection: apsw.Connection
    fed: Fed

    def misled(self, events: Iterable[str]) -> frozenset[str]:
        self._run("session")
        found = set()
        for event, text in zip(EVENTS, (FIRST_TEXT, SECOND_TEXT, ""), strict=True):
            self._run(event.lower(), {"text": text} if text else {})
            if not self._right(text):
                found.add(event)
                self._put_right(text)
        return frozenset(found.intersection(events))

    def _right(self, text: str) -> bool:
        if self._run("entries") != ([(1,)] if text else []):
            return False
        if self.fed.inline:
            return not text or text in str(self._run("stored")[0][0])
        try:
            self._run("compare")
        except apsw.Error:
            return False
        return True

    def _put_right(self, text: str) -> None:
        if not self.fed.inline:
            self._run("fill_again")
            return
        self._run("empty_stored")
        if text:
            self._run("fill_stored", {"text": text})

    def _run(self, block: str, bindings: dict[str, str] | None = None) -> list[tuple[object, ...]]:
        names = {"index": self.fed.name} | {
            place: f"{self.fed.name}_{tail}"
            for place, tail in (("docsize", "docsize"), ("stored", "content"))
        }
        return list(self.connection.execute(queries.fill(queries.statement(FILE, block), **names), bindings))
