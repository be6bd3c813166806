"""Find the processes that have a database or one of its sidecars open; never opens these files itself.

An `open` and `close` of them would drop every POSIX lock that this process has there, so they are only
looked at (`stat`, `O_PATH`). `lock_probe` asks through a descriptor that its caller already has.
"""

from __future__ import annotations

import os
import re
import stat
import struct
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil

from .model import Holder
from .process_names import command_name, may_open_stores

SIDECARS = ("-wal", "-shm", "-journal")
PENDING_BYTE = 0x40000000
LOCK_RANGE = 512
"""SQLite's lock bytes: PENDING, RESERVED and the 510 SHARED ones follow each other."""
_SHM_IN_USE = 128
"""The byte of a `-shm` on which every connection that keeps it true has a lock (SQLite's `unixShm`)."""

_FELLOWS: set[int] = set()
"""Fellow processes of one scan; empty in every process that writes."""

_DELETED = " (deleted)"
_LOCK = re.compile(r"(READ|WRITE) +(-?\d+) +([0-9a-f]+):([0-9a-f]+):(\d+) ")


@dataclass(frozen=True, slots=True)
class Holders:
    """Who has the file open, in the order of pids; `uninspected` counts the unreadable processes left out."""

    processes: tuple[Holder, ...]
    uninspected: int

    @property
    def held(self) -> bool:
        """Whether any process other than this one may have the file open."""
        return bool(self.processes)


NOBODY = Holders((), 0)


@dataclass(frozen=True, slots=True)
class _Targets:
    path: str
    owner: int
    inodes: frozenset[tuple[int, int]]
    locks: frozenset[tuple[int, int, int]]


@contextmanager
def also_ours(pids: Iterable[int]) -> Iterator[None]:
    """Say, in a process that only reads, which others do the same scan: as little as itself they hold a file against it."""
    fellows = frozenset(pids) - _FELLOWS
    _FELLOWS.update(fellows)
    try:
        yield
    finally:
        _FELLOWS.difference_update(fellows)


def find_holders(database: Path) -> Holders:
    """The processes, this one and its fellows excluded, that have `database` (a real path) or one of its sidecars open.

    Linux: `/proc/locks` and the descriptors of each process; elsewhere psutil. An unreadable process of
    the file owner's user counts as a holder when its program could be one that opens stores, for nothing
    tells that it is none. Processes of other containers are unseen here: `lock_probe` finds those that hold
    a lock. Raises OSError when the database cannot be looked at.
    """
    if Path("/proc/self/fd").is_dir():
        return _from_proc(_targets(database))
    return from_psutil(database)


def lock_owners(database: Path, *, writing: bool = False) -> tuple[Holder, ...]:
    """The processes that hold a lock on the database file itself, or only a write lock; empty off Linux."""
    targets = _targets(database, sidecars=())
    pids = {pid for pid, kind in _locks(targets) if kind == "WRITE" or not writing}
    return tuple(Holder(pid, command_name(pid)) for pid in sorted(pids - _ours()) if pid > 0)


def lock_probe(descriptor: int) -> int | None:
    """The pid that holds a lock on the database open as `descriptor`, 0 if it cannot be seen, None if none.

    This notices processes of another PID namespace (a container that shares the volume), which `/proc`
    does not show.
    """
    pid = _lock_owner(descriptor, PENDING_BYTE, LOCK_RANGE)
    return None if pid is None or pid in _FELLOWS else max(pid, 0)


def in_use(shm: int) -> bool:
    """Whether another process keeps the shared memory open as `shm` true; False where the system does not tell."""
    return _lock_owner(shm, _SHM_IN_USE, 1) is not None


def _lock_owner(descriptor: int, first: int, length: int) -> int | None:
    """The pid of another process with a lock on some of these bytes, 0 or less if it cannot be seen, None if none."""
    if sys.platform != "linux":
        return None
    import fcntl

    layout = "@hhqqi"
    wanted = struct.pack(layout, fcntl.F_WRLCK, os.SEEK_SET, first, length, 0)
    answer = fcntl.fcntl(descriptor, fcntl.F_GETLK, wanted)
    kind, _whence, _start, _length, pid = struct.unpack(layout, answer)
    return None if kind == fcntl.F_UNLCK else pid


def _ours() -> set[int]:
    return {os.getpid(), *_FELLOWS}


def _targets(database: Path, sidecars: tuple[str, ...] = SIDECARS) -> _Targets:
    path = os.fspath(database)
    owner = database.stat().st_uid
    inodes: set[tuple[int, int]] = set()
    locks: set[tuple[int, int, int]] = set()
    for name in (path, *(path + suffix for suffix in sidecars)):
        try:
            found = Path(name).stat()
        except FileNotFoundError:
            continue
        inodes.add((found.st_dev, found.st_ino))
        for device in {found.st_dev, _mount_device(name, found.st_dev)}:
            locks.add((os.major(device), os.minor(device), found.st_ino))
    return _Targets(path, owner, frozenset(inodes), frozenset(locks))


