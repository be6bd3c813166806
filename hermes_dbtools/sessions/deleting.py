"""Delete sessions beside whoever has the file open: the guard decides, then the busy timeout; writes only through `apply`.

Where others hold the file, sessions go in several transactions, each short enough that a writer of the store waits within its own
retries. What becomes live, or changes, between look and lock is looked at again.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from .. import lock_estimate, repairing
from ..apply import ApplyOptions, apply_plan
from ..damage._declare import printable
from ..home import Home
from ..model import Active, BecameLive, Deletion, LiveSession, Receipt, Refused, Skipped, StalePlan
from ..plan import rows_removed
from .looking import Look, Only, active_line, look

GROUP_SECONDS = 1.0
"""Estimated seconds under the lock of one transaction beside others. A store waits 1 s at a time and tries 15 times."""

LONGEST_SECONDS = 8.0
"""Estimated seconds above which one session is too large to be deleted beside others."""

ATTEMPTS = 3
"""Looks at one group of sessions before a delete gives up: each one means that somebody else has changed something."""


class SessionActive(Active):
    """The session that was to be deleted is live. The values are what the surfaces of the store answer with."""

    http_status = 409
    rpc_code = 4023

    def __init__(self, live: LiveSession) -> None:
        """The text begins with the words that every surface of the store uses."""
        super().__init__(
            f"Cannot delete active session {printable(live.session_id)}: {active_line(live)}; nothing was changed; "
            "try again when it is idle"
        )
        self.session_id = live.session_id
        self.live = live


@dataclass(slots=True)
class Outcome:
    """What a delete has done so far."""

    deleted: list[str] = field(default_factory=list)
    taken_along: list[str] = field(default_factory=list)
    active: dict[str, LiveSession] = field(default_factory=dict)
    refused: dict[str, Skipped] = field(default_factory=dict)
    missing: list[str] = field(default_factory=list)
    receipts: list[Receipt] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class DeleteOptions:
    """How to delete. `backup` copies and verifies the whole file before the first transaction.

    `only` says, inside each transaction, which sessions may still go.
    """

    whole_chain: bool = False
    backup: bool = False
    now: float | None = None
    only: Only = None


def delete_all(home: Home, ids: Iterable[str], options: DeleteOptions) -> Deletion:
    """Delete sessions by their whole ids, and say what was done; those that may not go are left alone.

    Raises what `apply_plan` raises where nothing was changed by the transaction that failed; earlier ones stay.
    """
    asked = tuple(dict.fromkeys(ids))
    repairing.finish_pending(home)
    outcome = Outcome()
    first = _looked(home, asked, options)
    _note(outcome, first)
    for group in _groups(first):
        _delete_group(home, group, options, outcome, None if first.held else first)
    gone = {*outcome.deleted, *outcome.taken_along}
    known = frozenset(asked)
    return Deletion(
        deleted=tuple(one for one in asked if one in gone),
        also_deleted=tuple(one for one in outcome.taken_along if one not in known),
        skipped_active=tuple(outcome.active[one] for one in asked if one in outcome.active),
        skipped=tuple(outcome.refused[one] for one in asked if one in outcome.refused),
        missing=tuple(outcome.missing),
        receipts=tuple(outcome.receipts),
    )


def refuse_active(seen: Look) -> None:
    """Raise SessionActive, or Refused, where the only session that was asked for may not go."""
    if seen.plan.steps:
        return
    if seen.active:
        raise SessionActive(seen.active[0])
    if seen.refused:
        raise Refused(f"{seen.refused[0].key}: {seen.refused[0].reason}; nothing was changed")


def refuse_left(done: Deletion) -> None:
    """The same for a delete of one session that was left alone in the end."""
    if done.skipped_active and not done.deleted:
        raise SessionActive(done.skipped_active[0])
    if done.skipped and not done.deleted:
        raise Refused(f"{done.skipped[0].key}: {done.skipped[0].reason}; nothing was changed")


def _delete_group(
    home: Home, group: tuple[str, ...], options: DeleteOptions, outcome: Outcome, first: Look | None
) -> None:
    for attempt in range(ATTEMPTS):
        seen = first if first is not None and not attempt else _looked(home, group, options)
        _note(outcome, seen)
        if not seen.plan.steps:
            return
        if seen.held and seen.lock_seconds > LONGEST_SECONDS:
            _too_large(outcome, seen)
            return
        try:
            receipt = apply_plan(home, seen.plan, _how(options, seen, backup=not outcome.receipts))
        except (BecameLive, StalePlan):
            if attempt + 1 == ATTEMPTS:
                raise
            continue
        outcome.receipts.append(receipt)
        outcome.deleted += seen.roots
        outcome.taken_along += seen.going
        return


def _how(options: DeleteOptions, seen: Look, *, backup: bool) -> ApplyOptions:
    return ApplyOptions(
        online=True,
        backup=options.backup and backup,
        now=time.time() if options.now is None else options.now,
        lock_limit=math.inf,
        planners=seen.planners,
    )


def _looked(home: Home, ids: tuple[str, ...], options: DeleteOptions) -> Look:
    return look(home, ids, whole_chain=options.whole_chain, now=options.now, only=options.only)


def _note(outcome: Outcome, seen: Look) -> None:
    outcome.active.update({str(one.session_id): one for one in seen.active})
    outcome.refused.update({one.key: one for one in seen.refused})
    gone = {*outcome.deleted, *outcome.taken_along}
    outcome.missing += [one for one in seen.missing if one not in gone and one not in outcome.missing]


def _too_large(outcome: Outcome, seen: Look) -> None:
    for root in seen.roots:
        reason = f"it would keep the write lock for about {seen.lock_seconds:.1f} s beside other processes; stop them first"
        outcome.refused[root] = Skipped("delete", "sessions-delete", root, reason)


def _groups(seen: Look) -> Iterator[tuple[str, ...]]:
    """The roots by transactions: all in one where nobody else has the file, else as many as fit under a short lock."""
    if not seen.held:
        if seen.roots:
            yield seen.roots
        return
    group: list[str] = []
    seconds = 0.0
    for step in seen.plan.steps:
        if not step.session_ids:
            continue
        took = lock_estimate.PER_STEP + lock_estimate.PER_REMOVED_ROW * rows_removed(step)
        if group and seconds + took > GROUP_SECONDS:
            yield tuple(group)
            group, seconds = [], 0.0
        group.append(step.key)
        seconds += took
    if group:
        yield tuple(group)
