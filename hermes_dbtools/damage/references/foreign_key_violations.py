"""Rows break a declared foreign key.

What it means
-------------
A row names a row of another table that is gone, by a key that the file itself declares: of a table that a fork
or plugin added, known or not. The kind `key-mismatch` is worse: the table that the key
points at is gone or has nothing that makes the named columns unique, so every write of the table fails,
whatever it holds.

Why it happens
--------------
Rows were removed through a connection that does not enforce foreign keys, a file was recovered or merged in
part, or a table was made again from its rows alone (`CREATE TABLE … AS SELECT` keeps no key).

Repair
------
By hand: what such a row is worth depends on its table. The runbook shows how to look at the rows, and what is
safe for the tables that are known.

Safety
------
Nothing is planned. Keys of messages, parents, usage, prompts, topic bindings and the runtime ledger have classes
of their own and are only looked at here for a key mismatch.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

import apsw

from ...model import CouldNotLook, Finding, Safety, Severity
from ...shape import ForeignKey, Table
from ...sizes import counted
from .._declare import ScanContext, declare, whole

ELSEWHERE = frozenset(
    (
        ("messages", "session_id", "sessions"),
        ("sessions", "parent_session_id", "sessions"),
        ("sessions", "system_prompt_hash", "system_prompts"),
        ("session_model_usage", "session_id", "sessions"),
        ("session_daily_usage", "session_id", "sessions"),
        ("telegram_dm_topic_bindings", "session_id", "sessions"),
    )
)
"""Keys (table, column, parent) whose rows HDB201 to HDB205 look at."""

LEDGER = frozenset(
    (
        ("session_admissions", "target_session_id", "sessions"),
        ("worker_executions", "session_id", "sessions"),
        ("worker_receipts", "execution_id", "worker_executions"),
    )
)
"""Keys whose rows HDB901 looks at, in a file that has all three tables."""


def _find(context: ScanContext) -> Iterator[Finding]:
    whole_ledger = all(context.has(f"{table}.{column}") for table, column, _parent in LEDGER)
    elsewhere = ELSEWHERE | LEDGER if whole_ledger else ELSEWHERE
    for name in context.shape.canonical_tables:
        table = context.shape.tables[name]
        mismatched = {key.id: reason for key in table.foreign_keys if (reason := _mismatch(context, key))}
        open_keys = [
            key
            for key in table.foreign_keys
            if key.id not in mismatched and _edge(table, key) not in elsewhere
        ]
        for key in table.foreign_keys:
            if key.id in mismatched:
                unchecked = len(open_keys)
                yield _mismatch_finding(table, key, mismatched[key.id], unchecked)
        if open_keys and not mismatched:
            _readable(context, table, open_keys)
            yield from _violations(context, table, open_keys)


def _edge(table: Table, key: ForeignKey) -> tuple[str, str, str]:
    """A key of one column as (table, column, parent) in lower case."""
    column = key.columns[0].lower() if len(key.columns) == 1 else ""
    return table.name.lower(), column, key.parent.lower()


def _readable(context: ScanContext, table: Table, keys: list[ForeignKey]) -> None:
    for name in (table.name, *(key.parent for key in keys)):
        if name in context.gate.tables:
            raise CouldNotLook(f"table {name} is damaged (HDB002)")


def _mismatch(context: ScanContext, key: ForeignKey) -> str:
    """Why no row can satisfy the key, or ''."""
    parents = {name.lower(): table for name, table in context.shape.tables.items() if table.kind != "view"}
    parent = parents.get(key.parent.lower())
    if parent is None:
        return "the table it points at is gone"
    primary = [column.lower() for column in parent.primary_key]
    wanted = sorted(column.lower() for column in key.parent_columns) or sorted(primary)
    if len(wanted) != len(key.columns):
        return "the table it points at has another number of key columns"
    if wanted == sorted(primary):
        return ""
    rows = DAMAGE.rows(context, "unique-keys", {"table": parent.name})
    for _index, columns in groupby(rows, key=lambda row: row[0]):
        if sorted(str(row[1]).lower() for row in columns) == wanted:
            return ""
    return "nothing makes the columns it points at unique"


def _mismatch_finding(table: Table, key: ForeignKey, reason: str, unchecked: int) -> Finding:
    return DAMAGE.finding(
        table=table.name,
        key=_named(table, key),
        kind="key-mismatch",
        message=f"no row can satisfy the key to {key.parent}: {reason}",
        evidence={"parent": key.parent, "reason": reason, "other_keys_unchecked": unchecked},
    )


def _violations(context: ScanContext, table: Table, keys: list[ForeignKey]) -> Iterator[Finding]:
    by_id = {key.id: key for key in keys}
    try:
        broken = [
            (by_id[whole(key_id)], whole(rows))
            for key_id, rows in DAMAGE.rows(context, "find", {"table": table.name})
            if key_id in by_id
        ]
    except apsw.SQLError as error:
        if "foreign key mismatch" not in str(error):
            raise
        # A collation or a partial index can make a key unusable in ways that only SQLite's own check sees.
        yield _mismatch_finding(table, keys[0], "SQLite calls it a foreign key mismatch", len(keys) - 1)
        return
    for key, rows in broken:
        examples = DAMAGE.rows(context, "examples", {"table": table.name, "key": key.id})
        yield DAMAGE.finding(
            table=table.name,
            key=_named(table, key),
            message=f"{counted(rows, 'row')} without the row of {key.parent} that the key names",
            evidence={
                "rows": rows,
                "parent": key.parent,
                "columns": list(key.columns),
                "on_delete": key.on_delete,
                "row_ids": [row[0] for row in examples if row[0] is not None],
            },
        )


def _named(table: Table, key: ForeignKey) -> str:
    return f"{table.name}({', '.join(key.columns)}) -> {key.parent}"


DAMAGE = declare(
    __name__,
    __doc__,
    code="HDB206",
    severity=Severity.ERROR,
    safety=Safety.MANUAL,
    reads=("sessions",),
    noun=("key", "keys"),
    sums=(("rows", "rows"),),
    extent="session",
    find=_find,
)