def _mount_device(path: str, default: int) -> int:
    """The device of the mount, which `/proc/locks` prints; on btrfs and overlays `st_dev` differs."""
    if sys.platform != "linux":
        return default
    try:
        # Unlike that of a descriptor to read from, the close of this one drops no lock.
        descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
        try:
            info = Path(f"/proc/self/fdinfo/{descriptor}").read_text("ascii")
        finally:
            os.close(descriptor)
        mounts = Path("/proc/self/mountinfo").read_bytes()
    except OSError:
        return default
    mount = re.search(r"^mnt_id:\s*(\d+)$", info, re.MULTILINE)
    for line in mounts.splitlines() if mount else ():
        number, _parent, device = line.split(b" ", 3)[:3]
        if mount and int(number) == int(mount[1]):
            major, minor = device.split(b":")
            return os.makedev(int(major), int(minor))
    return default


def _locks(targets: _Targets) -> Iterator[tuple[int, str]]:
    try:
        text = Path("/proc/locks").read_text("ascii", "replace")
    except OSError:
        return  # no /proc/locks (gVisor, a masked /proc): the descriptors still tell
    for kind, pid, major, minor, inode in _LOCK.findall(text):
        if (int(major, 16), int(minor, 16), int(inode)) in targets.locks:
            yield int(pid), kind


def _from_proc(targets: _Targets) -> Holders:
    own = {*_ours(), *_numbered(Path("/proc/self/task"))}
    owners = {pid for pid, _kind in _locks(targets)} - own
    names = {pid: command_name(pid) for pid in owners if pid > 0}
    deleted: set[int] = set()
    uninspected = 0
    for pid in _numbered(Path("/proc")):
        if pid in own:
            continue
        try:
            holds, lost_sidecar = _open_files(pid, targets)
        except PermissionError:
            if pid in names:
                continue
            if _may_hold(pid, targets.owner):
                names[pid] = f"{command_name(pid)}, not readable"
            else:
                uninspected += 1
            continue
        except (FileNotFoundError, ProcessLookupError):
            continue  # it ended while we looked
        if holds or lost_sidecar:
            names[pid] = command_name(pid)
        if lost_sidecar:
            deleted.add(pid)
    if owners and not names:
        names[0] = "a process that is not visible from here"
    return Holders(tuple(Holder(pid, names[pid], pid in deleted) for pid in sorted(names)), uninspected)


def _numbered(folder: Path) -> list[int]:
    return sorted(int(entry.name) for entry in folder.iterdir() if entry.name.isdigit())


def _open_files(pid: int, targets: _Targets) -> tuple[bool, bool]:
    """Whether the process has one of the files open, and whether a deleted sidecar of this database."""
    holds = False
    seen_as = {targets.path}  # the path of the database as this process sees it may be a container's
    unlinked: list[str] = []
    with os.scandir(f"/proc/{pid}/fd") as descriptors:
        for entry in descriptors:
            try:
                link = os.readlink(entry.path)  # noqa: PTH115 - some ten thousand times a scan
                if not link.startswith("/") or link.startswith(("/proc/", "/sys/", "/memfd:")):
                    continue
                found = entry.stat()
            except PermissionError:
                raise
            except OSError:
                continue  # closed while we looked, or on a file system that went away
            if (found.st_dev, found.st_ino) in targets.inodes:
                holds = True
                seen_as.add(link)
            elif link.endswith(_DELETED) and stat.S_ISREG(found.st_mode) and found.st_nlink == 0:
                unlinked.append(link.removesuffix(_DELETED))
    lost = any(path + suffix in unlinked for path in seen_as for suffix in ("-wal", "-shm"))
    return holds, lost


def _may_hold(pid: int, owner: int) -> bool:
    """Whether an unreadable process is alive, runs as the file's owner and could open stores."""
    try:
        status = Path(f"/proc/{pid}/status").read_text("utf-8", "replace")
    except (FileNotFoundError, ProcessLookupError):
        return False
    fields = dict(line.split(":", 1) for line in status.splitlines() if ":" in line)
    alive = "VmSize" in fields and not fields.get("State", "").strip().startswith(("Z", "X"))
    users = {int(number) for number in fields.get("Uid", "").split()}
    return alive and owner in users and may_open_stores(pid)


def from_psutil(database: Path) -> Holders:
    """As `find_holders` without `/proc`: open files by path, which cannot show deleted sidecars."""
    path = os.fspath(database)
    owner = database.stat().st_uid
    wanted = {os.path.realpath(path + suffix) for suffix in ("", *SIDECARS)}
    found: list[Holder] = []
    uninspected = 0
    for process in psutil.process_iter():
        if process.pid in _ours():
            continue
        try:
            if any(os.path.realpath(opened.path) in wanted for opened in process.open_files()):
                found.append(Holder(process.pid, command_name(process.pid)))
        except psutil.AccessDenied:
            if _runs_as(process, owner):
                found.append(Holder(process.pid, f"{command_name(process.pid)}, not readable"))
            else:
                uninspected += 1
        except psutil.NoSuchProcess:
            continue
    return Holders(tuple(sorted(found, key=lambda holder: holder.pid)), uninspected)


def _runs_as(process: psutil.Process, owner: int) -> bool:
    try:
        return owner in process.uids() and may_open_stores(process.pid)
    except psutil.Error:
        return True
