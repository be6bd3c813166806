"""A time that is no time

What it means
-------------
A time of the store is text, infinite, 0, negative, in milliseconds or beyond the year 2103, or NULL where there must
be one. Reports and searches by date end at such a row, lists sort it to one end, and a clean-up by age takes or
spares what it should not.

Why it happens
--------------
Another program that writes milliseconds or formatted dates, a restore that put values into other columns, bytes
changed by a disk. In public reports text in the start of a session and numbers like 8e252 ended every statistic,
five messages had times like 5e246 and 4e-310, and a recovery stopped at rows whose start was NULL.

Repair
------
A value in milliseconds or microseconds is divided, where that puts it between its neighbours by id (for a session:
its own messages, or the sessions made before and after it). The other times of messages are spread evenly between
their neighbours; a start becomes the time of the first message, an end that of the last; a time that may be missing
becomes NULL.

Safety
------
A division is exact. An estimate is lossy, so it is planned only with --allow-lossy; the old value is kept in the undo
file. By hand: times in tables of the gateway and its tools, which the next use writes anew, and NULL in a column that
must not be NULL (an undo could not put it back). Messages whose time runs backwards are not judged here, nor is a 0
that stands for "never".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from ...model import Finding, Remedy, Safety, Severity, Statement, Value
from ...sweep import NOT_A_TIME
from .._declare import ScanContext, declare, printable, text, whole
from ._message_times import CANNOT_UNDO, message_findings
from ._messages import portions
from ._times import Facts, divisor_of, estimate_of, sound, started

SESSION_TIMES = (
    "started_at",
    "ended_at",
    "last_activity_at",
    "last_read_at",
    "compression_failure_cooldown_until",
    "compression_recovery_deadline",
)
USAGE_TIMES = ("first_seen", "last_seen")
OTHER_TIMES: dict[str, tuple[str, ...]] = {
    "gateway_routing": ("updated_at",),
    "gateway_heartbeats": ("started_at", "last_heartbeat"),
    "compression_locks": ("acquired_at", "expires_at"),
    "session_turn_leases": ("acquired_at", "expires_at"),
    "async_delegations": (
        "dispatched_at",
        "completed_at",
        "updated_at",
        "delivered_at",
        "delivery_claimed_at",
    ),
    "delivery_obligations": ("created_at", "updated_at", "lease_expires_at"),
    "telegram_dm_topic_mode": ("activated_at", "updated_at", "capability_checked_at"),
    "telegram_dm_topic_bindings": ("linked_at", "updated_at"),
}
NEVER_ZERO = ("started_at", "ended_at", "timestamp")
"""Elsewhere a 0 may stand for "never"."""


@dataclass(slots=True)
class _Times:
    """The unsound times of one row by what can be done about them: statements, and columns without one."""

    divided: dict[str, Statement] = field(default_factory=dict)
    estimated: dict[str, Statement] = field(default_factory=dict)
    unknown: list[str] = field(default_factory=list)
    nulls: list[str] = field(default_factory=list)


def _find(context: ScanContext) -> Iterable[Finding]:
    yield from _table_findings(context, "sessions", "id", SESSION_TIMES)
    yield from _table_findings(context, "session_model_usage", "session_id", USAGE_TIMES)
    for table, columns in OTHER_TIMES.items():
        yield from _other_findings(context, table, columns)
    ids = context.sweep.run(context).flawed[NOT_A_TIME]
    found = {
        text(row[0])
        for portion in portions(ids)
        for row in DAMAGE.rows(context, "sessions-of", {"ids": portion})
    }
    for session in sorted(found, key=printable):
        yield from message_findings(DAMAGE, context, session, _facts(context, session).start)


def _unsound(
    context: ScanContext, table: str, owner: str, column: str
) -> Iterator[tuple[int, Value, Value, bool]]:
    """Row, session, value (None where it is no number) and whether it is NULL, of every unsound time of a column."""
    if not context.has(f"{table}.{column}"):
        return
    required = context.shape.tables[table].columns[column].not_null or column == "started_at"
    bindings: dict[str, Value] = {"required": required, "zero": column not in NEVER_ZERO}
    names = {"table": table, "column": column, "owner": owner}
    for row, session, kind, value in DAMAGE.rows(context, "unsound", bindings, names):
        yield whole(row), text(session), value, kind == "null"


def _table_findings(
    context: ScanContext, table: str, owner: str, columns: tuple[str, ...]
) -> Iterator[Finding]:
    rows: dict[int, tuple[Value, _Times]] = {}
    for column in columns:
        for row, session, value, null in _unsound(context, table, owner, column):
            times = rows.setdefault(row, (session, _Times()))[1]
            _sort(context, times, table, column, row, session, value, null=null)
    for row in sorted(rows):
        session, times = rows[row]
        key = printable(session) if table == "sessions" else f"{table}:{row}"
        yield from _row_findings(table, key, row, session, times)


def _sort(
    context: ScanContext,
    times: _Times,
    table: str,
    column: str,
    row: int,
    session: Value,
    value: Value,
    *,
    null: bool,
) -> None:
    """Put one unsound time where it belongs."""
    not_null = context.shape.tables[table].columns[column].not_null
    facts = _facts(context, session)
    by = divisor_of(column, value, facts, context.now)
    names = {"table": table, "column": column}
    if by is not None:
        times.divided[column] = Statement("divide", {"row": row, "by": by}, 1, table, "update", names=names)
        return
    estimate = estimate_of(column, facts)
    if null and not_null:
        times.nulls.append(column)
    elif estimate is None and (not_null or column in NEVER_ZERO):
        times.unknown.append(column)
    else:
        bindings: dict[str, Value] = {"row": row, "time": estimate}
        times.estimated[column] = Statement("estimate", bindings, 1, table, "update", names=names)


def _facts(context: ScanContext, session: Value) -> Facts:
    for row in DAMAGE.rows(context, "facts", {"session_id": session}):
        start, end, first, last, before, after = (sound(value) for value in row)
        return Facts(start or started(row[0], context.now), end, first, last, before, after)
    return Facts(None, None, None, None, None, None)


def _row_findings(table: str, key: str, row: int, session: Value, times: _Times) -> Iterator[Finding]:
    for kind, statements in (("divide", times.divided), ("interpolate", times.estimated)):
        if not statements:
            continue
        columns = sorted(statements)
        what = "milliseconds or microseconds" if kind == "divide" else "no time"
        step = DAMAGE.step(
            key=key if kind == "divide" else f"unknown:{key}",
            answer=kind,
            title=f"{kind} {' and '.join(columns)} of row {row} of {table}",
            statements=tuple(statements[column] for column in columns),
            session_ids=(session,),
        )
        safety = Safety.EXACT if kind == "divide" else Safety.LOSSY
        remedies = (Remedy(kind, safety, step), Remedy("report", Safety.EXACT))
        yield _row_finding(
            table, step.key, kind, row, columns, f"{' and '.join(columns)}: {what}", session, remedies
        )
    if times.unknown:
        columns = sorted(times.unknown)
        message = f"{' and '.join(columns)}: no time, and no neighbour tells what it was"
        yield _row_finding(table, f"manual:{key}", "manual", row, columns, message, session, ())
    if times.nulls:
        columns = sorted(times.nulls)
        message = f"{' and '.join(columns)}: NULL in a column that must not be NULL"
        remedies = (Remedy("interpolate", Safety.LOSSY, refused=CANNOT_UNDO), Remedy("report", Safety.EXACT))
        yield _row_finding(table, f"null:{key}", "null", row, columns, message, session, remedies)


def _row_finding(
    table: str,
    key: str,
    kind: str,
    row: int,
    columns: list[str],
    message: str,
    session: Value,
    remedies: tuple[Remedy, ...],
) -> Finding:
    return DAMAGE.finding(
        table=table,
        key=key,
        kind=kind,
        message=message,
        evidence={"row": row, "columns": columns, "values": len(columns)},
        session_ids=(session,) if session is not None else (),
        remedies=remedies,
    )


def _other_findings(context: ScanContext, table: str, columns: tuple[str, ...]) -> Iterator[Finding]:
    rows: dict[int, list[str]] = {}
    for column in columns:
        for row, _session, _value, _null in _unsound(context, table, "rowid", column):
            rows.setdefault(row, []).append(column)
    for row in sorted(rows):
        message = f"{' and '.join(rows[row])}: no time"
        yield _row_finding(table, f"manual:{table}:{row}", "manual", row, rows[row], message, None, ())


DAMAGE = declare(
    __name__,
    __doc__,
    code="HDB402",
    severity=Severity.ERROR,
    safety=Safety.EXACT,
    answers=("divide", "interpolate", "report"),
    reads=("sessions", "messages", "session_model_usage", *OTHER_TIMES),
    noun=("row or session", "rows or sessions"),
    sums=(("values", "times"),),
    find=_find,
)
