"""Find the files that repairs, restores and crashes leave beside a database; moves and removes none, and opens no database.

Names are upstream's (`hermes_state.py`): `<db>.malformed-backup-<time>` with sidecars, `<db>.zeroed-<time>-<pid>.bak`, folders
`<db>.retired-wal-<time>`, `state-snapshots/<id>/`, and `<db>.fts_rebuild.lock`, which holds a JSON record while it is taken.
"""

from __future__ import annotations

import json
import os
import re
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from .home import DATABASE_NAME
from .model import FileTrash

Kind = Literal[
    "malformed-backups", "zeroed-copies", "retired-wals", "snapshots", "stale-lock",
    "unfinished-files", "unfinished-restores", "unfinished-backups", "unfinished-repairs",
]  # fmt: skip

SNAPSHOTS = "state-snapshots"
REBUILD_LOCK = ".fts_rebuild.lock"

_COPY = re.compile(r"malformed-backup-\d{8}_\d{6}(?:_\d+)?")
_ZEROED = re.compile(r"zeroed-\d{8}-\d{6}-\d+(?:-\d+)?\.bak")
_RETIRED = re.compile(r"retired-wal-.+")
_SIDECARS = ("", "-wal", "-shm")


@dataclass(frozen=True, slots=True)
class Leftover:
    """One leftover: its files, and when it was made (epoch seconds; a copy keeps the times of what it copies)."""

    kind: Kind
    name: str
    files: tuple[FileTrash, ...]
    made_at: float

    @property
    def size(self) -> int:
        """Bytes of all its files."""
        return sum(file.size for file in self.files)


def leftovers(database: Path) -> tuple[Leftover, ...]:
    """What lies beside a database, by kind, each kind from the oldest to the newest. Raises OSError for its folder."""
    found: list[Leftover] = []
    folder = database.parent
    for name in sorted(one.name for one in folder.iterdir()):
        tail = name.removeprefix(f"{database.name}.")
        if tail == name:
            continue
        if _COPY.fullmatch(tail):
            found += leftovers_of("malformed-backups", name, (folder / (name + end) for end in _SIDECARS))
        elif _ZEROED.fullmatch(tail):
            found += leftovers_of("zeroed-copies", name, (folder / (name + end) for end in _SIDECARS))
        elif _RETIRED.fullmatch(tail):
            found += leftovers_of("retired-wals", name, _below(folder / name))
    if database.name == DATABASE_NAME and (folder / SNAPSHOTS).is_dir():
        for name in sorted(one.name for one in (folder / SNAPSHOTS).iterdir()):
            found += leftovers_of("snapshots", f"{SNAPSHOTS}/{name}", _below(folder / SNAPSHOTS / name))
    return tuple(sorted(found, key=lambda one: (one.kind, one.made_at, one.name)))


def lock_record(database: Path) -> tuple[Leftover, int] | None:
    """The lock of a search rebuild that is still written down, and the pid in it; None where it is free or unreadable."""
    path = database.with_name(database.name + REBUILD_LOCK)
    try:
        record = json.loads(path.read_bytes()[:4096] or b"null")
    except (OSError, ValueError, RecursionError):
        return None
    pid = record.get("pid") if isinstance(record, dict) else None
    if not isinstance(pid, int) or isinstance(pid, bool) or pid <= 0 or record.get("host"):
        return None  # nothing says which process of which host it was
    found = list(leftovers_of("stale-lock", path.name, (path,)))
    return (found[0], pid) if found else None


def leftovers_of(kind: Kind, name: str, paths: Iterable[Path]) -> Iterator[Leftover]:
    """One leftover of those of these paths that are plain files; none where there are none."""
    files, moments = [], []
    for path in paths:
        try:
            found = path.lstat()
        except OSError:
            continue
        if stat.S_ISREG(found.st_mode):
            files.append(FileTrash(os.fspath(path), found.st_size, found.st_mtime_ns))
            moments.append(max(found.st_mtime, found.st_ctime))
    if files:
        yield Leftover(kind, name, tuple(files), max(moments))


def _below(folder: Path) -> Iterator[Path]:
    """The files of a folder and of those in it, in order of name; links are not followed."""
    if folder.is_symlink():
        return
    for root, folders, names in os.walk(folder):
        folders.sort()
        yield from (Path(root) / name for name in sorted(names))
