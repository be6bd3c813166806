"""Bytes of the files beside a database: sidecars, copies, this tool's own folder, media, transcripts; opens none of them."""

from __future__ import annotations

import os
import stat
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from .backups.shelf import FOLDER as BACKUPS
from .home import Home
from .media_files import folders_of
from .receipts import BACKUP
from .space_model import FileGroup
from .trash import FOLDER

SIDECARS = ("-wal", "-shm", "-journal")
OWN = (*SIDECARS, ".repair.lock", ".fts_rebuild.lock")
COPY_FOLDERS = ("state-snapshots", "backups")
"""Where upstream keeps its own copies, by name in the home."""
DEEPEST = 12

KEPT = ("native-inputs", "transcript_media", "composer-pastes")
"""Media folders whose files stay as long as something names them; the others are caches, which upstream empties by age."""


@dataclass(slots=True)
class _Sum:
    """Regular files of one group, each inode once."""

    files: int = 0
    bytes: int = 0
    unread: int = 0
    seen: set[tuple[int, int]] = field(default_factory=set)

    def add(self, found: os.stat_result) -> None:
        identity = (found.st_dev, found.st_ino)
        if identity not in self.seen:
            self.seen.add(identity)
            self.files += 1
            self.bytes += found.st_size


def beside(home: Home) -> tuple[FileGroup, ...]:
    """The groups that hold anything, in a fixed order. No link is followed; what cannot be seen is counted as unread."""
    database = Path(os.path.realpath(home.database))
    groups = [_group("sidecars", tail, [database.with_name(database.name + tail)]) for tail in SIDECARS]
    groups += [_group("copies", path.name, [path]) for path in _copies(database)]
    groups += [_group("copies", name, [home.root / name]) for name in COPY_FOLDERS]
    groups += [_group("dbtools", name, paths) for name, paths in _own(home.dbtools_dir)]
    media = dict(_media(home))
    groups += [_group("media", name, [path], set(media.values()) - {path}) for name, path in media.items()]
    groups.append(_group("transcripts", "sessions", [home.sessions_dir]))
    return tuple(group for group in groups if group.files or group.unread)


def _group(group: str, name: str, paths: Iterable[Path], others: Collection[Path] = ()) -> FileGroup:
    """Weigh some files and folders; `others` are groups of their own that may lie in them."""
    total = _Sum()
    for path in paths:
        _weigh(path, total, DEEPEST, others)
    shown = os.fsencode(name).decode("utf-8", "backslashreplace")
    return FileGroup(group, shown, total.files, total.bytes, total.unread)  # type: ignore[arg-type]


def _weigh(path: Path, total: _Sum, depth: int, others: Collection[Path]) -> None:
    if path in others:
        return
    try:
        found = path.lstat()
        if stat.S_ISREG(found.st_mode):
            total.add(found)
        elif stat.S_ISDIR(found.st_mode) and depth:
            for name in sorted(os.listdir(path)):  # noqa: PTH208 - names only
                _weigh(path / name, total, depth - 1, others)
        elif stat.S_ISDIR(found.st_mode):
            total.unread += 1
    except FileNotFoundError:
        return
    except OSError:
        total.unread += 1


def _copies(database: Path) -> Iterator[Path]:
    """What lies beside the database under its name and is no part of it: copies of failed repairs, retired WAL folders."""
    own = {database.name, *(database.name + tail for tail in OWN)}
    try:
        names = sorted(os.listdir(database.parent))  # noqa: PTH208 - names only
    except OSError:
        return
    for name in names:
        if name.startswith(database.name) and name not in own:
            yield database.parent / name


def _own(folder: Path) -> Iterator[tuple[str, list[Path]]]:
    """This tool's folder: backups, files that were moved away, and the rest of its receipts."""
    try:
        receipts = sorted(
            path
            for path in folder.iterdir()
            if path.is_dir() and not path.is_symlink() and path.name != BACKUPS
        )
    except OSError:
        receipts = []
    backups = [folder / BACKUPS, *(path / BACKUP for path in receipts)]
    trash = [path / FOLDER for path in receipts]
    yield "backups", backups
    yield FOLDER, trash
    rest = [path for path in _entries(folder) if path not in (*receipts, *backups)]
    rest += [path for receipt in receipts for path in _entries(receipt) if path not in (*backups, *trash)]
    yield "receipts", rest


def _entries(folder: Path) -> list[Path]:
    try:
        return sorted(folder.iterdir())
    except OSError:
        return []


def _media(home: Home) -> Iterator[tuple[str, Path]]:
    """The media folders of the home itself; those of other programs are not the store's."""
    folders = folders_of(home)
    root = os.path.realpath(home.root)
    for folder in folders.all if folders is not None else ():
        place = os.path.realpath(folder.place)
        if folder.present and place.startswith(root + os.sep):
            yield os.path.relpath(place, root), Path(place)
