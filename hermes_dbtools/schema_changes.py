"""Make or take away one index or trigger inside a plan's transaction, and take that back for an undo; changes no row.

SQLite's recorder does not follow the schema, so the text that made the object is kept with the receipt. A text from there is
run only as what it was: it may make that one object, and nothing else.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal

import apsw

from . import queries
from .file_sql import run_one
from .model import Receipt, RolledBack, SchemaChange, Statement

BLOCKS = "apply"

_TYPES: dict[str, Literal["index", "trigger"]] = {"index": "index", "trigger": "trigger"}
_CREATES = {"index": apsw.SQLITE_CREATE_INDEX, "trigger": apsw.SQLITE_CREATE_TRIGGER}
_SCHEMA_TABLES = ("sqlite_master", "sqlite_schema")
_READS = (
    apsw.SQLITE_READ,
    apsw.SQLITE_SELECT,
    apsw.SQLITE_FUNCTION,
    apsw.SQLITE_REINDEX,
    apsw.SQLITE_RECURSIVE,
)


def run(connection: apsw.Connection, sql: str, statement: Statement) -> SchemaChange:
    """Run a `create` or `drop` and return what it did. Raises RolledBack unless exactly the named object came or went."""
    before = _object(connection, statement.schema_object)
    connection.execute(sql)
    after = _object(connection, statement.schema_object)
    creates = statement.operation == "create"
    if (before is None) != creates or (after is None) == creates:
        found = (
            "was there already"
            if creates and before
            else "was not there"
            if before is None
            else "is still there"
        )
        raise RolledBack(
            f"{statement.schema_object} {found}; nothing was changed; run hermes-dbtools repair again"
        )
    kind, table, _text = after or before or ("index", "", "")
    return SchemaChange(
        kind, statement.schema_object, table, before[2] if before else "", after[2] if after else ""
    )


def take_created(connection: apsw.Connection, receipt: Receipt) -> None:
    """Drop what a receipt made, the last first. Raises RolledBack where it is another one by now."""
    for change in reversed(receipt.schema):
        if change.before:
            continue
        found = _object(connection, change.name)
        if found is None:
            continue
        if found != (change.type, change.table, change.after):
            raise RolledBack(
                f"undo of {receipt.id}: the {change.type} {change.name} was changed since; nothing was changed"
            )
        block = queries.statement(BLOCKS, f"drop-{change.type}")
        connection.execute(queries.fill(block, **{change.type: change.name}))


def bring_dropped(connection: apsw.Connection, receipt: Receipt) -> None:
    """Make again what a receipt took away, byte for byte. Raises RolledBack where its name is taken."""
    for change in reversed(receipt.schema):
        if change.after:
            continue
        if _object(connection, change.name) is not None:
            raise RolledBack(
                f"undo of {receipt.id}: there is another {change.type} {change.name} by now; nothing was changed"
            )
        with _only_creates(connection, change):
            run_one(connection, change.before)
        if _object(connection, change.name) != (change.type, change.table, change.before):
            raise RolledBack(
                f"undo of {receipt.id}: the {change.type} {change.name} did not come back; nothing was changed"
            )


def _object(connection: apsw.Connection, name: str) -> tuple[Literal["index", "trigger"], str, str] | None:
    """Type, table and text of an index or trigger; None where there is none of this name."""
    for kind, table, text in connection.execute(queries.statement(BLOCKS, "schema-object"), {"name": name}):
        return _TYPES[str(kind)], str(table), str(text or "")
    return None


@contextmanager
def _only_creates(connection: apsw.Connection, change: SchemaChange) -> Iterator[None]:
    """Let a text do nothing but make this one object."""

    def authorize(
        operation: int, one: str | None, other: str | None, _database: str | None, _trigger: str | None
    ) -> int:
        makes = operation == _CREATES[change.type] and (one, other) == (change.name, change.table)
        writes = operation in (apsw.SQLITE_INSERT, apsw.SQLITE_UPDATE) and one in _SCHEMA_TABLES
        return apsw.SQLITE_OK if makes or writes or operation in _READS else apsw.SQLITE_DENY

    before = connection.authorizer
    connection.authorizer = authorize
    try:
        yield
    except apsw.AuthError as error:
        raise RolledBack(
            f"the text kept for the {change.type} {change.name} makes something else; nothing was changed"
        ) from error
    finally:
        connection.authorizer = before
