"""List the sessions of a store with their state, and why upstream's lists leave some out; changes nothing."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import msgspec

from .. import visibility
from ..damage._declare import ScanContext, moment, text, whole
from ..home import Home
from ..model import LiveSession, Value
from .reading import look

FILE = "sessions/list"

KINDS = ("root", "branch", "delegate", "continuation", "reset", "child")
"""How a session hangs under its parent; `child`: nothing of its own says why it is one."""

STATES = ("live", "open", "closed", "archived")


class Listed(msgspec.Struct, frozen=True, gc=False):
    """One session. Times are epoch seconds, None where the row holds none that can be one.

    `reason` says why it is live, or how it was closed; `hidden` why upstream's lists do not show it, or ''.
    """

    id: Value
    source: str
    kind: str
    parent: Value
    title: str
    started_at: float | None
    ended_at: float | None
    messages: int
    state: str
    reason: str
    holder: str = ""
    expires_at: float | None = None
    hidden: str = ""
    shown_as: Value = None


@dataclass(frozen=True, slots=True)
class Filters:
    """Which sessions are asked for; an empty field asks for all. `hidden`: only those that upstream's lists leave out."""

    sources: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()
    states: tuple[str, ...] = ()
    hidden: bool = False
    now: float = field(default_factory=time.time)


@dataclass(frozen=True, slots=True)
class Listing:
    """The sessions that were asked for, newest first, and how many there are without the limit."""

    sessions: tuple[Listed, ...]
    total: int


def list_sessions(home: Home, filters: Filters | None = None, limit: int = 0) -> Listing:
    """The newest sessions of a home, all of them for a limit of 0. Raises CouldNotLook where the file cannot be read."""
    filters = filters or Filters()
    return look(home, filters.now, lambda context: _listing(context, filters, limit))


def listed(context: ScanContext, limit: int = -1) -> list[Listed]:
    """Every session, newest first, at most `limit` where that is not negative."""
    live = context.ask_guard()
    standings = visibility.standings(context.connection, context.has)
    cached: dict[Value, str] = {}
    rows = context.rows(FILE, "sessions", {"limit": limit})
    return [_listed(row, live, standings, cached) for row in rows]


def _listing(context: ScanContext, filters: Filters, limit: int) -> Listing:
    if not (filters.sources or filters.kinds or filters.states or filters.hidden):
        found = listed(context, limit or -1)
        ((total,),) = context.rows(FILE, "total")
        return Listing(tuple(found), whole(total))
    chosen = tuple(_wanted(listed(context), filters))
    return Listing(chosen[:limit] if limit else chosen, len(chosen))


def _wanted(sessions: Iterable[Listed], filters: Filters) -> Iterable[Listed]:
    for one in sessions:
        if (
            (not filters.sources or one.source in filters.sources)
            and (not filters.kinds or one.kind in filters.kinds)
            and (not filters.states or one.state in filters.states)
            and (not filters.hidden or one.hidden)
        ):
            yield one


def _listed(
    row: tuple[Value, ...],
    live: Mapping[Value, LiveSession],
    standings: Mapping[Value, visibility.Standing],
    cached: dict[Value, str],
) -> Listed:
    key, source, parent, title, started, ended, end_reason, count, archived, kind = row
    session_id = text(key)
    found = live.get(session_id) if live else None
    if source not in cached:
        cached[source] = words(source)
    word = cached[source]
    standing = standings.get(session_id)
    state, reason = _state(found, ended, words(end_reason), archived)
    return Listed(
        session_id,
        word,
        str(kind),
        text(parent),
        words(title),
        moment(started),
        moment(ended),
        count if isinstance(count, int) else whole(count),
        state,
        reason,
        found.holder if found else "",
        found.expires_at if found else None,
        _hidden(word, standing),
        standing.shown_as if standing else None,
    )


def _state(live: LiveSession | None, ended: Value, end_reason: str, archived: Value) -> tuple[str, str]:
    if live is not None:
        return "live", live.reason
    if archived:
        return "archived", ""
    return ("open", "") if ended is None else ("closed", end_reason)


def _hidden(source: str, standing: visibility.Standing | None) -> str:
    if standing is None or standing.shown:
        if source in visibility.HELPERS:
            return f"lists leave out sessions of source {source}"
        return ""
    return because(standing)


def because(standing: visibility.Standing) -> str:
    """Why lists leave out a session that is not shown, in words."""
    reasons = "; ".join(rule.sentence for rule in standing.rules)
    if standing.through is None:
        return reasons
    return f"of {words(standing.through)}, which it belongs to: {reasons}"


def words(value: Value) -> str:
    """A value as text that can be shown: bytes that are no UTF-8 as an id is written."""
    if value is None:
        return ""
    value = text(value)
    return f"hex:{value.hex()}" if isinstance(value, bytes) else str(value)
