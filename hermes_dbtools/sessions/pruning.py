"""Prune old sessions: look which may go, then delete them as any other sessions; the age is asked again under the lock."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace

from ..damage._declare import ScanContext
from ..home import Home
from ..model import Deletion
from .deleting import DeleteOptions, delete_all
from .looking import Look, look
from .prune import Filters, age_seconds, candidates, candidates_of


@dataclass(frozen=True, slots=True)
class Seen:
    """What a prune would do, with the lineages that are spared."""

    look: Look
    filters: Filters
    now: float
    pinned: int
    half_matched: int


def look_at(home: Home, older_than: str, wanted: Mapping[str, str | int], now: float | None = None) -> Seen:
    """Look at a prune of sessions older than an age such as `30d` that fit the filters; `now` is epoch seconds."""
    moment = time.time() if now is None else now
    filters = Filters(age_seconds(older_than), dict(wanted))
    found = candidates(home, filters, moment)
    seen = look(home, found.roots, whole_chain=True, now=moment, only=_only(filters, moment))
    return Seen(seen, filters, moment, found.pinned, found.half_matched)


def prune(home: Home, seen: Seen, *, backup: bool = False) -> Deletion:
    """Delete what was looked at, as far as it may still go."""
    only = _only(seen.filters, seen.now)
    return delete_all(home, seen.look.asked, DeleteOptions(True, backup, seen.now, only))


def _only(filters: Filters, now: float) -> Callable[[ScanContext], Collection[str]]:
    return lambda context: candidates_of(replace(context, now=now), filters).roots
