"""What a deleted session leaves for requests sent again is incomplete, or still holds its user's words.

What it means
-------------
A store with a ledger keeps, for each request of a deleted session, a terminal admission and an identity that leads
to it, so that the request sent again is answered and not run a second time. One of five kinds. `user-text`: results,
inputs, workers or receipts of changes still hold what the user wrote and then deleted. `lost-identity`: an identity
is missing, so the request is refused instead of answered. `identity-without-admission`: the identity leads nowhere,
and the request fails. `unreadable`: a value cannot be read; one such admission makes every look-up of the Responses
API fail. `result-without-admission`: a result whose admission is gone. `repeated-request`: one request was admitted
more than once; sent again it is refused.

Why it happens
--------------
Earlier revisions of the delete kept more than later ones. Scripts that delete rows and keys by pattern, partial
restores and half-made deletes lose one key of a pair. A request was admitted again on another session when a look-up
asked only admissions of living sessions.

Repair
------
`report`, the default, leaves the keys. `compact` does what a delete of the store does: texts are emptied, answers
stay. A lost identity is computed from its admission and written. An identity that leads nowhere is removed, an
admission that cannot be read becomes one that fits no request: both are refused then, as a deleted session's are. A
result whose admission is gone is removed, for nothing leads to it.

Safety
------
Emptying and removing also need `--allow-lossy`; undo brings everything back. A repeated request, and the request of
a lost admission, cannot be mended: which run was meant, or what was asked, nothing says. Results and receipts that
cannot be read are invalid-json. Names of requests and of those who asked are a client's own words: they are neither
printed nor kept in a plan.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Literal

from ... import retirement
from ...model import Finding, Remedy, Safety, Severity, Statement, Value
from ...sizes import counted
from .._declare import ScanContext, declare, printable, text
from ._terminal import Admitted, HeldText, Terminal, repeated, terminal

REPORT = Remedy("report", Safety.EXACT)
NOT_TEXT = "its key is not UTF-8 text"
CANNOT = "which of the runs was meant, nothing says: see the runbook"
SHOWN = 20
"""Admissions of one repeated request that the evidence names; their count is exact."""


def _find(context: ScanContext) -> Iterator[Finding]:
    found = terminal(DAMAGE, context)
    for session_id in sorted(found.texts, key=_order):
        yield from _user_text(session_id, found.texts[session_id])
    yield from _identities(found)
    yield from _unreadable(context, found)
    yield from _lost_results(context)
    for admissions in repeated(DAMAGE, context):
        yield _repeated(admissions)


def _order(session_id: Value) -> bytes:
    return session_id if isinstance(session_id, bytes) else str(session_id).encode("utf-8", "surrogatepass")


def _user_text(session_id: Value, held: HeldText) -> Iterator[Finding]:
    parts = (
        ("shorten-results", held.results, "result"),
        ("empty-admissions", held.admissions, "input"),
        ("empty-workers", held.workers, "worker"),
        ("empty-changes", held.changes, "receipt of a change"),
    )
    statements = []
    for block, keys, _noun in parts:
        if keys:
            bindings: dict[str, Value] = {"keys": json.dumps(keys)}
            if block == "empty-workers":
                bindings["closing"] = retirement.closing_digest(str(session_id))
            statements.append(Statement(block, bindings, len(keys), "state_meta", "update"))
    if not statements:
        return
    words = [_several(len(keys), noun) for _block, keys, noun in parts if keys]
    yield _finding(
        key=f"text of {printable(session_id)}",
        kind="user-text",
        message=f"what was written in deleted session {printable(session_id)} is still kept: {', '.join(words)}",
        evidence={
            "session_id": printable(session_id),
            "results": len(held.results),
            "inputs": len(held.admissions),
            "workers": len(held.workers),
            "changes": len(held.changes),
        },
        session_ids=(session_id,),
        title=f"empty the texts kept of deleted session {printable(session_id)}",
        statements=tuple(statements),
    )


def _several(count: int, noun: str) -> str:
    first, of, rest = noun.partition(" of ")
    return counted(count, first) + of + rest


def _identities(found: Terminal) -> Iterator[Finding]:
    for admission, session_id, key, there in found.lost:
        block, operation = _IDENTITY[there]
        yield _finding(
            key=f"identity of {admission}",
            kind="lost-identity",
            message=f"no request leads to the terminal admission {admission} of {session_id}",
            evidence={"admission_id": admission, "session_id": session_id, "identity_there": there},
            session_ids=(session_id,),
            title=f"lead the request of admission {admission} to its answer again",
            statements=(
                Statement(block, {"key": key, "admission_id": admission}, 1, "state_meta", operation),
            ),
            safety=Safety.EXACT,
        )
    for digest, named in found.dangling:
        yield _dangling(retirement.TERMINAL_IDENTITY + digest, digest, named)


def _dangling(key: str, digest: str, admission: Value) -> Finding:
    readable = admission is not None
    return _finding(
        key=key,
        kind="identity-without-admission" if readable else "unreadable",
        message=f"an identity leads to admission {printable(admission)}, which is gone"
        if readable
        else "an identity cannot be read",
        evidence={"admission_id": printable(admission) if readable else None},
        title=f"remove the identity {digest[:12]}, which leads nowhere",
        statements=(Statement("drop-key", {"key": key}, 1, "state_meta", "delete"),),
    )


_IDENTITY: dict[bool, tuple[str, Literal["insert", "update"]]] = {
    False: ("add-identity", "insert"),
    True: ("set-identity", "update"),
}


def _unreadable(context: ScanContext, found: Terminal) -> Iterator[Finding]:
    for admission in found.unreadable:
        key = f"{retirement.TERMINAL_ADMISSION}{printable(admission)}"
        bindings: dict[str, Value] = {"key": key, "admission_id": admission}
        yield _finding(
            key=key,
            kind="unreadable",
            message="a terminal admission cannot be read: every look-up of the Responses API fails",
            evidence={"admission_id": printable(admission)},
            title=f"make the terminal admission {printable(admission)} one that fits no request",
            statements=(Statement("blank-admission", bindings, 1, "state_meta", "update"),),
            refused=None if isinstance(admission, str) else NOT_TEXT,
        )
    for (value,) in DAMAGE.rows(context, "workers"):
        execution = text(value)
        key = f"{retirement.TERMINAL_WORKER}{printable(execution)}"
        yield _finding(
            key=key,
            kind="unreadable",
            message="a terminal worker cannot be read",
            evidence={"execution_id": printable(execution)},
            title=f"remove the terminal worker {printable(execution)}, which cannot be read",
            statements=(Statement("drop-key", {"key": key}, 1, "state_meta", "delete"),),
            refused=None if isinstance(execution, str) else NOT_TEXT,
        )


def _lost_results(context: ScanContext) -> Iterator[Finding]:
    for value, holds_text in DAMAGE.rows(context, "results"):
        admission = text(value)
        key = f"{retirement.RESULT}{printable(admission)}"
        yield _finding(
            key=key,
            kind="result-without-admission",
            message=f"a result of admission {printable(admission)}, which is gone"
            + ("; it still holds what its user wrote" if holds_text else ""),
            evidence={"admission_id": printable(admission), "holds_text": bool(holds_text)},
            title=f"remove the result of the lost admission {printable(admission)}",
            statements=(Statement("drop-key", {"key": key}, 1, "state_meta", "delete"),),
            refused=None if isinstance(admission, str) else NOT_TEXT,
        )


def _repeated(admissions: list[Admitted]) -> Finding:
    ids = [printable(one.id) for one in admissions]
    sessions = sorted({printable(one.session_id) for one in admissions})
    return _finding(
        key=f"request of {ids[0]}",
        kind="repeated-request",
        message=f"one request was admitted {len(ids):,} times, on {counted(len(sessions), 'session')}",
        evidence={
            "admissions": len(ids),
            "deleted": sum(one.deleted for one in admissions),
            "admission_ids": ids[:SHOWN],
            "session_ids": sessions[:SHOWN],
        },
        session_ids=tuple(one.session_id for one in admissions if not one.deleted),
        title="",
        statements=(),
        refused=CANNOT,
    )


def _finding(
    *,
    key: str,
    kind: str,
    message: str,
    evidence: dict[str, object],
    title: str,
    statements: tuple[Statement, ...],
    session_ids: tuple[Value, ...] = (),
    refused: str | None = None,
    safety: Safety = Safety.LOSSY,
) -> Finding:
    step = DAMAGE.step(key=key, answer="compact", title=title, statements=statements, session_ids=session_ids)
    return DAMAGE.finding(
        table="state_meta",
        key=key,
        kind=kind,
        message=message,
        evidence=evidence,
        session_ids=session_ids,
        remedies=(REPORT, Remedy("compact", safety, None if refused else step, refused)),
    )


DAMAGE = declare(
    __name__,
    __doc__,
    code="HDB904",
    severity=Severity.ERROR,
    safety=Safety.CHOICE,
    answers=("report", "compact"),
    needs=("session_admissions.admission_id", "state_meta.key"),
    reads=("messages", "session_admissions", "sessions", "state_meta"),
    noun=("leftover", "leftovers"),
    extent="apart",
    find=_find,
)
