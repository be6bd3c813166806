"""A value that no release of the store writes into its column

What it means
-------------
The value can be read, but means nothing: a role that no reader knows, a flag that is neither 0 nor 1, tokens or costs
below zero or beyond reason, bytes where text belongs, a prompt that is not the one its hash names, two inputs that
run in one session at once, a worker whose last step is not its newest receipt. Sums and lists that use it are wrong.

Why it happens
--------------
Values that slid into other columns in a restore, a script, bytes changed by a disk. In a public report five columns of
one row held pieces of one sentence, its cost was 1e179 and its tokens forty times too many. A hand-over that stays
pending or running was begun by a process that is gone.

Repair
------
By hand: nothing in the file tells the right value. The runbook says where each kind can be found again.

Safety
------
Nothing is planned. Not reported: messages both active and compacted (a restore leaves them), flags and numbers that
are NULL where the file allows it, a missing active flag (null-active), text that is not UTF-8 (invalid-text), times
(invalid-timestamps), counts of messages and calls (session-counter-drift), a hand-over younger than an hour.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator

from ... import known, known_shapes, utf8
from ...model import Finding, Safety, Severity, Value
from ...sweep import OUT_OF_DOMAIN
from .._declare import ScanContext, declare, printable, text, whole
from . import _owners
from ._messages import portions

HANDOFF_SECONDS = 3_600.0
"""Idle seconds after which a hand-over that has not ended is stuck: it takes minutes at most."""

SESSION_FLAGS = ("expiry_finalized", "archived", "auto_archived", "pinned", "hidden")
COUNTS = (
    "input_tokens",
    "output_tokens",
    "cache_read_tokens",
    "cache_write_tokens",
    "reasoning_tokens",
    "api_call_count",
)
SESSION_COUNTS = (
    *COUNTS,
    "rewind_count",
    "compression_fallback_streak",
    "compression_ineffective_count",
    "compression_overload_streak",
)
COSTS = ("estimated_cost_usd", "actual_cost_usd")
COUNT_LIMIT, COST_LIMIT = 1_000_000_000_000, 1_000_000
"""Tokens or calls, and US dollars, that no session spends."""

NUMBERS: tuple[tuple[str, tuple[str, ...], int], ...] = (
    ("sessions", SESSION_FLAGS, 1),
    ("sessions", SESSION_COUNTS, COUNT_LIMIT),
    ("sessions", COSTS, COST_LIMIT),
    ("session_model_usage", COUNTS, COUNT_LIMIT),
    ("session_model_usage", COSTS, COST_LIMIT),
    ("session_daily_usage", COUNTS, COUNT_LIMIT),
    ("session_daily_usage", COSTS, COST_LIMIT),
)
"""Columns that hold numbers from 0 to a limit, by table."""

OWNERS = {"sessions": "id", "session_model_usage": "session_id", "session_daily_usage": "session_id"}


def _find(context: ScanContext) -> Iterable[Finding]:
    utf8.register(context.connection)
    yield from _numbers(context)
    yield from _bytes_for_text(context)
    yield from _messages(context)
    yield from _handoffs(context)
    yield from _prompts(context)
    yield from _started_twice(context)
    yield from _last_receipts(context)


def _numbers(context: ScanContext) -> Iterator[Finding]:
    found: dict[tuple[str, int], tuple[Value, set[str]]] = {}
    for table, columns, limit in NUMBERS:
        for column in columns:
            if not context.has(f"{table}.{column}"):
                continue
            names = {"table": table, "column": column, "owner": OWNERS[table]}
            for row, session in DAMAGE.rows(context, "numbers", {"limit": limit}, names):
                found.setdefault((table, whole(row)), (text(session), set()))[1].add(column)
    for (table, row), (session, wrong) in sorted(found.items(), key=lambda item: item[0]):
        key = printable(session) if table == "sessions" else f"{table}:{row}"
        yield _finding(table, f"numbers:{key}", "number", sorted(wrong), session, {"row": row})


def _bytes_for_text(context: ScanContext) -> Iterator[Finding]:
    for table in sorted(known_shapes.columns()):
        if table == "messages" or table not in context.shape.tables:
            continue
        owner = OWNERS.get(table, "rowid")
        found: dict[int, tuple[Value, list[str]]] = {}
        for column in context.shape.text_columns(table):
            if column in _owners.REFERENCES.get(table, ()):
                continue
            names = {"table": table, "column": column, "owner": owner}
            for row, session in DAMAGE.rows(context, "bytes-for-text", names=names):
                found.setdefault(whole(row), (text(session), []))[1].append(column)
        for row, (session, columns) in sorted(found.items()):
            key = printable(session) if table == "sessions" else f"{table}:{row}"
            yield _finding(table, f"bytes:{key}", "bytes", columns, session, {"row": row})


def _messages(context: ScanContext) -> Iterator[Finding]:
    found: dict[Value, list[tuple[int, str]]] = {}
    for portion in portions(context.sweep.run(context).flawed[OUT_OF_DOMAIN]):
        for column in ("role", "active", *known.MESSAGE_FLAGS, "token_count"):
            if not context.has(f"messages.{column}"):
                continue
            block = {"role": "roles", "token_count": "token-counts"}.get(column, "message-flags")
            for id_, session in DAMAGE.rows(context, block, {"ids": portion}, {"column": column}):
                found.setdefault(text(session), []).append((whole(id_), column))
    for session in sorted(found, key=printable):
        rows = found[session]
        ids = [id_ for id_, _column in rows]
        columns = sorted({column for _id, column in rows})
        evidence = {"session": printable(session), "first_id": min(ids), "last_id": max(ids)}
        yield _finding(
            "messages", f"messages:{printable(session)}", "message", columns, session, evidence, len(rows)
        )


def _handoffs(context: ScanContext) -> Iterator[Finding]:
    bindings: dict[str, Value] = {"idle_since": context.now - HANDOFF_SECONDS}
    for session, is_known, state in DAMAGE.rows(context, "handoffs", bindings):
        session_id = text(session)
        if is_known:
            yield DAMAGE.finding(
                table="sessions",
                key=f"handoff:{printable(session_id)}",
                kind="stuck-handoff",
                severity=Severity.NOTE,
                message=f"its hand-over is {state!s} and nothing has happened for an hour or longer",
                evidence={"session": printable(session_id), "handoff_state": state},
                session_ids=(session_id,),
            )
        else:
            evidence = {"session": printable(session_id)}
            key = f"handoff:{printable(session_id)}"
            yield _finding("sessions", key, "handoff", ["handoff_state"], session_id, evidence)


def _prompts(context: ScanContext) -> Iterator[Finding]:
    for row, named, prompt in DAMAGE.rows(context, "prompts"):
        if isinstance(prompt, bytes) and isinstance(named, bytes) and not utf8.broken(prompt):
            digest = hashlib.sha256(prompt).hexdigest()
            if named.decode("ascii", "replace") != digest:
                key = printable(text(named))
                evidence = {"row": whole(row), "sha256": digest, "bytes": len(prompt)}
                yield _finding("system_prompts", key, "prompt", ["prompt"], None, evidence)


def _started_twice(context: ScanContext) -> Iterator[Finding]:
    for session, count in DAMAGE.rows(context, "started-twice"):
        session_id = text(session)
        yield DAMAGE.finding(
            table="session_admissions",
            key=f"started:{printable(session_id)}",
            kind="started-twice",
            message=f"{whole(count)} inputs are started in one session at once",
            evidence={"session": printable(session_id), "started": whole(count)},
            session_ids=(session_id,),
        )


def _last_receipts(context: ScanContext) -> Iterator[Finding]:
    for execution, session, last, newest in DAMAGE.rows(context, "last-receipts"):
        yield DAMAGE.finding(
            table="worker_executions",
            key=printable(text(execution)),
            kind="last-receipt",
            message=f"its last step is {last!s}, its newest receipt {newest!s}",
            evidence={"session": printable(text(session)), "last_sequence": last, "newest_receipt": newest},
            session_ids=(text(session),),
        )


def _finding(
    table: str,
    key: str,
    kind: str,
    columns: list[str],
    session: Value,
    evidence: dict[str, object] | dict[str, str] | dict[str, int],
    values: int | None = None,
) -> Finding:
    words = {
        "number": "no number, below 0 or beyond reason",
        "bytes": "bytes where text belongs",
        "message": "a value that no release writes",
        "handoff": "a value that no release writes",
        "prompt": "not the text that the hash names",
    }
    count = len(columns) if values is None else values
    return DAMAGE.finding(
        table=table,
        key=key,
        kind=kind,
        message=f"{' and '.join(columns)}: {words[kind]}"
        + (f", in {count} places" if count > len(columns) else ""),
        evidence={**evidence, "columns": columns, "values": count},
        session_ids=(session,) if session is not None else (),
    )


DAMAGE = declare(
    __name__,
    __doc__,
    code="HDB405",
    severity=Severity.WARNING,
    safety=Safety.MANUAL,
    reads=(
        "sessions",
        "messages",
        *(table for table in known_shapes.columns() if table not in ("sessions", "messages")),
    ),
    cedes_to=("HDB404",),
    noun=("row or session", "rows or sessions"),
    sums=(("values", "values"),),
    find=_find,
)
