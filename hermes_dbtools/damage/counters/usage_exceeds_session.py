"""The calls of a session sum up to more than the session says it used

What it means
-------------
The store keeps what a session used twice: summed in the session, and apart by model and route. The parts of the main
loop add up to more than the sum: one of the two is wrong, and reports that use one differ from those that use the other.

Why it happens
--------------
The session was written back from an older copy, or its row was made anew, while the parts stayed; or the parts were
counted twice by a merge. The public report behind it is the reverse: sums of sessions that stayed 0 after an upgrade.

Repair
------
By hand: neither number can be proved. The runbook shows both.

Safety
------
Nothing is planned. Not reported: parts of auxiliary tasks (titles, compression, vision), which only the parts hold; a
session of which one counter is 0, because a writer of whole sums fills what it knows; and parts below the sum, which
is normal where the session is older than its parts.
"""

from __future__ import annotations

from collections.abc import Iterable

from ...model import Finding, Safety, Severity
from .._declare import ScanContext, declare, printable, text, whole

COLUMNS = (
    "api_call_count",
    "input_tokens",
    "output_tokens",
    "cache_read_tokens",
    "cache_write_tokens",
    "reasoning_tokens",
)


def _find(context: ScanContext) -> Iterable[Finding]:
    for session, *numbers in DAMAGE.rows(context, "find"):
        session_id = text(session)
        totals, parts = numbers[: len(COLUMNS)], numbers[len(COLUMNS) :]
        exceeding = {
            column: (whole(total), whole(part))
            for column, total, part in zip(COLUMNS, totals, parts, strict=True)
            if whole(part) > whole(total)
        }
        words = ", ".join(
            f"{column} {total:,} against {part:,}" for column, (total, part) in exceeding.items()
        )
        yield DAMAGE.finding(
            table="sessions",
            key=printable(session_id),
            message=f"the session says less than its calls: {words}",
            evidence={
                "columns": list(exceeding),
                "session": {column: total for column, (total, _part) in exceeding.items()},
                "calls": {column: part for column, (_total, part) in exceeding.items()},
            },
            session_ids=(session_id,),
        )


DAMAGE = declare(
    __name__,
    __doc__,
    code="HDB503",
    severity=Severity.NOTE,
    safety=Safety.MANUAL,
    needs=("session_model_usage.api_call_count", "session_model_usage.task", "sessions.api_call_count"),
    reads=("sessions", "session_model_usage"),
    noun=("session", "sessions"),
    find=_find,
)
