"""Say to which session a row with a bad value belongs, so that a live or a removed session keeps its rows; judges nothing."""

from __future__ import annotations

from ...model import Value
from .._declare import ScanContext, text

FILE = "damage/values/_owners"
COLUMNS = {
    "sessions": "id",
    "session_model_usage": "session_id",
    "session_daily_usage": "session_id",
    "session_admissions": "target_session_id",
    "worker_executions": "session_id",
    "compression_locks": "session_id",
    "session_turn_leases": "conversation_id",
    "async_delegations": "parent_session_id",
    "telegram_dm_topic_bindings": "session_id",
}
"""The column that names the session of a row."""

BLOCKS = {"state_meta": "state-key", "gateway_routing": "route", "worker_receipts": "receipt"}
"""What to ask for rows of the other tables that belong to a session."""

REFERENCES = {
    "sessions": ("parent_session_id", "system_prompt_hash", "tool_names"),
    "messages": ("session_id",),
    "session_model_usage": ("session_id",),
    "session_daily_usage": ("session_id",),
    "session_admissions": ("target_session_id",),
    "worker_executions": ("session_id",),
    "worker_receipts": ("execution_id",),
    "compression_locks": ("session_id",),
    "session_turn_leases": ("conversation_id",),
    "async_delegations": ("parent_session_id", "origin_session_id", "owner_execution_id"),
    "telegram_dm_topic_bindings": ("session_id",),
}
"""Columns that name a row of another table. A bad value there names no row, and classes of references report that; or it
names one whose own key is as bad, and that row tells."""

PREFIXES = (b"goal:", b"gateway.local_policy.v1:", b"gateway.api.settings.v1.", b"gateway.api.binding.v1.")
"""Names of the store's values that end with the id of a session."""


def column(context: ScanContext, table: str) -> str:
    """The column to select for the session of a row; `rowid`, which names none, where the file has no such column."""
    named = COLUMNS.get(table, "")
    return named if named and context.has(f"{table}.{named}") else "rowid"


def owner(context: ScanContext, table: str, row: int, selected: Value) -> Value:
    """The session of a row, None where it belongs to none; `selected` is the value of `column`."""
    if table not in BLOCKS:
        return text(selected) if column(context, table) != "rowid" else None
    for (value,) in context.rows(FILE, BLOCKS[table], {"row": row}):
        if not isinstance(value, bytes):
            return None
        if table != "state_meta":
            return text(value)
        return next((text(value[len(start) :]) for start in PREFIXES if value.startswith(start)), None)
    return None
