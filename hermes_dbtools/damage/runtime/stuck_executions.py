"""A session is blocked by work that nobody finishes.

What it means
-------------
An admission or worker of the session is `unknown`, or it began under an earlier start of the runtime. Nobody can
say whether it still runs, so the store neither runs the next input of the session nor deletes it, and prune passes
it by for ever.

Why it happens
--------------
The gateway was killed in the middle of a turn. Its next start marks what was running then as `unknown` and never
takes that back by itself: a turn that acted on the world must not run twice. Rows that still say `started` or
`running` under an earlier start were not marked: the file was restored, or the gateway has not started since.

Repair
------
By hand: only a person can know whether the work was done. The runbook shows what to look at and how the store's own
command settles it.

Safety
------
Nothing is planned, and this tool takes such a session for live: no repair touches it. Not reported: queued inputs,
which wait across starts by design; work of the present start; rows whose session is gone (orphaned-ledger-rows).
"""

from __future__ import annotations

from collections.abc import Iterator

from ...model import Finding, Safety, Severity
from ...sizes import counted
from .._declare import ScanContext, declare, printable, text, whole


def _find(context: ScanContext) -> Iterator[Finding]:
    for value, *counts, oldest, present in DAMAGE.rows(context, "find"):
        session_id = text(value)
        unknown_admissions, unknown_workers, old_admissions, old_workers = map(whole, counts)
        unknown, old = unknown_admissions + unknown_workers, old_admissions + old_workers
        parts = [
            f"{counted(count, 'row')} {what}"
            for count, what in ((unknown, "of unknown state"), (old, "of an earlier start of the runtime"))
            if count
        ]
        yield DAMAGE.finding(
            table="session_admissions" if unknown_admissions + old_admissions else "worker_executions",
            key=session_id,
            kind="unknown" if unknown else "earlier-start",
            message=f"{printable(session_id)} is blocked by {' and '.join(parts)}",
            evidence={
                "unknown_admissions": unknown_admissions,
                "unknown_workers": unknown_workers,
                "earlier_admissions": old_admissions,
                "earlier_workers": old_workers,
                "oldest_epoch": oldest,
                "present_epoch": present,
            },
            session_ids=(session_id,),
        )


DAMAGE = declare(
    __name__,
    __doc__,
    code="HDB902",
    severity=Severity.WARNING,
    safety=Safety.MANUAL,
    needs=(
        "session_admissions.status",
        "session_admissions.owner_epoch",
        "worker_executions.status",
        "worker_executions.owner_epoch",
        "runtime_epoch.epoch",
    ),
    reads=("runtime_epoch", "session_admissions", "sessions", "worker_executions"),
    noun=("blocked session", "blocked sessions"),
    find=_find,
)
