"""Find where a session id stands: rows of this file, other profiles, transcripts, tombstones; changes nothing."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from ..damage._declare import ScanContext, text, whole
from ..damage.references._profiles import UNSEEN, profiles_of
from ..model import UsageError, Value
from ..sessions import ids as words
from ..sessions.reading import named
from ..sessions.showing import SOFT
from ..transcripts import candidates, names_of
from .document import Named

FILE = "explain"
LEDGER = (("session_admissions", "target_session_id"), ("worker_executions", "session_id"))
"""Columns of the runtime ledger that name a session."""


@dataclass(slots=True)
class Places:
    """Where one id stands. `ended` is how its row was closed, '' where it is open or has none."""

    id: str
    row: bool = False
    archived: bool = False
    closed: bool = False
    ended: str = ""
    source: str = ""
    deleted: bool = False
    named_by: list[Named] = field(default_factory=list)
    transcripts: tuple[str, ...] = ()
    profiles: tuple[str, ...] = ()

    @property
    def known(self) -> bool:
        """Whether anything at all knows the id."""
        return self.row or self.deleted or bool(self.named_by or self.transcripts or self.profiles)

    @property
    def used(self) -> bool:
        """Whether rows name it that mean something without a lock or lease of the past."""
        return any((one.table, one.column) not in SOFT for one in self.named_by)

    def rows(self, table: str, column: str) -> int:
        """How many rows of a table name it by a column."""
        return sum(one.rows for one in self.named_by if (one.table, one.column) == (table, column))


@dataclass(frozen=True, slots=True)
class Found:
    """The places of all ids that were asked for, and the profiles that could not be looked at."""

    places: dict[str, Places]
    unseen: tuple[str, ...]


def find(context: ScanContext, session_ids: Iterable[str]) -> Found:
    """Where each of these ids stands, in their order."""
    found = {one: Places(one) for one in session_ids}
    asked = json.dumps([one for one in found if _is_text(one)])
    for key, ended, reason, source, archived in context.rows(FILE, "standing", {"ids": asked}):
        place = found[str(text(key))]
        place.row, place.archived, place.closed = True, bool(archived), ended is not None
        place.ended = str(text(reason) or "") if ended is not None else ""
        place.source = str(text(source) or "")
    for table, column in columns(context):
        names = {"table": table, "column": column}
        for key, rows in context.rows(FILE, "rows-of", {"ids": asked}, names):
            found[str(text(key))].named_by.append(Named(table, column, whole(rows)))
    for key, rows in context.rows(FILE, "routes", {"ids": asked}):
        found[str(text(key))].named_by.append(Named("gateway_routing", "entry_json", whole(rows)))
    for key, rows, tomb in context.rows(FILE, "settings", {"ids": asked}):
        place = found[str(text(key))]
        place.deleted = bool(tomb)
        if kept := whole(rows) - whole(tomb):
            place.named_by.append(Named("state_meta", "key", kept))
    return Found(found, _outside(context, found))


def columns(context: ScanContext) -> Iterator[tuple[str, str]]:
    """The columns of the file that name sessions, declared or known, but for the ids of sessions themselves."""
    for name in context.shape.canonical_tables:
        table = context.shape.tables[name]
        declared = [
            key.columns[0]
            for key in table.foreign_keys
            if key.parent.lower() == "sessions" and len(key.columns) == 1
        ]
        known = [column for owner, column in (*SOFT, *LEDGER) if owner == name and column in table.columns]
        for column in dict.fromkeys((*declared, *known)):
            yield name, column


def meant(context: ScanContext, word: str) -> str:
    """The id that a word means: that of a row, else one that something else knows.

    Raises UsageError where it means none or several.
    """
    try:
        return named(context, word)
    except UsageError as none:
        if (
            not _is_text(word)
            or not 0 < len(word) <= words.LONGEST
            or "\0" in word
            or _several(context, word)
        ):
            raise
        traces = sorted(_traces(context, word))
        exact = [one for one in traces if one == word]
        if not traces or (not exact and len(word) < words.SHORTEST_PREFIX):
            raise UsageError(
                f"{words.short(word)!r}: no session has this id, and nothing else knows it: no message, tombstone, "
                "transcript or other profile"
            ) from none
        if not exact and len(traces) > 1:
            raise UsageError(f"{words.short(word)!r}: several ids begin so; give more of it") from None
        return (exact or traces)[0]


def _several(context: ScanContext, word: str) -> bool:
    """Whether rows are meant, and more than one."""
    span = {"word": word, "next": word + "\U0010ffff"}
    rows = context.rows(FILE, "like-row", span) if len(word) >= words.SHORTEST_PREFIX else iter(())
    titled = context.rows("sessions/show", "titled", {"title": word})
    return any(True for _row in (*rows, *titled))


def _traces(context: ScanContext, word: str) -> set[str]:
    span = {"word": word, "next": word + "\U0010ffff"}
    found: set[Value] = {text(row[0]) for row in context.rows(FILE, "like-trace", span)}
    found.update(text(row[0]) for row in context.rows(FILE, "like-route", span))
    for table, column in columns(context):
        if table not in ("sessions", "messages"):
            names = {"table": table, "column": column}
            found.update(text(row[0]) for row in context.rows(FILE, "like-named", span, names))
    if context.home is not None:
        found.update(profiles_of(context.home, FILE, (word,)))
        found.update(one for one in candidates(context.home.sessions_dir) if one.startswith(word))
    return {one for one in found if isinstance(one, str)}


def _outside(context: ScanContext, found: dict[str, Places]) -> tuple[str, ...]:
    """Fill in what lies outside the file; returns the profiles that could not be looked at."""
    if context.home is None or not found:
        return ()
    profiles = profiles_of(context.home, FILE, found)
    for one, place in found.items():
        place.profiles = tuple(profiles.get(one, ()))
        if not place.row:
            folder = context.home.sessions_dir
            place.transcripts = tuple(
                name
                for name in names_of(one)
                if os.path.isfile(folder / name)  # noqa: PTH113 - Path.is_file raises
            )
    return tuple(str(name).replace(f": {UNSEEN}", "") for name in profiles.get(None, ()))


def _is_text(word: str) -> bool:
    try:
        word.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True
