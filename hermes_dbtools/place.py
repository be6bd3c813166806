"""Say on what ground a database lies: file system, room, who may reach it, what its holders run; judges and changes nothing."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from pathlib import Path

from .file_state import FileState
from .holder_engines import Engine, engines
from .mounts import mount_of, mounts
from .private_files import free_bytes

GVISOR = ("gvisor", "Sun Jan 10 15:06:54 PST 2016")
"""What gVisor's kernel says of itself: its release, and the build date that it has always given."""


@dataclass(frozen=True, slots=True)
class OwnedFile:
    """A file of the database: its name, user id and permission bits."""

    name: str
    uid: int
    mode: int


@dataclass(frozen=True, slots=True)
class Place:
    """Where a database lies. `free` is bytes that this user may still write, None where that is unknown.

    `reachable`: every folder above lets other users through. `one_kernel`: a sandbox that gives every file system a name of
    its own (gVisor). `engines` are only asked for where two or more processes share a WAL.
    """

    kind: str = ""
    one_kernel: bool = False
    free: int | None = None
    reachable: bool = False
    files: tuple[OwnedFile, ...] = ()
    engines: tuple[Engine, ...] = ()


def place_of(state: FileState) -> Place:
    """What the system says of the place of a file that is there."""
    mount = mount_of(state.path, mounts())
    return Place(
        kind=mount.kind if mount else "",
        one_kernel=_in_gvisor(),
        free=_free(state.path.parent),
        reachable=_reachable(state.path.parent),
        files=_files(state.path),
        engines=engines(state.holders.processes)
        if state.wal_mode and len(state.holders.processes) > 1
        else (),
    )


def _in_gvisor() -> bool:
    if not hasattr(os, "uname"):
        return False
    system = os.uname()
    return GVISOR[0] in system.release.casefold() or GVISOR[1] in system.version


def _free(folder: Path) -> int | None:
    try:
        return free_bytes(folder)
    except OSError:
        return None


def _reachable(folder: Path) -> bool:
    try:
        return all(one.stat().st_mode & stat.S_IXOTH for one in (folder, *folder.parents))
    except OSError:
        return False


def _files(database: Path) -> tuple[OwnedFile, ...]:
    found = []
    for name in (database.name, f"{database.name}-wal", f"{database.name}-shm"):
        try:
            state = database.with_name(name).stat()
        except OSError:
            continue
        found.append(OwnedFile(name, state.st_uid, stat.S_IMODE(state.st_mode)))
    return tuple(found)
