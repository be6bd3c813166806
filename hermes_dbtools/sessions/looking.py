"""Say what a delete of some sessions would do now: a plan, and all that is left alone with the reason; writes nothing."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace

from .. import database, lock_estimate, preflight
from ..damage._declare import Planner, ScanContext, printable
from ..guard import live_sessions
from ..home import Home
from ..model import CouldNotLook, LiveSession, Plan, Refused, Skipped, SkippedActive, Step, Value
from ..plan import fingerprint, rows_removed
from ..shape import read_shape
from ..sizes import path_text
from ..structure import Gate
from . import delete
from .ids import resolve, there
from .targets import Lineages, read_lineages

Only = Callable[[ScanContext], Collection[str]] | None


@dataclass(frozen=True, slots=True)
class Look:
    """What would be deleted, and what would not.

    `asked` are whole ids, `missing` those without a row; `active` and `refused` have one entry for each root that stays.
    `lock_seconds` is the estimate of the time under the write lock; `held` says that others have the file open.
    """

    asked: tuple[str, ...]
    plan: Plan
    planners: Mapping[str, Planner]
    active: tuple[LiveSession, ...]
    refused: tuple[Skipped, ...]
    missing: tuple[str, ...]
    lock_seconds: float
    held: bool

    @property
    def roots(self) -> tuple[str, ...]:
        """The asked sessions that would go by steps of their own."""
        return tuple(step.key for step in self.plan.steps if step.session_ids)

    @property
    def going(self) -> tuple[str, ...]:
        """Every session that would go, in the order of the steps."""
        return tuple(str(one) for step in self.plan.steps for one in step.session_ids)


def look(
    home: Home,
    ids: Iterable[str],
    *,
    whole_chain: bool = False,
    now: float | None = None,
    words: bool = False,
    only: Only = None,
) -> Look:
    """Look at a delete of these sessions at `now` (epoch seconds). With `words` an id may be its beginning;
    `only` says which may still go.

    Raises CouldNotLook for a file that cannot be read, Refused for one that may not be changed, UsageError for a word
    that means no session.
    """
    asked = tuple(dict.fromkeys(ids))
    moment = time.time() if now is None else now
    state = database.examine(home.database)
    if state.problem:
        raise CouldNotLook(database.problem_line(state))

    def read(reading: database.Reading) -> Look:
        preflight.refuse_untrusted(reading)
        shape = read_shape(reading.connection)
        if shape.newer:
            raise Refused(f"{shape.newer}: this file is report-only; update hermes-dbtools")
        context = ScanContext(reading.connection, shape, home, state, Gate(), moment)
        chosen = resolve(context, asked) if words else asked
        return _look(context, delete.Request(chosen, whole_chain, only))

    return database.read(home.database, read)


def active_line(live: LiveSession) -> str:
    """Why a session is live, who holds it and until when, in words."""
    holder = f", {live.holder}" if live.holder else ""
    until = (
        f", until {time.strftime('%H:%M:%S', time.localtime(live.expires_at))}"
        if live.expires_at is not None and live.expires_at < 2**40
        else ""
    )
    return f"{live.reason}{holder}{until}"


def _look(context: ScanContext, request: delete.Request) -> Look:
    state = context.file
    held = state.holders.held
    asked, whole_chain = request.roots, request.whole_chain
    known = there(context, asked)
    roots = delete.standing(context, request)
    live = live_sessions(context.connection, context.shape, home=context.home, now=context.now, held=held)
    active = _active(read_lineages(context), roots, live, whole_chain=whole_chain) if live else {}
    request = replace(request, roots=tuple(root for root in roots if root not in active))
    reasons = delete.refusals(context, request)
    request = replace(request, roots=tuple(root for root in request.roots if root not in reasons))
    steps, request = _steps(context, request, reasons)
    plan = Plan(
        database=path_text(state.path),
        fingerprint=fingerprint(steps),
        steps=steps,
        skipped=tuple(
            Skipped(delete.CODE, delete.SLUG, root, reasons[root]) for root in roots if root in reasons
        ),
        skipped_active=tuple(
            SkippedActive(delete.CODE, delete.SLUG, root, root, active_line(one))
            for root, one in active.items()
        ),
        choices={},
        allow_lossy=True,
        max_rows=sum(rows_removed(step) for step in steps),
    )
    return Look(
        asked=asked,
        plan=plan,
        planners={delete.CODE: delete.operation(request)},
        active=tuple(active.values()),
        refused=plan.skipped,
        missing=tuple(one for one in asked if one not in known),
        lock_seconds=lock_estimate.seconds(plan, state),
        held=held,
    )


def _active(
    lineages: Lineages, roots: Iterable[str], live: Mapping[Value, LiveSession], *, whole_chain: bool
) -> dict[str, LiveSession]:
    """The roots that may not go because they, or what goes with them, are live."""
    found: dict[str, LiveSession] = {}
    for root in roots:
        for one in lineages.going_with(root, whole_chain=whole_chain):
            if (why := live.get(one)) is not None:
                reason = why.reason if one == root else f"{printable(one)} goes with it: {why.reason}"
                found[root] = LiveSession(root, reason, why.holder, why.expires_at)
                break
    return found


def _steps(
    context: ScanContext, request: delete.Request, reasons: dict[str, str]
) -> tuple[tuple[Step, ...], delete.Request]:
    """The steps for the roots that may go; what may not is added to the reasons, and the rest is asked for anew."""
    while True:
        remedies = [
            (finding.key, remedy)
            for finding in delete.operation(request).find(context)
            for remedy in finding.remedies
        ]
        refused = {key: remedy.refused for key, remedy in remedies if remedy.refused}
        if not refused:
            return tuple(remedy.step for _key, remedy in remedies if remedy.step is not None), request
        reasons.update(refused)
        request = replace(request, roots=tuple(root for root in request.roots if root not in refused))
