"""Everything that is asked before a write: right file, nobody in the way, room, a sound copy; writes no row.

Reads use read connections only, so the writable connection is opened last, with nothing left to refuse.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

import apsw

from . import database, lock_estimate, queries, search_trial
from .home import Home
from .model import CouldNotLook, Plan, Refused, Step, UsageError
from .pages_read import CHECK_PASSES, told
from .plan import rows_removed
from .shape import Shape, read_shape
from .sizes import path_text
from .structure import classify
from .verification import tables, whole_file
from .violations import with_referrers
from .wal_snapshot import NotWhole

SLACK_BYTES = 16 * 1024 * 1024
"""Room left beside what a backup and an undo file are expected to take."""


def refuse_wrong_file(plan: Plan, state: database.FileState) -> None:
    """Raise UsageError when the plan is of another database, CouldNotLook when the file cannot be used."""
    if state.problem:
        raise CouldNotLook(database.problem_line(state))
    if plan.database != path_text(state.path):
        raise UsageError(
            f"the plan is for {plan.database}, not for {state.path}; make one with hermes-dbtools repair"
        )


def refuse_held(state: database.FileState, plan: Plan, online: bool, limit_seconds: float) -> bool:
    """Whether other processes hold the file. Raises Refused where that forbids the plan."""
    if not state.holders.held:
        return False
    names = database.named(state.holders.processes)
    if not online:
        raise Refused(
            f"{state.path} is held by {names}; nothing was changed; stop it, or use --online for sessions that are idle"
        )
    if any(step.search for step in plan.steps):
        raise Refused(
            f"a search index is made anew only while nobody holds the file, and {names} does; nothing was changed; "
            "stop it, or leave the search family out with --ignore search"
        )
    seconds = lock_estimate.seconds(plan, state)
    if seconds > limit_seconds:
        raise Refused(
            f"the plan would keep the write lock for about {seconds:.1f} s beside {names}; nothing was changed; "
            "stop it, or make a smaller plan with --select"
        )
    return True


def refuse_little_space(state: database.FileState, plan: Plan, *, backup: bool) -> None:
    """Raise Refused when the file system is too full for the backup, the undo file and the WAL."""
    size = state.size + (state.wal_size or 0)
    undo = min(size, 2 * sum(step.bytes_freed for step in plan.steps))
    remade = size if any(step.search for step in plan.steps) else 0
    needed = (size if backup else 0) + 2 * undo + remade + SLACK_BYTES
    free = database.free_bytes(state.path.parent)
    if free < needed:
        raise Refused(
            f"{state.path.parent}: {free:,} bytes free, {needed:,} needed for the backup and the undo file; "
            "nothing was changed; make room" + (" or use --no-backup" if backup else "")
        )


def check(reading: database.Reading, plan: Plan) -> None:
    """Check shape, keys and tokenizers through a read connection. Raises Refused."""
    refuse_untrusted(reading)
    shape = read_shape(reading.connection)
    if shape.newer:
        raise Refused(f"{shape.newer}: this file is report-only; update hermes-dbtools")
    removed = sum(rows_removed(step) for step in plan.steps)
    if removed > plan.max_rows:
        raise Refused(
            f"the plan would remove {removed:,} rows, and the limit it was made with is {plan.max_rows:,}; "
            f"nothing was changed; make it anew with --max-rows {removed}"
        )
    tables = {s.table for step in plan.steps for s in step.statements if not s.of_schema}
    for table in with_referrers(shape, tables):
        _refuse_null_keys(reading, shape, table, planned=table in tables)
    _refuse_unrecorded_cascades(plan, shape)


def refuse_untrusted(reading: database.Reading) -> None:
    """Raise Refused where acknowledged rows may lie out of view: in a deleted `-wal`, or behind a hot journal."""
    if not reading.rows_trusted:
        raise Refused("rows of this file cannot be relied on; hermes-dbtools runbook split-wal")


def back_up(
    home: Home, target: Path, steps: Iterable[Step] = (), progress: database.Progress = database.quiet
) -> database.Verification:
    """Copy the database to `target` and verify the copy. Raises Refused, and removes the copy, when it is not sound.

    Damage that goes with the search indexes that `steps` make anew is no hindrance.
    """
    return verified(target, copy_counted(home.database, target, progress), steps, progress)


def copy_counted(source: Path, target: Path, progress: database.Progress = database.quiet) -> dict[str, int]:
    """Copy a database to the new file `target`; returns the rows of each table of what was copied.

    Raises Refused, and leaves no file, when the copy fails or commits may be out of its view.
    """
    return database.read(source, lambda reading: _copy(reading, target, progress), to_copy=True)


def verified(
    target: Path,
    counts: Mapping[str, int],
    steps: Iterable[Step] = (),
    progress: database.Progress = database.quiet,
) -> database.Verification:
    """Check a copy that must hold so many rows. Raises Refused, and removes the copy, when it is not sound."""
    verification = database.verify_copy(target, search=False, progress=progress)
    problems = _left_of_copy(target, verification.problems, steps)
    if not problems and dict(verification.rows) == counts:
        return verification
    target.unlink()
    _refuse_damage(problems)
    raise Refused("the backup does not hold the rows of the database; nothing was changed; try again")


def refuse_damaged_file(
    home: Home, steps: Iterable[Step] = (), progress: database.Progress = database.quiet
) -> None:
    """Raise Refused unless the whole file passes `quick_check`, search findings and what `steps` make anew apart."""

    def look(reading: database.Reading) -> list[str]:
        with told((reading.connection,), "verifying", progress, passes=CHECK_PASSES):
            problems, _search = whole_file(reading.connection)
        return _left(reading.connection, problems, steps)

    _refuse_damage(database.read(home.database, look))


def refuse_damaged_copy(
    path: Path, steps: Iterable[Step] = (), progress: database.Progress = database.quiet
) -> None:
    """The same for a private copy."""
    found = database.verify_copy(path, search=False, progress=progress)
    _refuse_damage(_left_of_copy(path, found.problems, steps))


def _left_of_copy(path: Path, problems: Iterable[str], steps: Iterable[Step]) -> list[str]:
    connection = database.open_private(path)
    try:
        return _left(connection, problems, steps)
    finally:
        connection.close()


def _left(connection: apsw.Connection, problems: Iterable[str], steps: Iterable[Step]) -> list[str]:
    """The structural problems that are still there once the indexes that are made anew are gone."""
    found = structural(problems)
    if not found or not (names := search_trial.remade(steps)):
        return found
    return structural(search_trial.problems_after(connection, names))


def structural(problems: Iterable[str]) -> list[str]:
    """Lines of a check that mean damage below the rows: a value that a column should not hold is none."""
    lines = [line for problem in problems for line in problem.splitlines()]
    return [line for line in lines if not line.startswith("*** in database") and classify(line) != "value"]


def _refuse_damage(lines: Iterable[str]) -> None:
    if problems := structural(lines):
        raise Refused(
            f"the file is structurally damaged, nothing was changed: {problems[0]}; "
            "hermes-dbtools runbook structural-damage"
        )


def _copy(reading: database.Reading, target: Path, progress: database.Progress) -> dict[str, int]:
    refuse_untrusted(reading)
    target.unlink(missing_ok=True)  # an immutable read may begin again
    if reading.how == "immutable":
        database.copy_unmoved(reading.state.path, target, progress)
    elif not _snapshot_copied(reading, target, progress):
        database.copy_database(reading.connection, target, progress)
    return tables(reading.connection, search=False)[2]


def _snapshot_copied(reading: database.Reading, target: Path, progress: database.Progress) -> bool:
    """Whether what is read could be copied by bytes."""
    if reading.snapshot is None:
        return False
    try:
        database.copy_snapshot(reading.snapshot, target, progress)
    except NotWhole:
        return False
    return True


def _refuse_unrecorded_cascades(plan: Plan, shape: Shape) -> None:
    """SQLite's recorder follows no table without a primary key: what a foreign key action does there is lost."""
    emptied = {s.table for step in plan.steps for s in step.statements if s.operation == "delete"}
    for name in with_referrers(shape, emptied):
        table = shape.tables[name]
        if not table.primary_key and any(
            key.on_delete in ("CASCADE", "SET NULL") for key in table.foreign_keys
        ):
            raise Refused(
                f"table {name} has no primary key and follows the rows that the plan removes: this could not be undone"
            )


def _refuse_null_keys(reading: database.Reading, shape: Shape, name: str, *, planned: bool) -> None:
    table = shape.tables[name]
    if not table.primary_key:
        if planned:
            raise Refused(f"table {name} has no primary key: a change of it could not be undone")
        return
    for column in table.primary_key:
        if table.columns[column].type.upper() == "INTEGER" and len(table.primary_key) == 1:
            continue
        sql = queries.fill(queries.statement("apply", "null-key"), table=name, column=column)
        if reading.connection.execute(sql).fetchone() is not None:
            raise Refused(
                f"table {name} has a row whose key {column} is NULL: a change of it could not be undone"
            )
