"""Look at a database file before SQLite opens it; never opens it with SQLite and never changes a byte.

It reads the first 100 bytes of the file, and closing a plain descriptor drops all POSIX locks of this process
on that file: `examine` must not be called while this process has an SQLite connection to it.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from .holders import NOBODY, Holders, find_holders, lock_probe
from .model import CouldNotLook, Holder
from .process_names import command_name
from .shown import reason, shown
from .wal_origin import Origin, foreign

Problem = Literal[
    "", "missing", "directory", "not-a-file", "no-permission", "empty", "zeroes", "wrong-header", "truncated"
]

MAGIC = b"SQLite format 3\0"
JOURNAL_MAGIC = bytes.fromhex("d9d505f920a163d7")
HEADER_SIZE = 100
_CHUNK = 1 << 20
_LOOKS = 5
_BETWEEN_LOOKS = 0.05
"""Seconds. Long enough for a commit or a last close to get past the state that looked like damage."""


@dataclass(frozen=True, slots=True)
class FileState:
    """What lies at the path of a database. Sizes are bytes; `wal_size` is None where there is no `-wal`.

    `path` has its links resolved, for SQLite keeps the sidecars beside the real file. `problem` is '' for a
    file that SQLite can open. `hot_journal`: a transaction that died with its process is to be rolled back. `foreign_wal`:
    by what the `-wal` is proved to be of another database, '' where it is not.
    """

    path: Path
    problem: Problem
    size: int = 0
    mode: int = 0
    uid: int = 0
    gid: int = 0
    page_size: int = 0
    page_count: int = 0
    wal_mode: bool = False
    wal_size: int | None = None
    shm: bool = False
    hot_journal: bool = False
    foreign_wal: Origin = ""
    holders: Holders = NOBODY

    @property
    def deleted_sidecar(self) -> bool:
        """Whether a process still has a `-wal` or `-shm` open that was deleted: what it commits is lost."""
        return any(holder.deleted_sidecar for holder in self.holders.processes)

    @property
    def split(self) -> bool:
        """Whether the rows cannot be told from the file and its sidecars as they lie there (HDB003)."""
        return self.hot_journal or self.deleted_sidecar or bool(self.foreign_wal)


@dataclass(frozen=True, slots=True)
class Look:
    """The bytes and sizes of one moment, from which `judge` decides."""

    header: bytes
    size: int
    wal_size: int | None
    journal_size: int
    journal_head: bytes

    @property
    def journal_valid(self) -> bool:
        """Whether the journal is one that SQLite would roll back."""
        return self.journal_head == JOURNAL_MAGIC


def examine(path: Path | str | bytes) -> FileState:
    """What lies at `path`: kind, header, sidecars, holders. Damage is seen twice before it is called so.

    Raises CouldNotLook when even this much cannot be read (an I/O error, a loop of links).
    """
    real = Path(os.path.realpath(os.fsdecode(path)))
    try:
        found = real.stat()
    except (FileNotFoundError, NotADirectoryError):
        return FileState(real, "missing")
    except PermissionError:
        return FileState(real, "no-permission")
    except OSError as error:
        raise _could_not_look(real, error) from None
    state = FileState(real, "", found.st_size, stat.S_IMODE(found.st_mode), found.st_uid, found.st_gid)
    if stat.S_ISDIR(found.st_mode):
        return replace(state, problem="directory")
    if not stat.S_ISREG(found.st_mode):
        return replace(state, problem="not-a-file")
    try:
        return _confirmed(lambda: _examine_file(state))
    except PermissionError:
        return replace(state, problem="no-permission")
    except FileNotFoundError:
        return FileState(real, "missing")
    except OSError as error:
        raise _could_not_look(real, error) from None


def judge(look: Look) -> Problem:
    """Why SQLite cannot open such a file; '' where it can, or where that cannot be told from outside."""
    if look.size == 0:
        return "empty"
    if len(look.header) < HEADER_SIZE:
        return "truncated" if look.header.startswith(MAGIC) else "wrong-header"
    size = page_size(look.header)
    versions, fractions = look.header[18:20], look.header[21:24]
    # SQLite reads a file of a higher version for writing and refuses every write: no message can be saved.
    if not look.header.startswith(MAGIC) or not size or max(versions) > 2 or fractions != b"\x40\x20\x20":
        return "wrong-header"
    pages = header_page_count(look.header)
    explained = bool(look.wal_size) or look.journal_valid  # either may still hold the missing pages
    return "truncated" if pages * size > look.size and not explained else ""


def page_size(header: bytes) -> int:
    """The page size in bytes that the header tells, or 0 where it tells none."""
    told = int.from_bytes(header[16:18], "big")
    size = 65536 if told == 1 else told
    return size if 512 <= size <= 65536 and size & (size - 1) == 0 else 0


def header_page_count(header: bytes) -> int:
    """The number of pages that the header tells, 0 where an old writer left it stale (file format, 1.3.7)."""
    current = header[24:28] == header[92:96]
    return int.from_bytes(header[28:32], "big") if current else 0


def _examine_file(state: FileState) -> FileState:
    name = os.fspath(state.path)
    descriptor = os.open(name, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | getattr(os, "O_NOFOLLOW", 0))
    try:
        look = _look(name, descriptor)
        problem = judge(look)
        if problem == "wrong-header" and not any(look.header) and _all_zeroes(descriptor):
            problem = "zeroes"
        stranger = lock_probe(descriptor)
    finally:
        os.close(descriptor)
    holders = _with_stranger(find_holders(state.path), stranger)
    size = page_size(look.header)
    return replace(
        state,
        problem=problem,
        size=look.size,
        page_size=size,
        page_count=header_page_count(look.header) or (look.size // size if size else 0),
        wal_mode=look.header[19:20] == b"\x02",
        wal_size=look.wal_size,
        shm=_size(name + "-shm") is not None,
        hot_journal=look.journal_valid and not holders.held,
        foreign_wal=foreign(name + "-wal", look.header, size) if look.wal_size and not problem else "",
        holders=holders,
    )


def _look(name: str, descriptor: int) -> Look:
    journal_size = _size(name + "-journal") or 0
    wal_size = _size(name + "-wal")
    header = os.pread(descriptor, HEADER_SIZE, 0)
    size = os.fstat(
        descriptor
    ).st_size  # after the header: a file that grows meanwhile is not taken for cut off
    head = _first_bytes(name + "-journal", len(JOURNAL_MAGIC)) if journal_size else b""
    return Look(header, size, wal_size, journal_size, head)


def _confirmed(look: Callable[[], FileState]) -> FileState:
    """Look until the same is seen twice: a healthy commit or last close has moments that look like damage."""
    seen = look()
    for _ in range(_LOOKS):
        if not _suspicious(seen):
            return seen
        time.sleep(_BETWEEN_LOOKS)
        again = look()
        if _suspicious(again) == _suspicious(seen):
            return again
        seen = again
    return seen


def _suspicious(state: FileState) -> tuple[str | bool, ...]:
    marks = (state.problem, state.deleted_sidecar, state.hot_journal, state.foreign_wal)
    return marks if any(marks) else ()


def _all_zeroes(descriptor: int) -> bool:
    offset = 0
    while chunk := os.pread(descriptor, _CHUNK, offset):
        if any(chunk) if len(chunk) < _CHUNK else chunk.count(0) != _CHUNK:
            return False
        offset += len(chunk)
    return True


def _first_bytes(name: str, count: int) -> bytes:
    flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | getattr(os, "O_NOFOLLOW", 0)
    try:
        descriptor = os.open(name, flags)
    except FileNotFoundError:
        return b""
    try:
        return os.pread(descriptor, count, 0)
    finally:
        os.close(descriptor)


def _size(name: str) -> int | None:
    try:
        return Path(name).stat().st_size
    except FileNotFoundError:
        return None


def _with_stranger(holders: Holders, pid: int | None) -> Holders:
    if pid is None or pid in {holder.pid for holder in holders.processes} or (not pid and holders.held):
        return holders
    if pid:  # it took its lock after the others were looked at, or has just ended
        seen = (*holders.processes, Holder(pid, command_name(pid)))
        return replace(holders, processes=tuple(sorted(seen, key=lambda holder: holder.pid)))
    return replace(holders, processes=(Holder(0, "a process that is not visible from here"),))


def _could_not_look(path: Path, error: OSError) -> CouldNotLook:
    return CouldNotLook(
        f"{shown(path)}: {reason(error)}; check the disk and the path, then run the command again"
    )
