"""Messages belong to a session that has no row.

What it means
-------------
Rows of `messages` carry a `session_id` that `sessions` does not have. No list, search or resume reaches them,
and an agent that still works under that id fails each time it saves, with `FOREIGN KEY constraint failed`.

Why it happens
--------------
Somebody removed the session row alone through a connection that does not enforce foreign keys: the `sqlite3`
shell, a script, a user interface with its own deletes, older delete paths. Or the session row was lost when a
damaged file was recovered. In public reports up to 94 % of all messages were such rows.

Repair
------
`adopt`, the default, makes the session row again: source `recovered`, or the platform that a routing entry or
transcript proves; counts and times from the rows. If exactly one unmarked child starts after the last
message, compression had closed the session, and it is closed so again; other unmarked children are detached,
for no list would show them. `purge` removes the messages, with usage rows and topic bindings of the same id.

Safety
------
Adopting adds a row and removes nothing. An id with a tombstone was deleted by its user and is not adopted,
nor is an id that is not UTF-8 text: one such session row makes every list of upstream fail. Purging loses the
messages for good but for undo; it is refused while `sessions` is empty, and more than half of all messages
needs `--max-rows`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ...model import Finding, Remedy, Safety, Severity, Statement, Value
from ...sizes import counted
from .._declare import ScanContext, declare, printable, whole
from ._orphans import DEPENDENTS, Orphan, orphans
from ._profiles import profiles_of
from ._provenance import RECOVERED, Provenance, has_transcript, provenance

NO_SESSIONS = "sessions is empty: its rows were lost, so these messages are all that is left of them"


def _find(context: ScanContext) -> Iterator[Finding]:
    found = orphans(DAMAGE, context)
    if not found:
        return
    ((total, any_session),) = DAMAGE.rows(context, "totals")
    folder = context.home.sessions_dir if context.home else None
    text_ids = [orphan.id for orphan in found if isinstance(orphan.id, str)]
    origins = provenance(DAMAGE.rows(context, "routed"), folder, text_ids)
    # A second look happens under the write lock, where no other file may make it wait.
    elsewhere = profiles_of(context.home, DAMAGE.sql, text_ids) if context.trust_indexes else {}
    for orphan in found:
        evidence = _evidence(orphan, whole(total)) | {
            "transcript": has_transcript(folder, orphan.id),
            "other_profiles": [*elsewhere.get(orphan.id, ()), *elsewhere.get(None, ())],
        }
        if not orphan.refusal:
            evidence["source"] = _source(orphan, origins)
        yield DAMAGE.finding(
            table="messages",
            key=orphan.id,
            kind=_kind(orphan),
            message=f"{counted(orphan.rows, 'message')} of a session that has no row",
            evidence=evidence,
            session_ids=(orphan.id, *(child.id for child in orphan.children)),
            remedies=(_adopt(orphan, context, origins), _purge(orphan, bool(any_session))),
        )


def _kind(orphan: Orphan) -> str:
    if not isinstance(orphan.id, str):
        return "unreadable-id"
    return "tombstoned" if orphan.tombstoned else ""


def _source(orphan: Orphan, origins: Provenance) -> str:
    return origins.source(orphan.id) if isinstance(orphan.id, str) else RECOVERED


def _evidence(orphan: Orphan, total: int) -> dict[str, object]:
    return {
        "rows": orphan.rows,
        "active_rows": orphan.active_rows,
        "bytes": orphan.bytes,
        "first_at": orphan.first_at,
        "last_at": orphan.last_at,
        "share_of_messages": round(orphan.rows / total, 4) if total else 1.0,
        "tombstoned": orphan.tombstoned,
        "children": len(orphan.children),
        "children_after_purge": "left to missing-parent-session" if orphan.children else "none",
        "closed_by_compression": orphan.continuation is not None,
        **orphan.dependents,
    }


def _adopt(orphan: Orphan, context: ScanContext, origins: Provenance) -> Remedy:
    if orphan.refusal:
        return Remedy("adopt", Safety.EXACT, refused=orphan.refusal)
    live_rows = orphan.active_rows > 0
    continuation = orphan.continuation
    source = _source(orphan, origins)
    row: Mapping[str, Value] = {
        "id": orphan.id,
        "source": source,
        "started_at": orphan.first_at,
        "ended_at": continuation.started_at if continuation else None,
        "end_reason": "compression" if continuation else None,
        "message_count": orphan.active_rows if live_rows else orphan.rows,
        "tool_call_count": orphan.active_calls if live_rows else orphan.calls,
        "profile_name": context.home.profile if context.home else None,
        "last_activity_at": orphan.last_at,
    }
    detached = tuple(
        Statement("detach-child", {"id": orphan.id, "child": child.id}, 1, "sessions", "update")
        for child in orphan.strays
    )
    title = f"adopt session {printable(orphan.id)} (source '{source}'): {counted(orphan.rows, 'message')}"
    if detached:
        title += f", detach {counted(len(detached), 'child session')}"
    step = DAMAGE.step(
        key=orphan.id,
        answer="adopt",
        title=title,
        statements=(Statement("adopt", row, 1, "sessions", "insert"), *detached),
        session_ids=(orphan.id, *(child.id for child in orphan.children)),
    )
    return Remedy("adopt", Safety.EXACT, step)


def _purge(orphan: Orphan, any_session: bool) -> Remedy:
    if not any_session:
        return Remedy("purge", Safety.LOSSY, refused=NO_SESSIONS)
    bindings: Mapping[str, Value] = {"id": orphan.id, "first": orphan.first_id, "last": orphan.last_id}
    statements = [Statement("purge", bindings, orphan.rows, "messages", "delete", split="purge-rows")]
    # What names an id that is never adopted is a finding of its own class.
    for block, table in () if orphan.refusal else DEPENDENTS:
        if count := orphan.dependents.get(block):
            statements.append(Statement(f"purge-{block}", {"id": orphan.id}, count, table, "delete"))
    step = DAMAGE.step(
        key=orphan.id,
        answer="purge",
        title=f"purge {counted(orphan.rows, 'message')} of missing session {printable(orphan.id)}",
        statements=tuple(statements),
        session_ids=(orphan.id,),
        bytes_freed=orphan.bytes,
    )
    return Remedy("purge", Safety.LOSSY, step)


DAMAGE = declare(
    __name__,
    __doc__,
    code="HDB201",
    severity=Severity.ERROR,
    safety=Safety.CHOICE,
    answers=("adopt", "purge"),
    reads=("messages", "sessions", "state_meta"),
    noun=("missing session", "missing sessions"),
    sums=(("rows", "messages"), ("bytes", "bytes")),
    extent="session",
    find=_find,
)
