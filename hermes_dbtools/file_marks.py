"""Tell whether a database moved while it was read, and keep its sidecars in place; never writes to a file."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from .file_state import FileState
from .holders import PENDING_BYTE
from .model import CouldNotLook
from .shown import reason, shown

Marks = tuple[tuple[int, int, int] | None, ...]

TICK = 0.05
"""Seconds. A file written twice within one tick of its time stamp would look unmoved."""
_TICKS = 4
_SHARED_FIRST = PENDING_BYTE + 2
_SHARED_SIZE = 510
_PAUSE = 0.01


class Moved(Exception):
    """The file changed between the look and the end of the read: start again."""


class Locked(Exception):
    """Another process holds an exclusive lock on the database."""


def sidecar(database: Path, suffix: str) -> Path:
    """The path of `-wal`, `-shm` or `-journal` beside a database."""
    return database.with_name(database.name + suffix)


def marks(database: Path) -> Marks:
    """Inode, size and modification time of the database, its `-wal` and its journal; None where missing."""
    found: list[tuple[int, int, int] | None] = []
    for path in (database, sidecar(database, "-wal"), sidecar(database, "-journal")):
        try:
            state = path.stat()
            found.append((state.st_ino, state.st_size, state.st_mtime_ns))
        except FileNotFoundError:
            found.append(None)
    return tuple(found)


def settled_marks(database: Path) -> Marks:
    """The marks once the last write lies a tick back, so that any later one shows. Raises Moved."""
    for _ in range(_TICKS):
        found = marks(database)
        age = time.time() - max(mark[2] for mark in found if mark) / 1e9 if any(found) else TICK
        if not 0 <= age < TICK:
            return found
        time.sleep(TICK - age)
    raise Moved


@contextmanager
def sidecars_kept(state: FileState, seconds: float) -> Iterator[int]:
    """Hold SQLite's SHARED lock around everything SQLite does with a file in place; yields the descriptor, -1 without locks.

    Under it nobody can delete `-wal` and `-shm` or change the journal mode; SQLite, finding them gone, would
    create them anew. The descriptor outlives the connection, for its close drops the locks of this process.
    Raises Locked after `seconds`, Moved when the file is not what it was, CouldNotLook without file locks.
    """
    if sys.platform == "win32":
        yield -1
        return
    try:
        descriptor = os.open(state.path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError as error:
        raise Moved from error  # a moment ago it could be read: the next look says why not
    try:
        _lock_shared(descriptor, state.path, time.monotonic() + seconds)
        wal, shm = sidecar(state.path, "-wal").exists(), sidecar(state.path, "-shm").exists()
        wal_mode = os.pread(descriptor, 1, 19) == b"\x02"
        if (wal, shm, wal_mode) != (state.wal_size is not None, state.shm, state.wal_mode):
            raise Moved
        yield descriptor
    finally:
        os.close(descriptor)


def _lock_shared(descriptor: int, path: Path, deadline: float) -> None:
    import fcntl

    shared = fcntl.LOCK_SH | fcntl.LOCK_NB
    while True:
        try:
            # A writer that waits for its turn holds PENDING: passing it first lets that writer in before us.
            fcntl.lockf(descriptor, shared, 1, PENDING_BYTE)
            try:
                fcntl.lockf(descriptor, shared, _SHARED_SIZE, _SHARED_FIRST)
                return
            finally:
                fcntl.lockf(descriptor, fcntl.LOCK_UN, 1, PENDING_BYTE)
        except (BlockingIOError, PermissionError):
            if time.monotonic() > deadline:
                raise Locked from None
        except OSError as error:
            raise CouldNotLook(
                f"{shown(path)}: cannot be locked ({reason(error)}); copy the home to a local disk"
            ) from None
        time.sleep(_PAUSE)
