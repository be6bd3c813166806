"""Make the foreign keys of a new file clean: rebuild lost parents where rows prove them; works on the new file only.

The rules are those of the repairs: a session that messages name is adopted as orphaned-messages does, with source `recovered`;
a chat whose parent is gone for good is detached as missing-parent-session does; a lost prompt is named by nobody.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

import apsw

from .. import queries, utf8
from ..damage._declare import Damage, ScanContext
from ..damage.references import missing_parent_session, orphaned_messages
from ..file_state import FileState
from ..model import Statement, Step
from ..shape import Shape
from ..structure import Gate
from .asking import changed, number, rows

SQL = "salvage/parents"


@dataclass(slots=True)
class Mended:
    """What was done for the foreign keys. Counts of rows by table; `recovered` are rows of `sessions` that were made."""

    recovered: int = 0
    detached: int = 0
    unpointed: Counter[str] = field(default_factory=Counter)
    left_out: Counter[str] = field(default_factory=Counter)
    violations: int = 0


def mend(connection: apsw.Connection, shape: Shape, state: FileState, fallback: float) -> Mended:
    """Rebuild lost parents; `fallback` is when a session began (epoch seconds) if no row of the file says any time."""
    utf8.register(connection)
    mended = Mended()
    context = ScanContext(connection, shape, None, state, Gate(), fallback)
    ((latest,),) = rows(connection, queries.statement(SQL, "latest"))
    started = float(latest) if isinstance(latest, int | float) else fallback
    _adopt(context, mended, started)
    _detach(context, mended)
    for _ in range(len(shape.canonical_tables)):
        if not _pass(connection, shape, mended, started):
            break
    mended.violations = number(connection, queries.statement(SQL, "violations"))
    return mended


def _adopt(context: ScanContext, mended: Mended, started: float) -> None:
    for finding in list(orphaned_messages.DAMAGE.find(context)):
        remedy = finding.remedies[0]
        if remedy.step is not None:
            for statement in remedy.step.statements:
                count = _run(context, orphaned_messages.DAMAGE, statement, started)
                if statement.operation == "insert":
                    mended.recovered += count
                else:
                    mended.detached += count


def _detach(context: ScanContext, mended: Mended) -> None:
    for finding in list(missing_parent_session.DAMAGE.find(context)):
        if finding.kind == "delegate":
            sql = queries.statement(SQL, "recover-parent")
            mended.recovered += changed(context.connection, sql, {"id": finding.session_ids[0]})
            continue
        for step in _steps(finding.remedies[0].step):
            for statement in step.statements:
                mended.detached += _run(context, missing_parent_session.DAMAGE, statement, 0.0)


def _steps(step: Step | None) -> Iterator[Step]:
    if step is not None:
        yield step


def _run(context: ScanContext, damage: Damage, statement: Statement, started: float) -> int:
    query = queries.choose(damage.sql, statement.block, context.has)
    if query is None:
        return 0
    bindings = dict(statement.bindings)
    if bindings.get("started_at", started) is None:
        bindings["started_at"] = started  # the clock of the moment would make every run another file
    return changed(context.connection, query.sql, bindings)


def _pass(connection: apsw.Connection, shape: Shape, mended: Mended, started: float) -> int:
    """Mend every key once. Returns how many rows were left out, which other rows may have pointed at."""
    left_out = 0
    for name in shape.canonical_tables:
        table = shape.tables[name]
        for key in table.foreign_keys:
            parent = shape.tables.get(key.parent)
            if parent is None or len(key.columns) != 1:
                continue
            column = key.columns[0]
            places = {
                "table": name,
                "column": column,
                "parent": parent.name,
                "key": (key.parent_columns or parent.primary_key)[0],
            }
            if not number(connection, _sql("dangling", places)):
                continue
            if parent.name == "sessions" and name != "sessions":
                mended.recovered += changed(connection, _sql("recover", places), {"started_at": started})
            if table.columns[column].not_null:
                count = changed(connection, _sql("leave-out", places))
                mended.left_out[name] += count
                left_out += count
            else:
                mended.unpointed[name] += changed(connection, _sql("unpoint", places))
    return left_out


def _sql(block: str, places: dict[str, str]) -> str:
    return queries.fill(queries.statement(SQL, block), **places)
