"""Rows of the runtime ledger belong to a session or a worker that is not there.

What it means
-------------
Admissions and workers are what the runtime accepted and ran for a session; `sessions` has no row of it. Each
later write of such a row fails with `FOREIGN KEY constraint failed`, a request sent again fails instead of being
answered, and the files of its inputs are held for ever. Receipts without their worker can be asked for by nobody.

Why it happens
--------------
These keys forbid such a delete, so it was made through a connection that does not enforce them: the `sqlite3`
shell, a script, an older release or another user interface; or the session row was lost in a recovery.

Repair
------
`report`, the default, leaves the rows. `retire` does what a delete of the store does: admissions and workers go
on under terminal keys without what the user wrote, stored results keep their answer alone, requests sent again
are answered from there, the files may be removed, and a tombstone keeps the id from being used again. Lost
receipts are removed.

Safety
------
Retiring drops inputs and receipts, so it also needs `--allow-lossy`; undo brings them back. It is refused while a
row is not finished, where a transcript file says that the session can be rebuilt, and where the ledger has
columns or values that a terminal key would lose. Where messages of the session are left, orphaned-messages
adopts it, its rows are valid again, and nothing is reported here. Routes, settings and receipts of changes that
name the session are findings of their own.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Literal

from ... import retirement
from ...model import Finding, Remedy, Safety, Severity, Statement, Value
from ...sizes import counted
from .._declare import ScanContext, declare, printable, text, whole
from ..references._adoption import identity
from ..references._missing import adopted_ids
from ..references._provenance import has_transcript
from ._ledger import LostSession, Retirement, lost_sessions, retirements, unknown_columns

REPORT = Remedy("report", Safety.EXACT)

NEEDS = (
    "session_admissions.target_session_id",
    "worker_executions.session_id",
    "worker_receipts.execution_id",
    "state_meta.key",
)


def _find(context: ScanContext) -> Iterator[Finding]:
    lost = lost_sessions(DAMAGE, context)
    if lost:
        adopted = adopted_ids(context, (one.id for one in lost))
        known = retirements(DAMAGE, context)
        for one in lost:
            if one.id not in adopted:
                yield _of_session(context, one, known.get(one.id, Retirement()))
    yield from _lost_receipts(context)


def _of_session(context: ScanContext, lost: LostSession, found: Retirement) -> Finding:
    folder = context.home.sessions_dir if context.home else None
    transcript = has_transcript(folder, lost.id)
    parts = ((lost.admissions, "admission"), (lost.workers, "worker"))
    rows = " and ".join(counted(count, noun) for count, noun in parts if count)
    evidence: dict[str, object] = {
        "admissions": lost.admissions,
        "workers": lost.workers,
        "receipts": lost.receipts,
        "unfinished": lost.unfinished,
        "unknown": lost.unknown,
        "tombstoned": lost.tombstoned,
        "transcript": transcript,
    }
    return DAMAGE.finding(
        table="session_admissions" if lost.admissions else "worker_executions",
        key=lost.id,
        kind="session",
        message=f"{rows} of a session that has no row",
        evidence=evidence,
        session_ids=(lost.id,),
        remedies=(REPORT, _retire(context, lost, found, rebuildable=bool(transcript))),
    )


def _retire(context: ScanContext, lost: LostSession, found: Retirement, *, rebuildable: bool) -> Remedy:
    refused = ""
    if not isinstance(lost.id, str):
        refused = "its session id is not UTF-8 text"
    elif lost.unfinished:
        state = "nobody knows whether it still runs" if lost.unknown else "it is not finished"
        refused = f"{counted(lost.unfinished, 'row')} of it cannot be retired: {state}"
    elif rebuildable and not lost.tombstoned:
        refused = "a transcript file of the session is left: rebuild it first, a tombstone would forbid that"
    refused = refused or unknown_columns(context) or next(iter(found.obstacles), "")
    if refused:
        return Remedy("retire", Safety.LOSSY, refused=refused)
    step = DAMAGE.step(
        key=lost.id,
        answer="retire",
        title=f"retire the ledger of missing session {printable(lost.id)}",
        statements=tuple(_statements(str(lost.id), lost, found)),
        session_ids=(lost.id,),
    )
    return Remedy("retire", Safety.LOSSY, step)


def _statements(session_id: str, lost: LostSession, found: Retirement) -> Iterator[Statement]:
    files = [(key, *place) for key, place in sorted(found.files.items())]
    more = {
        "retire-media": {"files": json.dumps(files)},
        "retire-identities": {"identities": json.dumps(found.identities)},
        "retire-workers": {"closing": retirement.closing_digest(session_id)},
    }
    written: tuple[tuple[str, Literal["insert", "update"], int], ...] = (
        ("shorten-results", "update", found.results),
        ("retire-media", "insert", len(files)),
        ("retire-admissions", "insert", lost.admissions),
        ("retire-identities", "insert", lost.admissions),
        ("retire-workers", "insert", lost.workers),
        ("bury", "insert", int(not lost.tombstoned)),
    )
    for block, operation, count in written:
        if count:
            bindings = {"id": session_id, **more.get(block, {})}
            yield Statement(block, bindings, count, "state_meta", operation)
    for block, table, count in (
        ("drop-receipts", "worker_receipts", lost.receipts),
        ("drop-workers", "worker_executions", lost.workers),
        ("drop-admissions", "session_admissions", lost.admissions),
    ):
        if count:
            yield Statement(block, {"id": session_id}, count, table, "delete")


def _lost_receipts(context: ScanContext) -> Iterator[Finding]:
    for value, storage, count, owner in DAMAGE.rows(context, "receipts"):
        execution_id, rows = identity(value, storage), whole(count)
        session_ids: tuple[Value, ...] = () if owner is None else (text(owner),)
        key = f"execution {printable(execution_id)}"
        step = DAMAGE.step(
            key=key,
            answer="retire",
            title=f"remove {counted(rows, 'receipt')} of missing execution {printable(execution_id)}",
            statements=(
                Statement("drop-lost-receipts", {"execution_id": execution_id}, rows, "worker_receipts", "delete"),
            ),
            session_ids=session_ids,
        )  # fmt: skip
        yield DAMAGE.finding(
            table="worker_receipts",
            key=key,
            kind="receipts",
            message=f"{counted(rows, 'receipt')} of an execution that has no row",
            evidence={
                "execution_id": printable(execution_id),
                "receipts": rows,
                "retired": owner is not None,
            },
            session_ids=session_ids,
            remedies=(REPORT, Remedy("retire", Safety.LOSSY, step)),
        )


DAMAGE = declare(
    __name__,
    __doc__,
    code="HDB901",
    severity=Severity.ERROR,
    safety=Safety.CHOICE,
    answers=("report", "retire"),
    needs=NEEDS,
    reads=(
        "messages",
        "session_admissions",
        "sessions",
        "state_meta",
        "worker_executions",
        "worker_receipts",
    ),
    noun=("lost owner", "lost owners"),
    sums=(("admissions", "admissions"), ("workers", "workers"), ("receipts", "receipts")),
    extent="session",
    find=_find,
)
