"""Make folders, files and the repair lock beside a database, owned and guarded like it; never removes one."""

from __future__ import annotations

import errno
import os
import shutil
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

from .model import Refused
from .shown import reason, shown

FOLDER_MODE = 0o700
FILE_MODE = 0o600
LOCK_SUFFIX = ".repair.lock"

NO_LINKS = frozenset((errno.EPERM, errno.EXDEV, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK))
"""What a file system answers that cannot give a file a second name there."""


class Owned(Protocol):
    """Anything that tells an owner: a FileState."""

    @property
    def uid(self) -> int:
        """The user id of the owner."""

    @property
    def gid(self) -> int:
        """The group id of the owner."""


def free_bytes(folder: Path) -> int:
    """Bytes that this user may still write in the file system of a folder. Raises OSError."""
    return shutil.disk_usage(folder).free


def own_like(descriptor: int, like: Owned) -> None:
    """Give an open file or folder that root made to the owner of the database; others own what they make."""
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        os.fchown(descriptor, like.uid, like.gid)


def private_folder(folder: Path, like: Owned) -> Path:
    """Make a 0700 folder owned like the database, or take the one that is there if it is as private.

    Raises Refused for a symlink, anything that is no folder, a folder of another user or one open to others.
    """
    try:
        folder.mkdir(FOLDER_MODE)
        created = True
    except FileExistsError:
        created = False
    except OSError as error:
        raise Refused(
            f"{shown(folder)}: cannot be made ({reason(error)}); check the folder above it"
        ) from None
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError as error:
        raise Refused(f"{shown(folder)}: not a folder of ours ({reason(error)}); move it away") from None
    try:
        if created:
            own_like(descriptor, like)
            os.fchmod(descriptor, FOLDER_MODE)
        found = os.fstat(descriptor)
    finally:
        os.close(descriptor)
    if found.st_uid not in {like.uid, os.geteuid()}:
        raise Refused(
            f"{shown(folder)}: belongs to user id {found.st_uid}, the database to {like.uid}; move it away"
        )
    if found.st_mode & 0o077:
        raise Refused(f"{shown(folder)}: open to other users; make it 0700")
    return folder


def create_private(path: Path, like: Owned) -> int:
    """Create a 0600 file owned like the database and return its descriptor. Raises Refused when it exists."""
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | getattr(os, "O_NOFOLLOW", 0)
    try:
        descriptor = os.open(path, flags, FILE_MODE)
    except OSError as error:
        raise Refused(f"{shown(path)}: cannot be made ({reason(error)})") from None
    os.fchmod(descriptor, FILE_MODE)  # whatever the umask took away
    own_like(descriptor, like)
    return descriptor


@contextmanager
def repair_lock(database: Path) -> Iterator[Path]:
    """Hold `<database>.repair.lock`, which upstream's repairs take too; the file stays afterwards.

    Raises Refused when another repair holds it, or when it cannot be made or locked: that is not free.
    """
    real = Path(os.path.realpath(database))
    lock = real.with_name(real.name + LOCK_SUFFIX)
    try:
        descriptor = _open_lock(lock, real.stat())
    except OSError as error:
        raise Refused(
            f"{shown(lock)}: the repair lock cannot be opened ({reason(error)}); "
            "check the folder, then run the command again"
        ) from None
    try:
        _lock(descriptor, lock)
        yield lock
    finally:
        os.close(descriptor)


def _open_lock(lock: Path, database: os.stat_result) -> int:
    flags = os.O_RDWR | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOFOLLOW
    try:
        descriptor = os.open(lock, flags | os.O_CREAT | os.O_EXCL, FILE_MODE)
    except FileExistsError:
        return os.open(lock, flags)
    try:
        if os.geteuid() == 0:
            os.fchown(descriptor, database.st_uid, database.st_gid)
        os.fchmod(descriptor, stat.S_IMODE(database.st_mode) & 0o666)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def _lock(descriptor: int, lock: Path) -> None:
    if sys.platform == "win32":
        raise Refused(
            f"{shown(lock)}: this platform has no flock; run the repair where the store's own lock works"
        )
    import fcntl

    opened = os.fstat(descriptor)
    if not stat.S_ISREG(opened.st_mode):
        raise Refused(f"{shown(lock)}: not a regular file; move it away")
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise Refused(f"{shown(lock)}: another repair is running; wait until it has finished") from None
    except OSError as error:
        raise Refused(
            f"{shown(lock)}: cannot be locked ({reason(error)}); copy the home to a local disk"
        ) from None
    current = lock.lstat()
    if (current.st_dev, current.st_ino) != (opened.st_dev, opened.st_ino):
        raise Refused(f"{shown(lock)}: was replaced while it was taken; run the command again")
