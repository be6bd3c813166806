"""Lock, copy and name whole files as SQLite's own processes would respect it; knows no backup and no SQL."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ..database import FileState, create_private, named
from ..holders import LOCK_RANGE, PENDING_BYTE, find_holders
from ..model import Refused
from ..private_files import NO_LINKS
from ..shown import reason, shown

_CHUNK = 1 << 20


@contextmanager
def alone(path: Path) -> Iterator[int]:
    """Hold SQLite's exclusive lock on a file that this process has not open in any other way; yields the descriptor.

    Its close, or that of any other descriptor of the file, ends the lock. Raises Refused when somebody has a lock.
    """
    import fcntl

    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError as error:
        raise Refused(
            f"{shown(path)}: cannot be opened for writing ({reason(error)}); nothing was changed"
        ) from None
    try:
        try:
            fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB, LOCK_RANGE, PENDING_BYTE)
        except (BlockingIOError, PermissionError):
            refuse_holders(path)
            raise Refused(
                f"{shown(path)}: is held by another process; nothing was changed; stop it"
            ) from None
        yield descriptor
    finally:
        os.close(descriptor)


def refuse_holders(path: Path) -> None:
    """Raise Refused, naming them, when other processes have the database open."""
    if (holders := find_holders(path)).held:
        raise Refused(
            f"{shown(path)} is held by {named(holders.processes)}; nothing was changed; stop it, then run the command again"
        )


def like(path: Path, state: FileState) -> None:
    """Give a file the owner and mode of the database, and sync it. Raises Refused where the owner cannot be kept."""
    descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
    try:
        found = os.fstat(descriptor)
        if (found.st_uid, found.st_gid) != (state.uid, state.gid):
            try:
                os.fchown(descriptor, state.uid, state.gid)
            except PermissionError:
                raise Refused(
                    f"{shown(state.path)}: belongs to user {state.uid} and group {state.gid}, which could not be kept; "
                    "nothing was changed; run as root or as its owner"
                ) from None
        os.fchmod(descriptor, state.mode)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def copy_open(source: int, target: Path, owner: FileState) -> None:
    """Copy an open file from its beginning into a new private file, synced. The source stays open: its locks stay too."""
    with os.fdopen(create_private(target, owner), "wb") as file:
        offset = 0
        while chunk := os.pread(source, _CHUNK, offset):
            file.write(chunk)
            offset += len(chunk)
        file.flush()
        os.fsync(file.fileno())


def link(existing: Path, name: Path) -> None:
    """A second name; none where the file system has none, and then nothing can go back."""
    try:
        os.link(existing, name)
    except OSError as error:
        if error.errno not in NO_LINKS:
            raise


def rename(source: Path, target: Path) -> None:
    """Let a file take a name, in one step."""
    source.replace(target)


def inode(path: Path) -> tuple[int, int]:
    """Which file lies at a path."""
    found = path.stat()
    return found.st_dev, found.st_ino


def remove(path: Path) -> None:
    """Remove a file that may be gone already."""
    path.unlink(missing_ok=True)
