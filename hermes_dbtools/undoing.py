"""Take an applied plan back: show what that would restore, then do it in one transaction or not at all.

Whatever has changed since, and would be lost or left dangling, is a conflict: it is named, and nothing is undone.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import apsw
import msgspec

from . import apply, database, documents, files_back, guard, inverses, preflight, receipts, settle, trash
from .home import Home
from .model import Active, Plan, Receipt, Refused, RolledBack, UsageError, Value
from .plan import fingerprint
from .shape import read_shape


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
        known = inverses.known_violations(connection, shape, receipt, folder)
        inverses.apply_inverses(connection, shape, plan, receipt, folder)
        inverses.refuse_new_violations(connection, shape, receipt, known)
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
