"""Take an applied plan back: show what that would restore, then do it in one transaction or not at all.

The changesets already hold the rows that foreign key actions removed, so keys are off and no trigger fires while the inverses are
applied. Whatever has changed since, and would be lost or left dangling, is a conflict: it is named, and nothing is undone.
"""

from __future__ import annotations

import hashlib
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
    preflight,
    queries,
    receipts,
    recorder,
    schema_changes,
    search_index,
    search_upkeep,
    settle,
    trash,
    violations,
)
from .home import Home
from .model import Active, Plan, Receipt, Refused, RolledBack, UsageError, Value
from .plan import fingerprint
from .shape import Shape, read_shape

CONFLICT_WORDS = {
    apsw.SQLITE_CHANGESET_DATA: "was changed since",
    apsw.SQLITE_CHANGESET_NOTFOUND: "is gone",
    apsw.SQLITE_CHANGESET_CONFLICT: "is there again",
    apsw.SQLITE_CHANGESET_CONSTRAINT: "would break a constraint",
    apsw.SQLITE_CHANGESET_FOREIGN_KEY: "would break a foreign key",
}


@dataclass(frozen=True, slots=True)
class UndoOptions:
    """How to undo. `now` is epoch seconds."""

    online: bool = False
    now: float = field(default_factory=time.time)


def history(home: Home) -> tuple[Receipt, ...]:
    """Every receipt of a home with the status its database proves, oldest first; writes nothing."""
    return settle.proven(home)


def choose_receipt(home: Home, receipt_id: str | None) -> Receipt:
    """The receipt to undo: the named one (a unique beginning of its id will do), else the newest that is committed.

    Raises UsageError where none or several are named so, Refused where there is nothing to undo.
    """
    found = history(home)
    if receipt_id is None:
        committed = [receipt for receipt in found if receipt.status == "committed"]
        if not committed:
            raise Refused(
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
    """Undo one committed receipt.

    Raises Active when a session of it is live, Refused before anything is begun, RolledBack when nothing was changed.
    """
    options = options or UndoOptions()
    state = database.examine(home.database)
    if state.problem:
        raise Refused(database.problem_line(state))
    plan = _plan_of(home, receipt)
    _refuse_live_or_held(home, state, plan, options)
    with database.repair_lock(state.path):
        database.private_folder(home.dbtools_dir, state)
        folder = database.private_folder(home.dbtools_dir / receipt.id, state)
        database.read(home.database, _refuse_newer)
        preflight.refuse_damaged_file(home)
        # That may take minutes, and a gateway may have been started in them.
        held = _refuse_live_or_held(home, database.examine(home.database), plan, options)
        connection = database.open_for_repair(home.database, foreign_keys=False)
        try:
            _run(connection, home, state, plan, receipt, folder, held=held, now=options.now)
            if not held:
                database.checkpoint_passive(connection)
        finally:
            connection.close()
        receipt = msgspec.structs.replace(receipt, status="undone")
        files_back.take_away(receipt)
        trash.empty(folder, receipt)
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
    given: tuple[Path, ...] = ()
    try:
        apply.begin(connection)
        settle.settle_pending(connection, home, state, receipt.id)
        if settle.mark_of(connection)(receipt.id) != "applied":
            raise Refused(  # noqa: TRY301 - what must hold inside the transaction reads in one place
                f"receipt {receipt.id}: the database does not say that it was applied; nothing was changed"
            )
        shape = read_shape(connection)
        live = guard.live_sessions(connection, shape, home=home, now=now, held=held)
        _refuse_live(plan, live)
        known = _known_violations(connection, shape, receipt, folder)
        _apply_inverses(connection, shape, plan, receipt, folder)
        _refuse_new_violations(connection, shape, receipt, known)
        given = trash.give_back(folder, state, receipt)
        apply.mark(connection, receipt.id, "undone")
        apply.commit(connection)
    except BaseException as error:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
            trash.take_names(given)
        if isinstance(error, apsw.Error | OSError):
            raise RolledBack(f"{home.database}: {error}; nothing was changed") from error
        raise


def _plan_of(home: Home, receipt: Receipt) -> Plan:
    path = home.dbtools_dir / receipt.id / receipts.PLAN
    try:
        plan = documents.decode_plan(path.read_bytes(), str(path), applied=True)
    except (OSError, UsageError) as error:
        raise Refused(
            f"{error}; nothing was changed; restore {receipt.backup or 'a backup'} instead"
        ) from None
    if fingerprint(plan.steps) != receipt.fingerprint:
        raise Refused(
            f"{path}: not the plan that was applied; nothing was changed; "
            f"restore {receipt.backup or 'a backup'} instead"
        )
    return plan


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
        raise Refused(
            f"{state.path} is held by {database.named(state.holders.processes)}; nothing was changed; "
            "stop it, or use --online"
        )
    return held


def _refuse_live(plan: Plan, live: Mapping[Value, object]) -> None:
    for step in plan.steps:
        for session in step.session_ids:
            if live.get(session) is not None:
                raise Active(
                    f"{step.slug} {step.key}: its session is live; nothing was changed; try when it is idle"
                )


def _refuse_newer(reading: database.Reading) -> None:
    if newer := read_shape(reading.connection).newer:
        raise Refused(f"{newer}: this file is report-only; update hermes-dbtools")


def _apply_inverses(
    connection: apsw.Connection, shape: Shape, plan: Plan, receipt: Receipt, folder: Path
) -> None:
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
        connection.execute(trigger.sql)
    search_index.end_change(connection, upkeep)
    schema_changes.bring_dropped(connection, receipt)


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


def _known_violations(
    connection: apsw.Connection, shape: Shape, receipt: Receipt, folder: Path
) -> frozenset[int]:
    """What was broken before the repair, and what is broken now: neither is the doing of an undo."""
    tables = violations.with_referrers(shape, {*receipt.changed, *receipt.cascaded})
    now = violations.numbers(connection, shape, tables)
    return frozenset(now | set(_list_of(folder, receipt, receipts.VIOLATIONS)))


def _refuse_new_violations(
    connection: apsw.Connection, shape: Shape, receipt: Receipt, known: frozenset[int]
) -> None:
    tables = violations.with_referrers(shape, {*receipt.changed, *receipt.cascaded})
    if violations.numbers(connection, shape, tables) <= known:
        return
    for violation in violations.find_violations(connection, shape, tables):
        if violation.number() not in known:
            raise RolledBack(
                f"undo of {receipt.id}: {violations.row_text(shape, violation)} is newer than the repair and points "
                f"at a row of {violation.parent} that the undo would remove; nothing was changed"
            )


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
