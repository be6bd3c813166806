"""Carry out a plan: backup, one write transaction, receipt, files put back; decides nothing about what to repair.

`apply_plan` refuses before it begins, or leaves the file wholly as it was, or wholly repaired. What a crash leaves is settled
by the next run: the row `hermes_dbtools.repair.<id>` of `state_meta` commits together with the rows.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

import apsw
import msgspec

from . import (
    database,
    dbhash,
    documents,
    engine,
    files_back,
    named_files,
    plan_documents,
    preflight,
    queries,
    receipts,
    settle,
    trash,
    violations,
)
from .damage import PLANNERS
from .damage._declare import IDLE_SECONDS, Planners, ScanContext
from .home import Home
from .model import Plan, Receipt, Refused, RolledBack, Step, ToolError
from .plan import totals
from .shape import read_shape
from .shown import named, reason
from .sizes import path_text
from .structure import Gate
from .transaction import Outcome, run_plan

ONLINE_LOCK_SECONDS = 2.0
"""Estimated seconds under the write lock above which a plan is not applied beside other processes."""


@dataclass(frozen=True, slots=True)
class ApplyOptions:
    """How to apply. `now` is epoch seconds; `lock_limit` seconds beside other processes.

    `planners` are what the steps of the plan may belong to; `progress` is told how far the backup has come.
    """

    online: bool = False
    backup: bool = True
    verify: bool = False
    now: float = field(default_factory=time.time)
    lock_limit: float = ONLINE_LOCK_SECONDS
    on_step: Callable[[Step], None] = lambda _step: None
    progress: database.Progress = database.quiet
    planners: Planners = field(default_factory=lambda: PLANNERS)


def apply_plan(home: Home, plan: Plan, options: ApplyOptions | None = None) -> Receipt:
    """Apply a plan to the database of a home and return its receipt.

    Raises Refused before anything is begun, StalePlan or RolledBack when no row was changed, UsageError when the plan is of
    another database.
    """
    options = options or ApplyOptions()
    state = database.examine(home.database)
    preflight.refuse_wrong_file(plan, state)
    preflight.refuse_held(state, plan, options.online, options.lock_limit)
    with database.repair_lock(state.path):
        database.read(home.database, lambda reading: preflight.check(reading, plan))
        preflight.refuse_little_space(state, plan, backup=options.backup)
        folder = receipts.new_folder(home, state, plan.fingerprint, options.now)
        receipt = _new_receipt(state, plan, folder, options)
        _write_pending(folder, state, plan, receipt, options)
        try:
            if options.backup:
                preflight.back_up(home, folder / receipts.BACKUP, plan.steps, options.progress)
            else:
                preflight.refuse_damaged_file(home, plan.steps, options.progress)
            if options.verify:
                receipt = msgspec.structs.replace(receipt, dbhash_before=dbhash.of_home(home))
            # A backup may take minutes, and a gateway may have been started in them.
            state = database.examine(home.database)
            held = preflight.refuse_held(state, plan, options.online, options.lock_limit)
            # Under the lock nothing is told: a terminal that is held would hold it too.
            options.progress("applying")
            receipt = _write(home, state, plan, folder, receipt, options, held=held)
        except BaseException as error:
            # What became of it is asked of the database, for an error may follow its COMMIT; what cannot be
            # asked or written now stays pending, and the next run settles it.
            status: str = receipt.status
            with contextlib.suppress(ToolError, apsw.Error, OSError):
                status = settle.give_up(home, folder, state)
            if status == "committed" and isinstance(error, Exception):
                why = reason(error.__cause__ or error)
                raise files_back.unfinished(receipt, f"the rows are repaired, but then: {why}") from error
            raise
        receipt = files_back.finish(folder, state, receipt, named_files.of_home(home))
        if options.verify:
            receipt = msgspec.structs.replace(receipt, dbhash_after=dbhash.of_home(home))
            files_back.write(folder, state, receipt)
    return receipt


def rehearse(home: Home, plan: Plan, options: ApplyOptions | None = None) -> dict[str, int]:
    """Run the real statements on a private copy and roll back; returns the rows changed by table.

    Raises what `apply_plan` would raise for the same rows. The database itself is only read.
    """
    options = options or ApplyOptions()
    state = database.examine(home.database)
    preflight.refuse_wrong_file(plan, state)

    def run(reading: database.Reading) -> dict[str, int]:
        preflight.check(reading, plan)
        with database.private_copy(reading.connection, options.progress) as copy:
            preflight.refuse_damaged_copy(copy, plan.steps, options.progress)
            options.progress("rehearsing")
            connection = database.open_for_repair(copy, foreign_keys=True)
            try:
                with _scratch_file(copy.with_name("undo"), state) as undo:
                    begin(connection)
                    outcome = _in_transaction(connection, home, state, plan, undo, options, held=False)
                    connection.execute("ROLLBACK")
                return dict(sorted(outcome.changes.direct.items()))
            finally:
                connection.close()

    return database.read(home.database, run)


def _write_pending(
    folder: Path, state: database.FileState, plan: Plan, receipt: Receipt, options: ApplyOptions
) -> None:
    """Write the plan and the pending receipt. Raises Refused, and leaves no folder, where that is not possible."""
    document = plan_documents.plan_document(plan, totals(plan), options.planners)
    try:
        receipts.write_private(folder / receipts.PLAN, state, documents.encode(document))
        receipts.write(folder, state, receipt)
    except (OSError, Refused) as error:
        for name in (receipts.PLAN, receipts.RECEIPT):
            (folder / name).unlink(missing_ok=True)
        folder.rmdir()
        raise Refused(f"{named(error, folder)}; nothing was changed") from error


def _new_receipt(state: database.FileState, plan: Plan, folder: Path, options: ApplyOptions) -> Receipt:
    return Receipt(
        id=folder.name,
        status="pending",
        database=path_text(state.path),
        created_at=options.now,
        tool=engine.versions(),
        fingerprint=plan.fingerprint,
        steps=len(plan.steps),
        codes=dict(sorted(Counter(step.code for step in plan.steps).items())),
        changed={},
        cascaded={},
        undo=path_text(folder / receipts.UNDO),
        undo_sha256="",
        backup=path_text(folder / receipts.BACKUP) if options.backup else "",
        files=tuple(file for step in plan.steps for file in step.files),
        trash=trash.places(file for step in plan.steps for file in step.trash),
    )


def _write(
    home: Home,
    state: database.FileState,
    plan: Plan,
    folder: Path,
    receipt: Receipt,
    options: ApplyOptions,
    *,
    held: bool,
) -> Receipt:
    connection = database.open_for_repair(home.database, foreign_keys=True)
    try:
        with _scratch_file(folder / receipts.UNDO, state) as undo:
            begin(connection)
            started = time.perf_counter()
            settle.settle_pending(connection, home, state, receipt.id)
            outcome = _in_transaction(connection, home, state, plan, undo, options, held=held)
            receipt = _record(folder, state, receipt, outcome, time.perf_counter() - started)
            mark(connection, receipt.id, "applied")
            commit(connection)
            receipt = msgspec.structs.replace(receipt, lock_seconds=time.perf_counter() - started)
    except (apsw.Error, OSError) as error:
        roll_back(connection)
        raise RolledBack(f"{named(error, home.database)}; nothing was changed") from error
    else:
        if not held:
            database.checkpoint_passive(connection)
    finally:
        roll_back(connection)
        connection.close()
    return receipt


def roll_back(connection: apsw.Connection) -> None:
    """End the transaction without a change, where SQLite has not done so already."""
    if connection.in_transaction:
        connection.execute("ROLLBACK")


def _in_transaction(
    connection: apsw.Connection,
    home: Home,
    state: database.FileState,
    plan: Plan,
    undo: BinaryIO,
    options: ApplyOptions,
    *,
    held: bool,
) -> Outcome:
    context = ScanContext(
        connection,
        read_shape(connection),
        home,
        state,
        Gate(),
        options.now,
        trust_indexes=False,
        idle=IDLE_SECONDS if plan.idle is None else plan.idle,
    )
    return run_plan(
        context,
        plan.steps,
        undo,
        held=held,
        allow_lossy=plan.allow_lossy,
        on_step=options.on_step,
        planners=options.planners,
    )


def begin(connection: apsw.Connection) -> None:
    """Take the write lock. Raises Refused when another process keeps it past the busy timeout."""
    try:
        connection.execute("BEGIN IMMEDIATE")
    except apsw.BusyError:
        raise Refused("another process is writing; nothing was changed; try again when it is idle") from None


def commit(connection: apsw.Connection) -> None:
    """End the transaction; from here on the rows are repaired."""
    connection.execute("COMMIT")


def mark(connection: apsw.Connection, receipt_id: str, word: str) -> None:
    """Say in the database what became of a receipt; commits with the rows."""
    key = receipts.MARK_PREFIX + receipt_id
    connection.execute(queries.statement("apply", "mark"), {"key": key, "value": word})


def _record(
    folder: Path, state: database.FileState, receipt: Receipt, outcome: Outcome, seconds: float
) -> Receipt:
    cascaded: Counter[str] = Counter()
    for (table, _operation), rows in outcome.changes.indirect.items():
        cascaded[table] += rows
    lists = {
        receipts.VIOLATIONS: violations.encode(outcome.violations_before),
        receipts.TOUCHED: violations.encode(outcome.touched_messages),
    }
    for name, content in lists.items():
        receipts.write_private(folder / name, state, content)
    receipt = msgspec.structs.replace(
        receipt,
        changed=dict(sorted(outcome.changes.direct.items())),
        cascaded=dict(sorted(cascaded.items())),
        undo_sha256=outcome.undo_sha256,
        lock_seconds=seconds,
        search_rebuilt=outcome.search.rebuilt,
        schema=tuple(outcome.changes.schema),
        nul_rule=next((item.rule for item in outcome.search.indexes if item.rule), ""),
        lists_sha256={name: hashlib.sha256(content).hexdigest() for name, content in lists.items()},
    )
    receipts.write(folder, state, receipt)
    return receipt


@contextmanager
def _scratch_file(path: Path, state: database.FileState) -> Iterator[BinaryIO]:
    with os.fdopen(database.create_private(path, state), "wb") as file:
        yield file
