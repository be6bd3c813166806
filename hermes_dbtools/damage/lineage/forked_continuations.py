"""More than one session continues a session that compression closed

What it means
-------------
A compression goes on in one new session. Here two or more hang under the session it closed, so the conversation has
two ends. A resume follows one of them, by rules that differ from release to release, and what was said in the others
looks lost.

Why it happens
--------------
The session was reopened and compressed again; or two processes compressed it at the same time (public reports describe one
session rotated twice). A child whose marker was lost, or a branch without one, counts too: that is how releases
read it (in a report such a sibling became the end that a resume follows, and the real one was not shown).

Repair
------
None: nothing in the rows says which end is the right one. The runbook says how to look at each and how to
keep both.

Safety
------
Manual. Not reported: sessions that a marker ties to the closed one, tool runs; and, where old releases marked no
sub-agents, a child from before the end that shares no text with its parent, for each compression keeps some.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from ...model import Finding, Safety, Severity, Value
from .._declare import ScanContext, declare, moment, printable, text

SHOWN = 20
"""How many continuations a finding lists; it counts all."""


def _find(context: ScanContext) -> Iterator[Finding]:
    rows = list(DAMAGE.rows(context, "find"))
    for closed, group in groupby(rows, key=lambda row: row[0]):
        children = [row for row in group if not row[6] or _continues(context, closed, row[2])]
        if len(children) < 2:
            continue
        session_id = text(closed)
        yield DAMAGE.finding(
            table="sessions",
            key=session_id,
            message=f"{len(children)} sessions continue it where one should",
            evidence={
                "ended_at": moment(children[0][1]),
                "continuations": len(children),
                "open": sum(1 for row in children if row[4]),
                "sessions": [_described(row) for row in children[:SHOWN]],
            },
            session_ids=(session_id, *(text(row[2]) for row in children)),
        )


def _continues(context: ScanContext, closed: Value, child: Value) -> bool:
    bindings = {"parent": closed, "child": child}
    return any(row[0] for row in DAMAGE.rows(context, "shares", bindings))


def _described(row: tuple[Value, ...]) -> dict[str, object]:
    state = "open" if row[4] else "compressed" if row[5] else "ended"
    return {"id": printable(text(row[2])), "state": state, "started_at": moment(row[3])}


DAMAGE = declare(
    __name__,
    __doc__,
    code="HDB307",
    severity=Severity.NOTE,
    safety=Safety.MANUAL,
    reads=("messages", "sessions"),
    noun=("session", "sessions"),
    sums=(("continuations", "continuations"),),
    find=_find,
)
