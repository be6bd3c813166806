"""Take an applied plan back: show what that would restore, then do it in one transaction or not at all.

The changesets already hold the rows that foreign key actions removed, so keys are off and no trigger fires while the inverses are
applied. Whatever has changed since, and would be lost or left dangling, is a conflict: it is named, and nothing is undone.
"""

from __future__ import annotations

import time
from array import array
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import apsw
import msgspec

from . import (
    apply,
    database,
    documents,
    files_back,
    guard,
    queries,
    receipts,
    recorder,
    search_index,
    settle,
    violations,
)
from .home import Home
from .model import Plan, Receipt, Refused, RolledBack, UsageError, Value
from .shape import Shape, read_shape

CONFLICT_WORDS = {
    apsw.SQLITE_CHANGESET_DATA: "was changed since",
    apsw.SQLITE_CHANGESET_NOTFOUND: "is gone",
    apsw.SQLITE_CHANGESET_CONFLICT: "is there again",
    apsw.SQLITE_CHANGESET_CONSTRAINT: "would break a constraint",
    apsw.SQLITE_CHANGESET_FOREIGN_KEY: "would break a foreign key",
}
PRINTABLE_KEYS = ("id", "session_id", "hash", "execution_id", "conversation_id")
"""Key columns that may be printed; others hold addresses or chat ids."""


@dataclass(frozen=True, slots=True)
class UndoOptions:
    """How to undo. `now` is epoch seconds."""

    online: bool = False
    now: float = field(default_factory=time.time)


def history(home: Home) -> tuple[Receipt, ...]:
    """Every receipt of a home with the status its database proves, oldest first; writes nothing."""
    found = receipts.read_all(home)
    if not found:
        return ()
    return database.read(
        home.database,
        lambda reading: tuple(
            receipts.settled(receipt, settle.mark_of(reading.connection)) for receipt in found
        ),
    )


def choose_receipt(home: Home, receipt_id: str | None) -> Receipt:
    """The receipt to undo: the named one (a unique beginning of its id will do), else the newest that is committed.

    Raises UsageError where there is none, Refused where it is not committed.
    """
    found = history(home)
    if receipt_id is None:
        committed = [receipt for receipt in found if receipt.status == "committed"]
        if not committed:
            raise UsageError(
                f"{home.dbtools_dir}: nothing to undo; hermes-dbtools history lists what was applied"
            )
        return committed[-1]
    named = [receipt for receipt in found if receipt.id.startswith(receipt_id)]
    if len(named) != 1:
        raise UsageError(
            f"{len(named)} receipts begin with {receipt_id!r}; hermes-dbtools history lists them"
        )
    if named[0].status != "committed":
        raise Refused(f"receipt {named[0].id} is {named[0].status}: there is nothing to undo")
    return named[0]


def undo(home: Home, receipt: Receipt, options: UndoOptions | None = None) -> Receipt:
    """Undo one committed receipt. Raises Refused before anything is begun, RolledBack when nothing was changed."""
    options = options or UndoOptions()
    state = database.examine(home.database)
    if state.problem:
        raise Refused(database.problem_line(state))
    plan = _plan_of(home, receipt)
    held = _refuse_live_or_held(home, state, plan, options)
    folder = home.dbtools_dir / receipt.id
    with database.repair_lock(state.path):
        database.read(home.database, _refuse_newer)
        connection = database.open_for_repair(home.database, foreign_keys=False, held=held)
        try:
            _run(connection, home, state, plan, receipt, folder, held=held, now=options.now)
            if not held:
                database.checkpoint_passive(connection)
        finally:
            connection.close()
        files_back.take_away(receipt)
        receipt = msgspec.structs.replace(receipt, status="undone")
        receipts.write(folder, state, receipt)
    return receipt


def _run(
    connection: apsw.Connection,
    home: Home,
    state: database.FileState,
    plan: Plan,
    receipt: Receipt,
    folder: Path,
    *,
    held: bool,
    now: float,
) -> None:
    try:
        apply.begin(connection)
        settle.settle_pending(connection, home, state)
        if settle.mark_of(connection)(receipt.id) != "applied":
            raise Refused(
                f"receipt {receipt.id}: the database does not say that it was applied; nothing was changed"
            )
        shape = read_shape(connection)
        live = guard.live_sessions(connection, shape, home=home, now=now, held=held)
        _refuse_live(plan, live)
        _apply_inverses(connection, shape, receipt, folder)
        _refuse_new_violations(connection, shape, receipt, folder)
        apply.mark(connection, receipt.id, "undone")
        apply.commit(connection)
    except BaseException as error:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        if isinstance(error, apsw.Error):
            raise RolledBack(f"{home.database}: {error}; nothing was changed") from error
        raise


