"""A delegated task names a session or a worker that is not there.

What it means
-------------
`async_delegations` keeps the tasks that were given to background agents. The session that asked, or the worker
that ran the task, has no row: a result that is not delivered yet has nobody to go to, or nobody vouches for it.

Why it happens
--------------
No release removes tasks with their session: a delete leaves them, and the store itself clears delivered ones
after a week. A worker's row goes only with its session, and is then kept under a terminal key.

Repair
------
By hand: the row may hold the only copy of a result. The runbook shows how to look at it and when it may go.

Safety
------
Nothing is planned. `origin_session` is a chat's key and no session id, and is not looked up; nor is what a task's
event repeats. Where messages of a missing session are left, orphaned-messages adopts it and nothing is reported
here.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...model import Finding, Safety, Severity
from ...sizes import counted
from .._declare import ScanContext, declare, printable, text, whole
from ._missing import adopted_ids


def _find(context: ScanContext) -> Iterator[Finding]:
    sessions = [(text(row[0]), *row[1:]) for row in DAMAGE.rows(context, "sessions")]
    adopted = adopted_ids(context, (row[0] for row in sessions))
    for missing, tasks, waiting in sessions:
        if missing not in adopted:
            yield _finding("session", printable(missing), whole(tasks), whole(waiting))
    for missing, tasks, waiting in DAMAGE.rows(context, "workers"):
        yield _finding("worker", printable(text(missing)), whole(tasks), whole(waiting))


def _finding(what: str, missing: str, tasks: int, waiting: int) -> Finding:
    names = "names" if tasks == 1 else "name"
    return DAMAGE.finding(
        table="async_delegations",
        key=f"{what} {missing}",
        kind=f"missing-{what}",
        message=f"{counted(tasks, 'delegated task')} {names} the {what} {missing}, which has no row"
        + (f"; {counted(waiting, 'result')} not delivered" if waiting else ""),
        evidence={"missing": missing, "tasks": tasks, "not_delivered": waiting},
    )


DAMAGE = declare(
    __name__,
    __doc__,
    code="HDB210",
    severity=Severity.NOTE,
    safety=Safety.MANUAL,
    needs=("async_delegations.parent_session_id", "async_delegations.delivery_state"),
    reads=("async_delegations", "messages", "sessions", "state_meta", "worker_executions"),
    noun=("lost name", "lost names"),
    sums=(("tasks", "tasks"),),
    extent="session",
    find=_find,
)
