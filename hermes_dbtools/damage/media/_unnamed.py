"""The files of media folders, and which of them nothing names any more; opens, changes and moves none."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ...media_files import MediaFolders
from ...media_names import (
    PASTE,
    TEXT_COLUMNS,
    WORDS,
    Inode,
    folder_of,
    inodes_of,
    name_of,
    named_in,
    paths_in,
)
from ...model import FileTrash
from .._declare import ScanContext
from ._stored import stored_files

FILE = "named_files"
"""The questions are those that are asked again right before a file is moved."""

CHUNK = 200
"""Messages fetched at once; their number never enters the SQL."""

HELD = "another process holds the store and may be about to name such a file again: stop Hermes first"


@dataclass(frozen=True, slots=True)
class MediaFile:
    """A regular file of a media folder. `size` is bytes, `changed` epoch seconds: when its bytes or its name last changed."""

    path: str
    size: int
    mtime_ns: int
    changed: float
    inode: Inode

    @property
    def folder(self) -> str:
        """The media folder that it lies in."""
        return folder_of(self.path)

    def trash(self) -> FileTrash:
        """The move of it, as it is now. Where its name is the digest of its bytes, they must have that digest."""
        digest = "" if self.folder == "composer-pastes" else name_of(self.path)
        return FileTrash(self.path, self.size, self.mtime_ns, digest)


def media_files(context: ScanContext, folders: MediaFolders) -> Iterator[MediaFile]:
    """The files of the folders whose names the shape can hold, by folder and name; links and temporary names are left out."""
    judged = {
        "native-inputs": context.has("session_admissions.payload_json")
        and not Path(folders.native_inputs.place).is_symlink(),
        "transcript_media": context.has("messages.media_content"),
    }
    for stored in stored_files(folders):
        if judged[folder_of(stored.path)] and (file := media_file(stored.path)) is not None:
            yield file
    if context.home is not None:
        yield from _pastes(context.home.composer_pastes_dir)


def media_file(path: str) -> MediaFile | None:
    """The regular file at a path that any document can hold; None for anything else."""
    try:
        path.encode("utf-8")
        found = os.lstat(path)
    except (OSError, ValueError):
        return None
    if not stat.S_ISREG(found.st_mode):
        return None
    changed = max(found.st_mtime, found.st_ctime)
    return MediaFile(path, found.st_size, found.st_mtime_ns, changed, (found.st_dev, found.st_ino))


def unnamed(context: ScanContext, files: Sequence[MediaFile]) -> list[MediaFile]:
    """Those that no message, admission or stored value names and that share their bytes with no held file."""
    if not files:
        return []
    words = sorted({word for file in files for word in WORDS[file.folder]})
    named = named_in(_texts(context, words), {name_of(file.path) for file in files})
    free = [file for file in files if name_of(file.path) not in named]
    held = inodes_of(paths_in(_bytes(context.rows(FILE, "held-lists")))) if free else set()
    return [file for file in free if file.inode not in held]


def _pastes(folder: Path) -> Iterator[MediaFile]:
    if folder.is_symlink():
        return
    try:
        paths = sorted(str(path) for path in folder.iterdir() if path.name.startswith(PASTE))
    except FileNotFoundError:
        return
    for path in paths:
        if (file := media_file(path)) is not None:
            yield file


def _texts(context: ScanContext, words: Iterable[str]) -> Iterator[bytes]:
    columns = tuple(column for column in TEXT_COLUMNS if context.shape.has(f"messages.{column}"))
    ids = context.sweep.run(context).naming_rows
    for first in range(0, len(ids), CHUNK):
        wanted = json.dumps(ids[first : first + CHUNK].tolist())
        yield from _bytes(context.rows(FILE, "marked-texts", {"ids": wanted}, {"columns": columns}))
    for word in words:
        for block in ("admission-texts", "stored-texts"):
            yield from _bytes(context.rows(FILE, block, {"word": word}))


def _bytes(rows: Iterator[tuple[object, ...]]) -> Iterator[bytes]:
    for (value,) in rows:
        if isinstance(value, bytes):
            yield value