def _plan_of(home: Home, receipt: Receipt) -> Plan:
    path = home.dbtools_dir / receipt.id / receipts.PLAN
    try:
        return documents.decode_plan(path.read_bytes(), str(path), applied=True)
    except OSError as error:
        raise Refused(f"{path}: {error.strerror}; restore {receipt.backup or 'a backup'} instead") from None


def _refuse_live_or_held(home: Home, state: database.FileState, plan: Plan, options: UndoOptions) -> bool:
    held = state.holders.held
    live = database.read(
        home.database,
        lambda reading: guard.live_sessions(
            reading.connection, read_shape(reading.connection), home=home, now=options.now, held=held
        ),
    )
    _refuse_live(plan, live)
    if held and not options.online:
        names = ", ".join(f"{holder.name} (pid {holder.pid})" for holder in state.holders.processes)
        raise Refused(f"{state.path} is held by {names}; nothing was changed; stop it, or use --online")
    return held


def _refuse_live(plan: Plan, live: Mapping[Value, object]) -> None:
    for step in plan.steps:
        for session in step.session_ids:
            if live.get(session) is not None:
                raise Refused(
                    f"{step.slug} {step.key}: its session is live; nothing was changed; try when it is idle"
                )


def _refuse_newer(reading: database.Reading) -> None:
    if newer := read_shape(reading.connection).newer:
        raise Refused(f"{newer}: this file is report-only; update hermes-dbtools")


def _apply_inverses(connection: apsw.Connection, shape: Shape, receipt: Receipt, folder: Path) -> None:
    touched_tables = {*receipt.changed, *receipt.cascaded}
    touched = violations.decode((folder / receipts.TOUCHED).read_bytes())
    connection.execute(queries.statement("apply", "touched-table"))
    connection.execute(queries.statement("apply", "forget-touched"))
    if touched:
        connection.execute(queries.statement("apply", "touch"), {"ids": apsw.carray(array("q", touched))})
    changes_messages = "messages" in touched_tables
    upkeep = search_index.decide(connection, shape) if changes_messages else search_index.Upkeep(())
    search_index.register_tokenizer(connection, upkeep)
    search_index.begin_change(connection, upkeep)
    suspended = [t for t in read_shape(connection).triggers.values() if t.table in touched_tables]
    for trigger in suspended:
        connection.execute(queries.fill(queries.statement("apply", "drop-trigger"), trigger=trigger.name))
    conflicts: list[str] = []
    for changeset in recorder.batches_backwards(folder / receipts.UNDO, receipt.undo_sha256):
        apsw.Changeset.apply(
            apsw.Changeset.invert(changeset),
            connection,
            conflict=_collector(shape, conflicts),
            flags=apsw.SQLITE_CHANGESETAPPLY_FKNOACTION,
        )
        if conflicts:
            raise RolledBack(f"undo of {receipt.id}: {conflicts[0]}{_more(conflicts)}; nothing was changed")
    for trigger in suspended:
        connection.execute(trigger.sql)
    search_index.end_change(connection, upkeep)


def _collector(shape: Shape, conflicts: list[str]) -> Callable[[int, apsw.TableChange], int]:
    def collect(reason: int, change: apsw.TableChange) -> int:
        word = CONFLICT_WORDS.get(reason, f"conflict {reason}")
        conflicts.append(f"{_row_name(shape, change)} {word}")
        return apsw.SQLITE_CHANGESET_OMIT if len(conflicts) < 1000 else apsw.SQLITE_CHANGESET_ABORT

    return collect


def _row_name(shape: Shape, change: apsw.TableChange) -> str:
    table = shape.tables[change.name]
    try:
        values = change.old or change.new or ()
        for column, value in zip(table.columns, values, strict=False):
            if column in table.primary_key and column in PRINTABLE_KEYS:
                return f"{change.name} {value}"
    except UnicodeDecodeError:
        return f"a row of {change.name} whose values are not UTF-8"
    return f"a row of {change.name}"


def _more(conflicts: list[str]) -> str:
    return f" (and {len(conflicts) - 1} more)" if len(conflicts) > 1 else ""


def _refuse_new_violations(connection: apsw.Connection, shape: Shape, receipt: Receipt, folder: Path) -> None:
    known = violations.decode((folder / receipts.VIOLATIONS).read_bytes())
    tables = violations.with_referrers(shape, {*receipt.changed, *receipt.cascaded})
    for violation in violations.find_violations(connection, shape, tables):
        if violation.number() not in known:
            key = violation.key[0]
            raise RolledBack(
                f"undo of {receipt.id}: {violation.table} {key!r} is newer than the repair and points at a row of "
                f"{violation.parent} that the undo would remove; nothing was changed"
            )
