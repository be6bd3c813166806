"""Open a database for reading in the way its state asks for; never leaves a trace and never writes to it.

How a file is opened follows from what `examine` found (measured with SQLite 3.54.1):

- `live`: `-wal` and `-shm` exist. `readonly_shm=1`, for plain `mode=ro` writes into `-shm`.
- `immutable`: WAL mode with no `-wal` or one without a frame, where every other way creates sidecars; and a rollback journal
  and nobody else, where `mode=ro` would hold a lock that stalls a writer who comes while we read. SQLite looks
  for no change then, so the marks of the files are compared afterwards. Also a file whose rows are not trusted.
- `copy`: a non-empty `-wal` without `-shm`, or a rollback journal beside other processes.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import apsw

from . import wal_format, wal_snapshot
from .connections import READ_BUSY_MS, begin_reading, connect
from .copies import copy_beside_writers, copy_plain, remove_folder, scratch_folder
from .file_marks import Locked, Moved, marks, settled_marks, sidecar, sidecars_kept
from .file_state import FileState
from .holders import lock_owners
from .model import CouldNotLook, Holder
from .pages_read import go_on
from .shown import reason, shown

How = Literal["live", "immutable", "copy"]

_OTHER_USER = "not all of its files may be read by this user; run as the user who owns them"

MARK_TRIES = 20
"""How often a read transaction begins to fall between two commits, which a busy writer makes some thousands a second."""

BETWEEN_SIGNALS = 100_000
"""Steps of SQLite's machine after which Python may look for a signal."""


@dataclass(frozen=True, slots=True)
class Reading:
    """An open connection in a read transaction. `rows_trusted` is False where commits may be out of view.

    `snapshot` is there when it was asked for and can be had: what of the files the transaction sees.
    """

    connection: apsw.Connection
    how: How
    state: FileState
    rows_trusted: bool
    snapshot: wal_snapshot.Snapshot | None = None


def look_at_rows(reading: Reading) -> None:
    """Begin a long look at rows, during which Ctrl-C is heard. Raises CouldNotLook where commits may be out of view."""
    if not reading.rows_trusted:
        raise CouldNotLook(
            f"{shown(reading.state.path)}: rows of this file cannot be relied on; next: hermes-dbtools runbook split-wal"
        )
    # Only between two statements Python sees Ctrl-C; one statement may take minutes on a slow disk.
    reading.connection.set_progress_handler(go_on, BETWEEN_SIGNALS)


class HotJournal(Exception):
    """SQLite wants to roll back a journal that `examine` took for a living process's."""


def opened(
    state: FileState, *, pause_writers: bool, to_copy: bool = False
) -> AbstractContextManager[Reading]:
    """Open a file that has no `problem`. `to_copy` asks for a `snapshot`: no other connection to it may be in this process.

    Raises Moved when it is not what `state` says, HotJournal when SQLite finds one, `copies.WrittenTooOften`,
    and CouldNotLook for everything that a new start does not mend.
    """
    if state.split:
        return _immutable(state, rows_trusted=False)
    if state.wal_size is not None and state.wal_size <= wal_format.HEADER and not state.holders.held:
        # It holds nothing. A full disk leaves a header, and beside a `-shm` no read-only connection gets past that.
        return _immutable(state, rows_trusted=True)
    if state.wal_size is not None and state.shm:
        return _live(state, to_copy=to_copy)
    if state.wal_size:
        return _copy_with_wal(state)
    if not state.wal_mode and state.wal_size is None and state.holders.held:
        return _copy_by_backup(state, pause_writers=pause_writers)
    return _immutable(state, rows_trusted=True)


def named(processes: Iterable[Holder]) -> str:
    """Processes as an error line names them: `hermes gateway (pid 4121)`, by commas."""
    return ", ".join(
        f"{process.name} (pid {process.pid})" if process.pid else process.name for process in processes
    )


@contextmanager
def _live(state: FileState, *, to_copy: bool) -> Iterator[Reading]:
    try:
        with sidecars_kept(state, READ_BUSY_MS / 1000) as database, ExitStack() as stack:
            files = stack.enter_context(wal_snapshot.opened(database, state.path)) if to_copy else None
            before = wal_snapshot.mark_of(files) if files else None
            connection = _begin(state, state.path, "mode=ro&readonly_shm=1")
            stack.callback(connection.close)
            snapshot = _snapshot(connection, files, before) if files else None
            yield Reading(connection, "live", state, rows_trusted=True, snapshot=snapshot)
    except Locked:
        raise CouldNotLook(_locked_line(state)) from None


