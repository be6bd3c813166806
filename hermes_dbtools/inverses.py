"""Apply the inverses of what a receipt recorded, and name what stands against it; begins and ends no transaction.

The changesets already hold the rows that foreign key actions removed, so keys are off and no trigger fires while the inverses are
applied.
"""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Callable
from pathlib import Path

import apsw

from . import queries, receipts, recorder, schema_changes, search_index, search_upkeep, violations
from .file_sql import run_one
from .model import Plan, Receipt, Refused, RolledBack
from .shape import Shape, read_shape

CONFLICT_WORDS = {
    apsw.SQLITE_CHANGESET_DATA: "was changed since",
    apsw.SQLITE_CHANGESET_NOTFOUND: "is gone",
    apsw.SQLITE_CHANGESET_CONFLICT: "is there again",
    apsw.SQLITE_CHANGESET_CONSTRAINT: "would break a constraint",
    apsw.SQLITE_CHANGESET_FOREIGN_KEY: "would break a foreign key",
}


def apply_inverses(
    connection: apsw.Connection, shape: Shape, plan: Plan, receipt: Receipt, folder: Path
) -> None:
    """Give back every row the repair changed. Raises RolledBack for a conflict, Refused where a list of the receipt is lost."""
    touched_tables = {*receipt.changed, *receipt.cascaded}
    schema_changes.take_created(connection, receipt)
    touched = _list_of(folder, receipt, receipts.TOUCHED)
    # After a purge the file may hold no row any more that tells how its engine indexes them.
    rule = receipt.nul_rule or search_upkeep.DEFAULT_RULE
    upkeep = search_upkeep.choose(connection, shape, plan.steps, touched, default_rule=rule)
    search_index.register_tokenizer(connection, upkeep)
    search_index.begin_change(connection, upkeep)
    suspended = [t for t in read_shape(connection).triggers.values() if t.table in touched_tables]
    for trigger in suspended:
        connection.execute(queries.fill(queries.statement("apply", "drop-trigger"), trigger=trigger.name))
    _flush_search(connection)
    conflicts: list[str] = []
    for changeset in recorder.batches_backwards(folder / receipts.UNDO, receipt.undo_sha256):
        before, expected = connection.total_changes(), recorder.count(changeset)
        apsw.Changeset.apply(
            apsw.Changeset.invert(changeset),
            connection,
            conflict=_collector(shape, conflicts),
            flags=apsw.SQLITE_CHANGESETAPPLY_FKNOACTION,
        )
        if conflicts:
            raise RolledBack(f"undo of {receipt.id}: {conflicts[0]}{_more(conflicts)}; nothing was changed")
        # SQLite passes in silence over a table that lost columns or its key since.
        if (restored := connection.total_changes() - before) != expected:
            raise RolledBack(
                f"undo of {receipt.id}: {restored:,} of {expected:,} rows could be restored, for the tables "
                f"have changed since; nothing was changed; restore {receipt.backup or 'a backup'} instead"
            )
    for trigger in suspended:
        run_one(connection, trigger.sql)
    search_index.end_change(connection, upkeep)
    schema_changes.bring_dropped(connection, receipt)


def known_violations(
    connection: apsw.Connection, shape: Shape, receipt: Receipt, folder: Path
) -> frozenset[int]:
    """What was broken before the repair, and what is broken now: neither is the doing of an undo."""
    tables = violations.with_referrers(shape, {*receipt.changed, *receipt.cascaded})
    now = violations.numbers(connection, shape, tables)
    return frozenset(now | set(_list_of(folder, receipt, receipts.VIOLATIONS)))


def refuse_new_violations(
    connection: apsw.Connection, shape: Shape, receipt: Receipt, known: frozenset[int]
) -> None:
    """Raise RolledBack for a row that points at one the undo removes."""
    tables = violations.with_referrers(shape, {*receipt.changed, *receipt.cascaded})
    violation = violations.first_new(connection, shape, tables, known)
    if violation is not None:
        raise RolledBack(
            f"undo of {receipt.id}: {violations.row_text(shape, violation)} is newer than the repair and points "
            f"at a row of {violation.parent} that the undo would remove; nothing was changed"
        )


def _flush_search(connection: apsw.Connection) -> None:
    """Let FTS5 write what it holds back now: a savepoint makes it, and the rows it writes then are counted as changes."""
    connection.execute("SAVEPOINT written")
    connection.execute("RELEASE written")


def _collector(shape: Shape, conflicts: list[str]) -> Callable[[int, apsw.TableChange], int]:
    def collect(reason: int, change: apsw.TableChange) -> int:
        word = CONFLICT_WORDS.get(reason, f"conflict {reason}")
        conflicts.append(f"{_row_name(shape, change)} {word}")
        return apsw.SQLITE_CHANGESET_OMIT

    return collect


def _row_name(shape: Shape, change: apsw.TableChange) -> str:
    table = shape.tables[change.name]
    try:
        values = dict(zip(table.columns, change.old or change.new or (), strict=False))
    except UnicodeDecodeError:
        return f"a row of {change.name} whose values are not UTF-8"
    key = tuple(values.get(column) for column in table.primary_key)
    return violations.key_text(shape, change.name, key)


def _more(conflicts: list[str]) -> str:
    return f" (and {len(conflicts) - 1:,} more)" if len(conflicts) > 1 else ""


def _list_of(folder: Path, receipt: Receipt, name: str) -> array[int]:
    """A list of numbers stored with a receipt. Raises Refused when it is not the one that was written."""
    try:
        content = (folder / name).read_bytes()
    except OSError as error:
        raise Refused(f"{folder / name}: {error.strerror}; nothing was changed") from None
    if hashlib.sha256(content).hexdigest() != receipt.lists_sha256.get(name):
        raise Refused(
            f"{folder / name}: not the list that was written; nothing was changed; "
            f"restore {receipt.backup or 'a backup'} instead"
        )
    return violations.decode(content)
