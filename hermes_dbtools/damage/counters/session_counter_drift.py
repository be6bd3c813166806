"""A session counts other messages or tool calls than it has

What it means
-------------
`message_count` or `tool_call_count` is not the number of the session's active messages or of the calls in
them. Lists that filter by the count hide the session. A count of 0 on a session with rows is an error:
upstream's sweep of empty sessions asks the count alone, and deletes the rows once the session has ended.

Why it happens
--------------
Usage accounted to a session whose row is gone: the row comes back with a count of 0 above its messages. Or
rows written, removed or restored by something that does not keep the counters: another program, a partial
restore, a merge of two files, a crash of an older release between two writes.

Repair
------
Each counter that is wrong becomes the number of active rows (or of their calls); of all rows where none is
active, because 0 would invite the sweep of empty sessions. Only the columns that are wrong are written.

Safety
------
Exact. Not reported, because healthy stores make them: a session that was rewound and counts anything from its
active rows to all its rows (a rewind leaves the counter); a session with rows both active and compacted (a
restore after a compaction leaves the counter); a rewound and compacted session that counts less than it has
(a restore of the rewound rows leaves the counter); call lists that older releases count as one call and newer
ones as none. Where a list of calls cannot be read, the session's tool calls are not judged.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ...model import Finding, Remedy, Safety, Severity, Statement, Value
from ...sweep import CallCounts
from .._declare import ScanContext, declare, printable, text, whole

NO_CALLS = CallCounts()
_BLOCKS = {
    ("message_count",): "repair-messages",
    ("tool_call_count",): "repair-calls",
    ("message_count", "tool_call_count"): "repair-both",
}
"""The statement that writes the columns that are wrong and no other."""


@dataclass(frozen=True, slots=True)
class _Rows:
    """What one session holds; `unlisted` is the number of call lists that are no list."""

    rewinds: int
    active: int
    total: int
    restored: bool = False
    compacted: bool = False
    unflagged_aside: int = 0
    unlisted: int = 0


def _find(context: ScanContext) -> Iterable[Finding]:
    calls = context.sweep.run(context).calls
    for row in DAMAGE.rows(context, "find"):
        session, count_type, count, tools_type, tools, rewinds, active, unflagged, total = row
        made = calls.get(session, NO_CALLS)
        held = _Rows(whole(rewinds), whole(active) + whole(unflagged), whole(total))
        if _plain(count, tools, held, made) and not unflagged:
            continue
        held = _look_closer(context, text(session), held)
        right = {
            "message_count": _messages(count, held),
            "tool_call_count": _tools(tools, held, made),
        }
        wrong = {column: number for column, number in right.items() if number is not None}
        if wrong:
            stored: dict[str, object] = {
                "message_count": count if count is not None else count_type,
                "tool_call_count": tools if tools is not None else tools_type,
            }
            yield _finding(text(session), wrong, stored, held, made)


def _plain(count: Value, tools: Value, held: _Rows, made: CallCounts) -> bool:
    return count == held.active and tools == made.active and not made.unreadable


def _look_closer(context: ScanContext, session_id: Value, held: _Rows) -> _Rows:
    for restored, compacted, aside, unlisted in DAMAGE.rows(context, "suspect", {"session_id": session_id}):
        return _Rows(
            held.rewinds,
            held.active - whole(aside),
            held.total,
            bool(restored),
            bool(compacted),
            whole(aside),
            whole(unlisted),
        )
    return held


def _messages(stored: Value, held: _Rows) -> int | None:
    """The right number of messages where the stored one is wrong, else None."""
    right = held.active or held.total
    if not isinstance(stored, int) or stored < 0:
        return right
    return None if _accepted(stored, held, held.active, held.total, right) else right


def _tools(stored: Value, held: _Rows, made: CallCounts) -> int | None:
    """The right number of tool calls where the stored one is wrong and can be judged, else None."""
    if made.unreadable or held.unflagged_aside:
        return None
    right = made.active if held.active else made.total
    if not isinstance(stored, int) or stored < 0:
        return right
    least = max(0, made.active - held.unlisted)
    if least <= stored <= made.active or _accepted(stored, held, least, made.total, right):
        return None
    return right


def _accepted(stored: int, held: _Rows, active: int, total: int, right: int) -> bool:
    """Whether a healthy store can leave this number; `active` and `total` are of rows or of calls."""
    if stored in (active, right) or held.restored:
        return True
    if held.rewinds <= 0:
        return False
    # A restore after a replacement can leave less, too: no release calls it, and active rows are right then.
    return active <= stored <= total or (held.compacted and 0 < stored < active)


def _invites_the_sweep(wrong: dict[str, int], stored: dict[str, object]) -> bool:
    """Whether upstream's sweep of empty sessions would delete the session with its rows (it asks for a 0)."""
    return "message_count" in wrong and stored["message_count"] == 0


def _finding(
    session_id: Value, wrong: dict[str, int], stored: dict[str, object], held: _Rows, made: CallCounts
) -> Finding:
    block = _BLOCKS[tuple(wrong)]
    # Its calls may be judged once their own damage is mended: what is found then is another finding than this one.
    judged = not made.unreadable and not held.unflagged_aside
    key = printable(session_id) if judged else f"{printable(session_id)} messages"
    statement = Statement(block, {"session_id": session_id, **wrong}, 1, "sessions", "update")
    changes = ", ".join(f"{column} {stored[column]} becomes {number}" for column, number in wrong.items())
    step = DAMAGE.step(
        key=key,
        answer="repair",
        title=f"recount {printable(session_id)}: {changes}",
        statements=(statement,),
        session_ids=(session_id,),
    )
    evidence: dict[str, object] = {
        **stored,
        "active_messages": held.active,
        "messages": held.total,
        "rewind_count": held.rewinds,
    }
    if not made.unreadable:
        evidence |= {"active_tool_calls": made.active, "tool_calls": made.total}
    return DAMAGE.finding(
        table="sessions",
        key=key,
        severity=Severity.ERROR if _invites_the_sweep(wrong, stored) else Severity.WARNING,
        message=f"it holds {held.active} active of {held.total} messages: {changes}",
        evidence=evidence,
        session_ids=(session_id,),
        remedies=(Remedy("repair", Safety.EXACT, step),),
    )


DAMAGE = declare(
    __name__,
    __doc__,
    code="HDB501",
    severity=Severity.WARNING,
    safety=Safety.EXACT,
    answers=("repair",),
    reads=("sessions", "messages"),
    noun=("session", "sessions"),
    find=_find,
)
