"""Say which messages a plan puts into or out of the full-text indexes, for an apply or an undo; changes no row of the file.

Which columns a statement writes is asked of SQLite, at prepare time, so no class has to say it.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence

import apsw

from . import queries, search_index, utf8
from .damage import PLANNERS
from .damage._declare import Planners
from .model import Statement, Step
from .search_entries import KnownRule
from .shape import Shape

DEFAULT_RULE: KnownRule = "stops"
"""How texts with a NUL byte are indexed where no row tells: as the engines do that most stores run on."""


def choose(
    connection: apsw.Connection,
    shape: Shape,
    steps: Sequence[Step],
    touched: array[int],
    planners: Planners = PLANNERS,
    *,
    default_rule: KnownRule = DEFAULT_RULE,
) -> search_index.Upkeep:
    """What the search indexes need while the steps run or are taken back; nothing where no entry can change.

    `touched` are the messages that go or come. Where an index asks for the session of a message, those of a session that
    comes or goes are regrouped.
    """
    connection.execute(queries.statement("apply", "touched-table"))
    connection.execute(queries.statement("apply", "forget-touched"))
    if touched:
        connection.execute(queries.statement("apply", "touch"), {"ids": apsw.carray(touched)})
    if _regroup(connection, shape, steps, planners) or _changes(steps, "messages"):
        return search_index.decide(connection, shape, default_rule=default_rule)
    return search_index.Upkeep(())


def _regroup(connection: apsw.Connection, shape: Shape, steps: Sequence[Step], planners: Planners) -> bool:
    if "sessions" not in search_index.watched_columns(shape):
        return False
    connection.execute(queries.statement("apply", "regrouped-table"))
    connection.execute(queries.statement("apply", "forget-regrouped"))
    reindexing = Reindexing(connection, shape, planners)
    coming = [
        step
        for step in steps
        if any(s.table == "sessions" and reindexing.by(step, s) for s in step.statements)
    ]
    regroup = queries.statement("apply", "regroup")
    connection.executemany(regroup, ({"id": session} for step in coming for session in step.session_ids))
    return bool(coming)


class Reindexing:
    """Tells which statements change what an index holds. State: the answers given, by class, block and names."""

    def __init__(self, connection: apsw.Connection, shape: Shape, planners: Planners = PLANNERS) -> None:
        """Statements of classes may call the functions of `utf8`, so the connection gets them."""
        utf8.register(connection)
        self._connection = connection
        self._has = shape.has
        self._planners = planners
        self._watched = search_index.watched_columns(shape)
        self._known: dict[tuple[str, str, tuple[str, ...]], bool] = {}

    def by(self, step: Step, statement: Statement) -> bool:
        """Whether it adds or removes rows of a table that an index is made from, or writes such a column.

        A statement that this release or this file lacks is taken for one that does: it belongs to an undo.
        """
        if statement.table not in self._watched or statement.of_schema:
            return False
        if statement.operation != "update":
            return True
        key = (step.code, statement.block, tuple(statement.names.values()))
        if key not in self._known:
            self._known[key] = self._writes_watched(step, statement)
        return self._known[key]

    def _writes_watched(self, step: Step, statement: Statement) -> bool:
        planner = self._planners.get(step.code)
        query = queries.choose(planner.sql, statement.block, self._has) if planner is not None else None
        if query is None:
            return True
        sql = queries.fill(query.sql, **statement.names)
        return not self._watched[statement.table].isdisjoint(
            _written_columns(self._connection, sql, statement)
        )


def _written_columns(connection: apsw.Connection, sql: str, statement: Statement) -> frozenset[str]:
    """The columns of its table that a statement writes itself, in lower case; it is prepared and not run."""
    found: set[str] = set()

    def authorize(
        operation: int, table: str | None, column: str | None, _database: str | None, trigger: str | None
    ) -> int:
        if (operation, trigger) == (apsw.SQLITE_UPDATE, None) and table == statement.table:
            found.add((column or "").lower())
        return apsw.SQLITE_OK

    before = connection.authorizer
    connection.authorizer = authorize
    try:
        connection.execute(f"EXPLAIN {sql}", {"first": 0, "last": 0, **statement.bindings}).fetchall()
    finally:
        connection.authorizer = before
    return frozenset(found)


def _changes(steps: Iterable[Step], table: str) -> bool:
    return any(s.table == table and not s.of_schema for step in steps for s in step.statements)
