"""Say which SQLite a process has loaded; reads the program files of the process and nothing of its memory.

Linux only: `/proc/<pid>/maps` names the files, and SQLite keeps its version in the one that it is part of, near the date and
digest of its source. A library of SQLite's own name counts first, then Python's module, then whatever else has it built in.
"""

from __future__ import annotations

import mmap
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from .model import Holder

FIXED = ((3, 44, 6), (3, 50, 7), (3, 51, 3))
"""The first versions without the WAL-reset fault, of each line that got the correction (sqlite.org/wal.html, section 11)."""

FIRST = (3, 7, 0)
"""The first version with the fault: the first that knows WAL."""

_SOURCE = re.compile(rb"20\d\d-\d\d-\d\d \d\d:\d\d:\d\d [0-9a-f]{40,64}")
_VERSION = re.compile(rb"(3\.[2-9]\d\.\d{1,2})\x00")
"""Nothing below 3.20 is looked for: the numbers of Python would be taken for SQLite's."""
_CANDIDATE = re.compile(r"sqlite|python|libpy|node|bun|electron|hermes", re.IGNORECASE)
_NEAR = 65536
"""Bytes between the version and the date of the source, at most, for them to be those of one SQLite."""


@dataclass(frozen=True, slots=True)
class Engine:
    """The SQLite that a process uses; `version` is '' where that could not be told."""

    pid: int
    name: str
    version: str

    @property
    def faulty(self) -> bool:
        """Whether this version has the WAL-reset fault."""
        return bool(self.version) and has_wal_reset_fault(self.version)


def engines(holders: tuple[Holder, ...]) -> tuple[Engine, ...]:
    """The SQLite of each process, in their order."""
    return tuple(Engine(holder.pid, holder.name, sqlite_version(holder.pid)) for holder in holders)


def has_wal_reset_fault(version: str) -> bool:
    """Whether SQLite of this version may lose pages when one process resets the WAL while another checkpoints it."""
    number = tuple(int(part) for part in version.split("."))
    line = next((fixed for fixed in FIXED if fixed[:2] == number[:2]), None)
    return FIRST <= number < (line or FIXED[-1])


def sqlite_version(pid: int, proc: Path = Path("/proc")) -> str:
    """The version of the SQLite that a process has loaded, '' where it cannot be told."""
    for path in _mapped(proc / str(pid)):
        try:
            found = path.stat()
            version = _version_in(str(path), found.st_ino, found.st_mtime_ns)
        except OSError:
            continue
        if version:
            return version
    return ""


def _mapped(folder: Path) -> Iterator[Path]:
    """The program files of a process that may have SQLite in them, the likeliest first, as this process reaches them."""
    try:
        lines = (folder / "maps").read_text("utf-8", "replace").splitlines()
    except OSError:
        return
    names = {line.split(maxsplit=5)[5] for line in lines if line.count("/")}
    wanted = {
        name for name in names if _CANDIDATE.search(Path(name).name) and not name.endswith((".db", "-shm"))
    }
    for name in sorted(wanted, key=lambda name: ("sqlite3.so" not in name, "_sqlite3" not in name, name)):
        yield folder / "root" / name.lstrip("/")


@lru_cache(maxsize=64)
def _version_in(path: str, _inode: int, _mtime_ns: int) -> str:
    with Path(path).open("rb") as file:
        try:
            content = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except ValueError:
            return ""
        with content:
            near = {
                match[1].decode()
                for date in _SOURCE.finditer(content)
                for match in _VERSION.finditer(content, max(date.start() - _NEAR, 0), date.start() + _NEAR)
            }
    return near.pop() if len(near) == 1 else ""
