"""Ask the engine which triggers of a file it cannot compile; runs none of them and changes nothing of the file.

The tables are made anew, empty, in memory, with one trigger at a time, so that what fails is that trigger. A virtual table is
stood in for by an ordinary one with its columns: no module or tokenizer is needed for it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import apsw

from ... import queries
from ...file_sql import run_one
from ...queries import quote
from ...shape import Shape, Table, Trigger

BLOCKS = "damage/schema/dangling_triggers"

_GONE = (
    ("missing-table", re.compile(r"^no such table: (?:main\.)?(.+)$")),
    ("missing-function", re.compile(r"^no such function: (.+)$")),
    ("missing-column", re.compile(r"^no such column: (.+)$")),
    ("missing-column", re.compile(r"^table (?:\S+) has no column named (.+)$")),
)


@dataclass(frozen=True, slots=True)
class Dangling:
    """A trigger that cannot run, and what it lacks: `kind` and the name of that."""

    trigger: Trigger
    kind: str
    lacks: str


def dangling_triggers(connection: apsw.Connection, shape: Shape) -> Iterator[Dangling]:
    """The triggers that cannot run, by name. `connection` tells the columns of virtual tables; those it cannot are left out."""
    if not shape.triggers:
        return
    # Without a cache of statements: an EXPLAIN that was prepared before the trigger came would not see it.
    scratch = apsw.Connection(":memory:", statementcachesize=0)
    try:
        for setting in (apsw.SQLITE_DBCONFIG_DQS_DML, apsw.SQLITE_DBCONFIG_DQS_DDL):
            scratch.config(
                setting, 1
            )  # the store's own connections take "x" for a text, as SQLite does by default
        unknown = _make_tables(scratch, connection, shape)
        for _name, trigger in sorted(shape.triggers.items()):
            if trigger.table in shape.tables and not _names_any(trigger.sql, unknown):
                yield from _tried(scratch, shape.tables[trigger.table], trigger)
    finally:
        scratch.close()


def _make_tables(scratch: apsw.Connection, connection: apsw.Connection, shape: Shape) -> frozenset[str]:
    """Make every table and view in memory; returns the names of those that could not be."""
    unknown: set[str] = set()
    for name, table in sorted(shape.tables.items(), key=lambda item: item[1].kind == "view"):
        if name.startswith("sqlite_"):
            continue
        try:
            run_one(scratch, _stand_in(connection, name) if table.kind == "virtual" else table.sql)
        except apsw.Error:
            unknown.add(name.casefold())
    return frozenset(unknown)


def _stand_in(connection: apsw.Connection, name: str) -> str:
    columns = [str(row[1]) for row in connection.execute(f"PRAGMA table_xinfo({quote(name)})")]
    return queries.fill(queries.statement(BLOCKS, "stand-in"), table=name, columns=columns)


def _names_any(text: str, names: frozenset[str]) -> bool:
    return bool(names) and any(word.casefold() in names for word in re.findall(r"\w+", text))


def _tried(scratch: apsw.Connection, table: Table, trigger: Trigger) -> Iterator[Dangling]:
    try:
        run_one(scratch, trigger.sql)
    except apsw.Error:
        return  # not a trigger to our SQLite: nothing is known of it
    try:
        for sql in _firing(scratch, table.name):
            if (lacking := _lacks(scratch, sql)) is not None:
                yield Dangling(trigger, *lacking)
                return
    finally:
        scratch.execute(queries.fill(queries.statement("apply", "drop-trigger"), trigger=trigger.name))


def _firing(scratch: apsw.Connection, table: str) -> Iterator[str]:
    """Statements of which at least one fires any trigger of the table."""
    for block in ("fire-insert", "fire-delete"):
        yield queries.fill(queries.statement(BLOCKS, block), table=table)
    update = queries.statement(BLOCKS, "fire-update")
    for _place, column, _type, _not_null, _default, _pk, hidden in scratch.execute(
        f"PRAGMA table_xinfo({quote(table)})"
    ).fetchall():
        if not hidden:
            yield queries.fill(update, table=table, column=str(column))


def _lacks(scratch: apsw.Connection, sql: str) -> tuple[str, str] | None:
    """What a statement that is prepared and not run lacks, or None."""
    try:
        scratch.execute(f"EXPLAIN {sql}").fetchall()
    except apsw.SQLError as error:
        text = str(error).removeprefix("SQLError: ")
        for kind, pattern in _GONE:
            found = pattern.match(text)
            if found and not found[1].startswith("sqlite_"):
                return kind, found[1]
    return None
