"""Something stayed behind after a session was branched, or after a branched root was deleted

What it means
-------------
One of four kinds. `rootless-branch`: a branch whose parent row is gone, so each later save of it fails with
FOREIGN KEY constraint failed. `branchless-root`: a session that ended because it was branched, and no branch
of it exists; it stays closed, and where it is still written to, it is in use though lists call it ended.
`stale-branch-marker`: the marker of a branch or a reset names a session that is gone; it is harmless.
`branch-ledger`: routes or a local policy still name a root or branch that was deleted.

Why it happens
--------------
A root or a branch was deleted: releases set the parent of the children to NULL but leave their markers and
the end of the root, so plain deletes make the second and third kind (never more than a note, unless the root
is in use). The first and the fourth need a writer that leaves foreign keys off, a partial restore, or a
delete that was interrupted.

Repair
------
Rootless branches are detached by default: the parent becomes NULL and the marker stays, so lists keep showing
them. The other kinds are only reported unless an answer is chosen: `reopen` clears the end of a root that has
no branch, `strip` takes a stale marker out of a session that has no parent, `clear` removes routes and the
local policy as a delete of a newer release does.

Safety
------
Choice. Not reported: a root that has any child but sub-agents, or that any marker names; a marker that names
the row's own parent, or that a continuation inherited; tombstones and terminal ledger keys, which outlive
their session by design; a missing root that orphaned-messages gives its row back. A marker is stripped only
without a parent, because with one the row would disappear from lists. A root of a chat is not reopened where
no route names it: that would revive a chat whose end was deleted. Deleted means: a tombstone of the id, or
the marker of a branch that still exists. A route without a tombstone is a note, for releases up to 0.19 leave
it on every delete. Keys of retired media name a file and no session: whether a branch still shows that file
is for the store's own clean-up to say. Admissions and workers of a deleted session are orphaned-ledger-rows;
routes and policies of a session that nothing proves deleted are dangling-routing and dangling-session-keys.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ...model import Finding, Remedy, Safety, Severity, Statement, Step, Value
from ...sizes import counted
from .._declare import ScanContext, declare, finite, printable, text, whole

REPORT = Remedy("report", Safety.CHOICE)


def _find(context: ScanContext) -> Iterable[Finding]:
    yield from _rootless(context)
    yield from _branchless(context)
    yield from _stale_markers(context)
    yield from _ledger(context)


def _rootless(context: ScanContext) -> Iterator[Finding]:
    for session, root, started_at in DAMAGE.rows(context, "find-rootless"):
        session_id, missing = text(session), text(root)
        statement = Statement(
            "detach", {"session_id": session_id, "missing": missing}, 1, "sessions", "update"
        )
        title = f"detach branch {printable(session_id)} from its missing root; the marker stays"
        step = _step(session_id, "detach", title, statement, (session_id,))
        yield DAMAGE.finding(
            table="sessions",
            key=session_id,
            kind="rootless-branch",
            message=f"branch of {printable(missing)}, whose row is gone: each later save of it fails",
            evidence={"parent_session_id": printable(missing), "started_at": finite(started_at)},
            session_ids=(session_id,),
            remedies=(Remedy("detach", Safety.CHOICE, step), REPORT),
        )


def _branchless(context: ScanContext) -> Iterator[Finding]:
    for session, ended, newest, late, of_chat, routed, in_use in DAMAGE.rows(context, "find-branchless"):
        session_id = text(session)
        used = bool(late) or bool(in_use)
        key = f"branchless-root:{printable(session_id)}"
        why = "it is in use" if used else "nothing uses it"
        yield DAMAGE.finding(
            table="sessions",
            key=key,
            kind="branchless-root",
            severity=Severity.WARNING if used else Severity.NOTE,
            message=f"{printable(session_id)} ended as branched and has no branch; {why}",
            evidence={
                "ended_at": finite(ended),
                "newest_message_at": finite(newest),
                "messages_after_end": whole(late),
                "routed": bool(in_use),
            },
            session_ids=(session_id,),
            remedies=(REPORT, _reopen(session_id, key, chat_without_route=bool(of_chat) and not routed)),
        )


def _reopen(session_id: Value, key: str, *, chat_without_route: bool) -> Remedy:
    if chat_without_route:
        reason = "no route names this chat: reopening could revive one whose end was deleted"
        return Remedy("reopen", Safety.CHOICE, refused=reason)
    statement = Statement("reopen", {"session_id": session_id}, 1, "sessions", "update")
    title = f"reopen {printable(session_id)}, which has no branch"
    return Remedy("reopen", Safety.CHOICE, _step(key, "reopen", title, statement, (session_id,)))


def _stale_markers(context: ScanContext) -> Iterator[Finding]:
    for session, name, named, has_parent in DAMAGE.rows(context, "find-markers"):
        session_id, marker, missing = text(session), str(name), text(named)
        key = f"{marker}:{printable(session_id)}"
        if has_parent:
            reason = "it has a parent: without the marker it would disappear from lists"
            strip = Remedy("strip", Safety.CHOICE, refused=reason)
        else:
            bindings = {"session_id": session_id, "marker": marker, "missing": missing}
            statement = Statement("strip", bindings, 1, "sessions", "update")
            title = f"take the stale marker {marker} out of {printable(session_id)}"
            strip = Remedy("strip", Safety.CHOICE, _step(key, "strip", title, statement, (session_id,)))
        yield DAMAGE.finding(
            table="sessions",
            key=key,
            kind="stale-branch-marker",
            severity=Severity.NOTE,
            message=f"{marker} of {printable(session_id)} names {printable(missing)}, which is gone",
            evidence={"marker": marker, "missing": printable(missing), "has_parent": bool(has_parent)},
            session_ids=(session_id,),
            remedies=(REPORT, strip),
        )


def _ledger(context: ScanContext) -> Iterator[Finding]:
    for place, session, rows, tombstoned in DAMAGE.rows(context, "find-ledger"):
        table, session_id, count = str(place), text(session), whole(rows)
        key = f"{table}:{printable(session_id)}"
        note = table == "gateway_routing" and not tombstoned
        yield DAMAGE.finding(
            table=table,
            key=key,
            kind="branch-ledger",
            severity=Severity.NOTE if note else Severity.WARNING,
            message=f"{_rows(count, table)} naming {printable(session_id)}, which was deleted",
            evidence={"missing": printable(session_id), "rows": count, "tombstoned": bool(tombstoned)},
            session_ids=(session_id,),
            remedies=(REPORT, _clear(table, session_id, key, count)),
        )


def _clear(table: str, session_id: Value, key: str, count: int) -> Remedy:
    block = "clear-routes" if table == "gateway_routing" else "clear-policy"
    statement = Statement(block, {"session_id": session_id}, count, table, "delete")
    title = f"clear {_rows(count, table)} naming the deleted {printable(session_id)}"
    return Remedy("clear", Safety.CHOICE, _step(key, "clear", title, statement, (session_id,)))


def _rows(count: int, table: str) -> str:
    return f"{counted(count, 'row')} of {table}"


def _step(key: Value, answer: str, title: str, statement: Statement, session_ids: tuple[Value, ...]) -> Step:
    return DAMAGE.step(key=key, answer=answer, title=title, statements=(statement,), session_ids=session_ids)


DAMAGE = declare(
    __name__,
    __doc__,
    code="HDB301",
    severity=Severity.ERROR,
    safety=Safety.CHOICE,
    answers=("report", "detach", "reopen", "strip", "clear"),
    reads=("gateway_routing", "messages", "sessions", "state_meta"),
    cedes_to=("HDB202",),
    noun=("leftover", "leftovers"),
    extent="session",
    find=_find,
)
