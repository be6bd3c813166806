"""Say which messages a plan puts into or out of the full-text indexes, for an apply or an undo; changes no row of the file."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence

import apsw

from . import queries, search_index
from .model import Step
from .shape import Shape


def choose(
    connection: apsw.Connection, shape: Shape, steps: Sequence[Step], touched: array[int]
) -> search_index.Upkeep:
    """What the search indexes need while the steps run or are taken back; nothing where no entry can change.

    `touched` are the messages that go or come. Where an index asks for the session of a message, those of a session that
    comes or goes are regrouped.
    """
    connection.execute(queries.statement("apply", "touched-table"))
    connection.execute(queries.statement("apply", "forget-touched"))
    if touched:
        connection.execute(queries.statement("apply", "touch"), {"ids": apsw.carray(touched)})
    if _regroup(connection, shape, steps) or _changes(steps, "messages"):
        return search_index.decide(connection, shape)
    return search_index.Upkeep(())


def _regroup(connection: apsw.Connection, shape: Shape, steps: Sequence[Step]) -> bool:
    if "sessions" not in search_index.watched_columns(shape):
        return False
    connection.execute(queries.statement("apply", "regrouped-table"))
    connection.execute(queries.statement("apply", "forget-regrouped"))
    coming = [step for step in steps if _changes((step,), "sessions", "insert", "delete")]
    regroup = queries.statement("apply", "regroup")
    connection.executemany(regroup, ({"id": session} for step in coming for session in step.session_ids))
    return bool(coming)


def _changes(steps: Iterable[Step], table: str, *operations: str) -> bool:
    return any(
        statement.table == table and (not operations or statement.operation in operations)
        for step in steps
        for statement in step.statements
    )
