"""A stored setting belongs to a session that is not there.

What it means
-------------
A key of `state_meta` carries or holds the id of a session that `sessions` does not have: a goal (`goal:`), the
settings or binding of an API session, a named API conversation, or a local policy. Nothing reads a goal or a
setting of a missing session; a named conversation or a policy still leads there.

Why it happens
--------------
No release up to 0.20 removes the goal with its session, so every delete of a session that had one leaves it: a
public report counted such keys. The other keys go with a delete of the releases that write them, and are left
by scripts and other user interfaces.

Repair
------
`drop` removes the key. Where messages of the id are left, orphaned-messages adopts the session and nothing is
reported here.

Safety
------
Dropping loses the goal or setting for good but for undo, so it is planned only with `--allow-lossy`. A goal that
was set within the last day is not reported: its session gets its row with the first message. Tombstones
(`gateway.retired_session`), `gateway.terminal_*` and conversation generations outlive their session by design. A
policy of a session that was provably deleted is branched-root-leftovers, a value that cannot be read
invalid-json. Names of conversations are a client's own words and are neither printed nor kept in a plan.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...model import Finding, Remedy, Safety, Severity, Statement, Value
from ...sizes import counted
from .._declare import ScanContext, declare, printable, text, whole
from ._missing import adopted_ids

CONVERSATION = "gateway.api.conversation.v1."
POLICY = "gateway.local_policy.v1:"
TABLE = "state_meta"

FRESH = 86400.0
"""Seconds for which a goal may wait for the first message of its session."""

_WORDS = {
    "goal:": "goal",
    "gateway.api.binding.v1.": "API binding",
    "gateway.api.settings.v1.": "API settings",
    POLICY: "local policy",
}
_KINDS = {
    "goal:": "goal",
    "gateway.api.binding.v1.": "api-binding",
    "gateway.api.settings.v1.": "api-settings",
    POLICY: "local-policy",
}


def _find(context: ScanContext) -> Iterator[Finding]:
    found = [*_goals(context), *_owned(context), *_policies(context), *_conversations(context)]
    adopted = adopted_ids(context, (session_id for session_id, _finding in found))
    yield from (finding for session_id, finding in found if session_id not in adopted)


def _goals(context: ScanContext) -> Iterator[tuple[Value, Finding]]:
    for value, status, created_at, tombstoned in DAMAGE.rows(context, "goals"):
        session_id = text(value)
        ended = tombstoned or status in ("done", "cleared")
        fresh = isinstance(created_at, int | float) and created_at > context.now - FRESH
        if ended or not fresh:
            yield session_id, _of_one("goal:", session_id, session_id, {"status": status or "unknown"})


def _owned(context: ScanContext) -> Iterator[tuple[Value, Finding]]:
    for prefix, value in DAMAGE.rows(context, "owned"):
        yield text(value), _of_one(str(prefix), text(value), text(value), {})


def _policies(context: ScanContext) -> Iterator[tuple[Value, Finding]]:
    for owner, target in DAMAGE.rows(context, "policies"):
        yield text(target), _of_one(POLICY, text(owner), text(target), {"leads_to": printable(text(target))})


def _of_one(prefix: str, owner: Value, session_id: Value, more: dict[str, object]) -> Finding:
    key = f"{prefix}{printable(owner)}"
    statement = Statement("drop", {"prefix": prefix, "owner": owner, "id": session_id}, 1, TABLE, "delete")
    return _finding(
        key, _KINDS[prefix], f"{_WORDS[prefix]} of {printable(owner)}", session_id, statement, more
    )


def _conversations(context: ScanContext) -> Iterator[tuple[Value, Finding]]:
    for value, count in DAMAGE.rows(context, "conversations"):
        session_id, rows = text(value), whole(count)
        key = f"{CONVERSATION}* -> {printable(session_id)}"
        statement = Statement("drop-conversations", {"id": session_id}, rows, TABLE, "delete")
        what = f"{counted(rows, 'named conversation')} that {'lead' if rows > 1 else 'leads'} to {printable(session_id)}"
        yield session_id, _finding(key, "api-conversation", what, session_id, statement, {"names": rows})


def _finding(
    key: str, kind: str, what: str, session_id: Value, statement: Statement, more: dict[str, object]
) -> Finding:
    step = DAMAGE.step(
        key=key,
        answer="drop",
        title=f"drop the {what}",
        statements=(statement,),
        session_ids=(session_id,),
    )
    return DAMAGE.finding(
        table=TABLE,
        key=key,
        kind=kind,
        message=f"{what}: the session has no row",
        evidence={"missing": printable(session_id), **more},
        session_ids=(session_id,),
        remedies=(Remedy("drop", Safety.LOSSY, step), Remedy("report", Safety.EXACT)),
    )


DAMAGE = declare(
    __name__,
    __doc__,
    code="HDB208",
    severity=Severity.NOTE,
    safety=Safety.LOSSY,
    answers=("drop", "report"),
    needs=("state_meta.key", "state_meta.value"),
    reads=("messages", "sessions", "state_meta"),
    noun=("lost setting", "lost settings"),
    extent="session",
    find=_find,
)
