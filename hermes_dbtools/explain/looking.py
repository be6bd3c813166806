"""Read all that the rows say of some sessions in one unchanging state of the file; writes nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from .. import visibility
from ..damage._declare import ScanContext, text
from ..home import Home
from ..model import LiveSession
from ..sessions.lineage_tree import family
from ..sessions.listing import because, words
from ..sessions.reading import look
from . import places, statements
from .document import Failing
from .places import Places


@dataclass(frozen=True, slots=True)
class Seen:
    """What rows say of one session. `hidden` says why lists leave it out, `shown_as` under which id they show it."""

    place: Places
    hidden: str
    shown_as: str
    live: LiveSession | None
    failing: tuple[Failing, ...]
    blocked: tuple[Failing, ...]
    family: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Looked:
    """What rows say of all sessions that were asked for, and the profiles that could not be looked at."""

    sessions: tuple[Seen, ...]
    unseen: tuple[str, ...] = ()


def sessions(home: Home, now: float, ids: Callable[[ScanContext], Iterable[str]]) -> Looked:
    """Look at the sessions that `ids` names; `now` is epoch seconds.

    Raises CouldNotLook where rows cannot be read, and what `ids` raises; apsw errors of damaged pages pass through.
    """
    return look(home, now, lambda context: _looked(context, list(ids(context))))


def _looked(context: ScanContext, ids: list[str]) -> Looked:
    found = places.find(context, ids)
    live = context.ask_guard()
    standings = visibility.standings(context.connection, context.has)
    failing = statements.failing(context, found.places.values())
    return Looked(
        tuple(
            Seen(
                place,
                *_shown(place, standings.get(one)),
                live.get(one) if place.known else None,
                tuple(failing[one]),
                tuple(statements.blocking(context, place)),
                _family(context, place),
            )
            for one, place in found.places.items()
        ),
        found.unseen,
    )


def _shown(place: Places, standing: visibility.Standing | None) -> tuple[str, str]:
    """Why lists leave a session out, and the id under which they show it."""
    if standing is None:
        return "", ""
    if standing.shown and place.source in visibility.HELPERS:
        return f"lists leave out sessions of source {place.source}", ""
    if standing.shown:
        return "", words(standing.shown_as)
    return because(standing), ""


def _family(context: ScanContext, place: Places) -> tuple[str, ...]:
    """The other sessions of its family; of a session without a row, its children and theirs."""
    if not place.row and not place.rows("sessions", "parent_session_id"):
        return ()
    found = {text(one.relative.id) for one in family(context, place.id)}
    return tuple(sorted(one for one in found if isinstance(one, str) and one != place.id))