def _snapshot(
    connection: apsw.Connection, files: wal_snapshot.Files, before: wal_snapshot.Mark | None
) -> wal_snapshot.Snapshot | None:
    """The snapshot of a read transaction that began after `before`, or of one that begins anew where a writer was faster."""
    for _ in range(MARK_TRIES):
        after = wal_snapshot.mark_of(files)
        if before is not None and before == after:
            return wal_snapshot.Snapshot(files, before) if _agrees(connection, before) else None
        connection.execute("COMMIT")
        before = wal_snapshot.mark_of(files)
        begin_reading(connection)
    return None


def _agrees(connection: apsw.Connection, mark: wal_snapshot.Mark) -> bool:
    ((pages,),) = connection.execute("PRAGMA page_count")
    return not mark.frames or pages == mark.pages


@contextmanager
def _immutable(state: FileState, *, rows_trusted: bool) -> Iterator[Reading]:
    before = settled_marks(state.path)
    connection = _begin(state, state.path, "mode=ro&immutable=1")
    try:
        yield Reading(connection, "immutable", state, rows_trusted)
    except Exception as error:
        if marks(state.path) != before:
            raise Moved from error
        raise
    finally:
        connection.close()
    if marks(state.path) != before:
        raise Moved


@contextmanager
def _copy_with_wal(state: FileState) -> Iterator[Reading]:
    """Database and `-wal` of one moment are what a crash leaves: SQLite recovers them in the copy."""
    with scratch_folder(state.size + (state.wal_size or 0)) as folder:
        before = settled_marks(state.path)
        target = folder / "copy.db"
        try:
            copy_plain(state.path, target)
            copy_plain(sidecar(state.path, "-wal"), sidecar(target, "-wal"))
        except FileNotFoundError:
            raise Moved from None
        except PermissionError:
            raise CouldNotLook(f"{shown(state.path)}: {_OTHER_USER}") from None
        except OSError as error:
            raise CouldNotLook(
                f"{shown(state.path)}: cannot be copied ({reason(error)}); set TMPDIR"
            ) from None
        if marks(state.path) != before:
            raise Moved
        with _copy_opened(state, target, "mode=ro") as reading:
            yield reading


@contextmanager
def _copy_by_backup(state: FileState, *, pause_writers: bool) -> Iterator[Reading]:
    with scratch_folder(state.size) as folder:
        target = folder / "copy.db"
        with _explained(state):
            copy_beside_writers(state, target, pause_writers=pause_writers)
        with _copy_opened(state, target, "mode=ro&immutable=1") as reading:
            yield reading


@contextmanager
def _copy_opened(state: FileState, target: Path, parameters: str) -> Iterator[Reading]:
    connection = _begin(state, target, parameters)
    try:
        if sys.platform != "win32":
            remove_folder(target.parent)  # it is open: now not even SIGKILL leaves the copy behind
        yield Reading(connection, "copy", state, rows_trusted=True)
    finally:
        connection.close()


def _begin(state: FileState, path: Path, parameters: str) -> apsw.Connection:
    with _explained(state):
        connection = connect(path, parameters)
        try:
            begin_reading(connection)
        except BaseException:
            connection.close()
            raise
    return connection


@contextmanager
def _explained(state: FileState) -> Iterator[None]:
    """Turn what SQLite says while a file is opened into one line, or into a new start."""
    before = marks(state.path)
    try:
        yield
    except apsw.BusyError:
        raise CouldNotLook(_locked_line(state)) from None
    except apsw.Error as error:
        if getattr(error, "extendedresult", 0) == apsw.SQLITE_READONLY_ROLLBACK:
            raise HotJournal from error
        if getattr(error, "extendedresult", 0) == apsw.SQLITE_READONLY_RECOVERY:
            # The header of the `-shm` was read while a writer changed it: a moment later it is whole.
            raise Moved from error
        if isinstance(error, apsw.CantOpenError) and marks(state.path) != before:
            raise Moved from error
        raise CouldNotLook(f"{shown(state.path)}: {error}; {_advice(error)}") from None


def _advice(error: apsw.Error) -> str:
    if isinstance(error, apsw.CantOpenError | apsw.PermissionsError | apsw.AuthError):
        return _OTHER_USER
    if isinstance(error, apsw.FullError):
        return "set TMPDIR to a folder with more room"
    return "next: hermes-dbtools runbook structural-damage"


def _locked_line(state: FileState) -> str:
    owners = lock_owners(state.path, writing=True) or state.holders.processes
    who = named(owners) or "another process"
    return (
        f"{shown(state.path)}: locked by {who} for more than {READ_BUSY_MS} ms; "
        "wait until it has finished, then run the command again"
    )
