"""Acknowledged rows lie beside the file where no other process finds them

What it means
-------------
Rows that Hermes was told are saved are not in what another process reads. Either a process writes to a `-wal`
or `-shm` that was deleted under it and lives only as long as that process, or a crash left a rollback journal
that has not been played back yet, or the `-wal` beside the file was written for another one and is played over it at the
next start. Whoever joins such a file in the usual way can lose these rows for good.

Why it happens
--------------
Somebody deleted the sidecars, or opened and closed the live file with a program that removes them; a folder
was restored while a process ran; a process in rollback journal mode died in the middle of a transaction; a backup was
copied over `state.db` and the old `-wal` was left beside it.

Repair
------
By hand: let the process that holds the deleted sidecar finish and copy its rows out first, as the runbook
says. Never delete a `-wal`, `-shm` or `-journal` by hand: that is what loses the rows.

Safety
------
Manual. Only what lies on disk and what other processes hold is looked at, before SQLite opens the file; the
rows are not judged and nothing is planned. A large `-wal` that is still there under its name is no damage. A `-wal` is only
called another file's where its own pages prove it; one of an older state of the same file can pass unseen.
"""

from __future__ import annotations

from collections.abc import Iterable

from ...model import Finding, Safety, Severity
from .._declare import ScanContext, declare

ORIGINS = {
    "page-size": "another page size",
    "application-id": "another application id",
    "schema": "an older schema than that of the file",
}


def _find(context: ScanContext) -> Iterable[Finding]:
    state = context.file
    if state.deleted_sidecar:
        guilty = [holder for holder in state.holders.processes if holder.deleted_sidecar]
        named = ", ".join(f"{holder.name} (pid {holder.pid})" for holder in guilty) or "a process"
        yield DAMAGE.finding(
            table="",
            key=state.path.name,
            kind="deleted-sidecar",
            message=f"{named} writes to a deleted -wal or -shm: its rows are gone when it ends; "
            "stop no process and delete no file before reading the runbook",
            evidence={
                "pids": [holder.pid for holder in guilty],
                "wal_bytes": state.wal_size,
                "uninspected_processes": state.holders.uninspected,
            },
        )
    if state.foreign_wal:
        yield DAMAGE.finding(
            table="",
            key=f"{state.path.name}-wal",
            kind="foreign-wal",
            message=f"the -wal was written for another database ({ORIGINS[state.foreign_wal]}): whoever opens both "
            "plays its pages over these; start nothing before reading the runbook",
            evidence={"proved_by": state.foreign_wal, "wal_bytes": state.wal_size},
        )
    if state.hot_journal:
        yield DAMAGE.finding(
            table="",
            key=f"{state.path.name}-journal",
            kind="hot-journal",
            message="a transaction was cut off and its journal not played back: the file is half-written "
            "until Hermes opens it again; keep the -journal file",
            evidence={"holders": [holder.pid for holder in state.holders.processes]},
        )


DAMAGE = declare(
    __name__,
    __doc__,
    code="HDB003",
    severity=Severity.ERROR,
    safety=Safety.MANUAL,
    stage="file",
    noun=("fault", "faults"),
    find=_find,
)
