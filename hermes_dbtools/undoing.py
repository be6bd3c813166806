"""Take an applied plan back: show what that would restore, then do it in one transaction or not at all.

Whatever has changed since, and would be lost or left dangling, is a conflict: it is named, and nothing is undone.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import apsw
import msgspec

from . import apply, database, files_back, guard, inverses, plan_documents, preflight, receipts, settle, trash
from .home import Home
from .model import Active, Plan, Receipt, Refused, RolledBack, ToolError, UsageError, Value
from .plan import fingerprint
from .shape import read_shape
from .shown import named, reason


@dataclass(frozen=True, slots=True)
class UndoOptions:
    """How to undo. `now` is epoch seconds."""

    online: bool = False
    now: float = field(default_factory=time.time)
    progress: database.Progress = database.quiet


def history(home: Home) -> tuple[Receipt, ...]:
    """Every receipt of a home with the status its database proves, oldest first; writes nothing."""
    return settle.proven(home)


def choose_receipt(home: Home, receipt_id: str | None) -> Receipt:
    """The receipt to undo: the named one (a unique beginning of its id will do), else the newest that is committed.

    Raises UsageError where none or several are named so, Refused where there is nothing to undo.
    """
    found, malformed = history(home), receipts.malformed(home)
    if receipt_id is None:
        return _newest(home, found, malformed)
    for one in malformed:
        if receipt_id and one.name.startswith(receipt_id):
            raise UsageError(one.line)
    named = [receipt for receipt in found if receipt.id.startswith(receipt_id)]
    if len(named) != 1:
        raise UsageError(
            f"{len(named)} receipts begin with {receipt_id!r}; hermes-dbtools history lists them"
        )
    if named[0].status != "committed":
        raise Refused(f"receipt {named[0].id} is {named[0].status}: there is nothing to undo")
    return named[0]


def _newest(home: Home, found: Sequence[Receipt], malformed: Iterable[receipts.Malformed]) -> Receipt:
    committed = [receipt for receipt in found if receipt.status == "committed"]
    newest = committed[-1].id if committed else ""
    for one in malformed:
        if one.may_follow(newest):
            raise UsageError(f"{one.line}; or name the receipt to undo: this one may be newer")
    if not committed:
        raise Refused(f"{home.dbtools_dir}: nothing to undo; hermes-dbtools history lists what was applied")
    return committed[-1]


def undo(home: Home, receipt: Receipt, options: UndoOptions | None = None) -> Receipt:
    """Undo one committed receipt.

    Raises Active when a session of it is live, Refused before anything is begun, RolledBack when nothing was changed, and
    Unfinished when it is taken back and something after that failed.
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
        preflight.refuse_damaged_file(home, progress=options.progress)
        # That may take minutes, and a gateway may have been started in them.
        held = _refuse_live_or_held(home, database.examine(home.database), plan, options)
        given: list[Path] = []
        options.progress("undoing")
        try:
            _write(home, state, plan, receipt, folder, given, held=held, now=options.now)
            receipt = msgspec.structs.replace(receipt, status="undone")
            files_back.take_away(receipt)
            trash.empty(folder, receipt)
            receipts.write(folder, state, receipt)
        except BaseException as error:
            _explain(home, receipt, given, error)
            raise
    return receipt


def _explain(home: Home, receipt: Receipt, given: list[Path], error: BaseException) -> None:
    """Raise Unfinished for an error that came after the COMMIT; before it, take away the names that were given.

    What became of it is asked of the database. What cannot be asked now is settled by the next run.
    """
    word = ""
    with contextlib.suppress(ToolError, apsw.Error, OSError):
        word = settle.word_of(home, receipt)
    if word == "applied":
        trash.take_names(given)
    elif word == "undone" and isinstance(error, Exception):
        why = reason(error.__cause__ or error)
        raise files_back.Unfinished(
            f"receipt {receipt.id}: it is taken back, but then: {why}; mend that, the next repair finishes it"
        ) from error


def _write(
    home: Home,
    state: database.FileState,
    plan: Plan,
    receipt: Receipt,
    folder: Path,
    given: list[Path],
    *,
    held: bool,
    now: float,
) -> None:
    connection = database.open_for_repair(home.database, foreign_keys=False)
    try:
        apply.begin(connection)
        settle.settle_pending(connection, home, state, receipt.id)
        if settle.mark_of(connection)(receipt.id) != "applied":
            raise Refused(
                f"receipt {receipt.id}: the database does not say that it was applied; nothing was changed"
            )
        shape = read_shape(connection)
        live = guard.live_sessions(connection, shape, home=home, now=now, held=held)
        _refuse_live(plan, live)
        known = inverses.known_violations(connection, shape, receipt, folder)
        inverses.apply_inverses(connection, shape, plan, receipt, folder)
        inverses.refuse_new_violations(connection, shape, receipt, known)
        given += trash.give_back(folder, state, receipt)
        apply.mark(connection, receipt.id, "undone")
        apply.commit(connection)
        if not held:
            database.checkpoint_passive(connection)
    except (apsw.Error, OSError) as error:
        raise RolledBack(f"{named(error, home.database)}; nothing was changed") from error
    finally:
        apply.roll_back(connection)
        connection.close()


def _plan_of(home: Home, receipt: Receipt) -> Plan:
    path = home.dbtools_dir / receipt.id / receipts.PLAN
    try:
        plan = plan_documents.decode_plan(path.read_bytes(), str(path), applied=True)
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
