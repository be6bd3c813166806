"""Look at the media files of a home: is one there, and where is another copy; never changes a file.

A file is opened only to compare its digest with that of a missing one. Names are judged as upstream judges
them: a held file must lie at `<native-inputs>/<folder>/<name>`, spelt with the real path, and be a regular
file.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from pathlib import Path, PurePosixPath

from .file_digests import file_digest
from .home import Home
from .media_references import SHA256, Root

HOME_MARKS = (
    "cache",
    "document_cache",
    "image_cache",
    "composer-pastes",
    "sessions",
    "logs",
    "config.yaml",
)
"""What a home has beside `state.db`. Without any of it the file stands alone, as a copy or a fixture does."""

CACHES = (
    "cache/images",
    "cache/audio",
    "cache/videos",
    "cache/documents",
    "cache/screenshots",
    "image_cache",
    "audio_cache",
    "video_cache",
    "document_cache",
    "browser_screenshots",
    "images",
)
"""Folders of a home that upstream empties by age, or whose files nothing in the store keeps."""

DEEPEST = 6

NEVER_THERE = frozenset({errno.ELOOP, errno.ENAMETOOLONG, errno.EINVAL, errno.EILSEQ})


class State(Enum):
    """What stands at the place of a reference."""

    FINE = "fine"
    MISSING = "missing"
    NOT_REGULAR = "not a regular file"
    OUTSIDE = "outside its folder"


@dataclass(frozen=True, slots=True)
class Wanted:
    """The digest of a missing file, and its size in bytes where that is known."""

    sha256: str
    size: int | None


@dataclass(frozen=True, slots=True)
class Copy:
    """A regular file with a wanted digest. `size` is bytes."""

    path: str
    size: int


@dataclass(frozen=True, slots=True)
class Folder:
    """One media folder. `place` is how texts spell it; `present` says that upstream can use it."""

    place: str
    root: Root
    present: bool


@dataclass(frozen=True, slots=True)
class MediaFolders:
    """The media folders of one home. `native_inputs` is the real path, as upstream spells held files."""

    native_inputs: Folder
    transcript_media: Folder
    all: tuple[Folder, ...]

    def held(self, path: str) -> State:
        """What stands at the path of an admission's file. Raises OSError where that cannot be seen."""
        if "//" in path or "/./" in path:
            path = str(PurePosixPath(path))
        folder, name = split(path)
        parent, digest = split(folder)
        if parent != self.native_inputs.place or {name, digest} & {"", ".", ".."}:
            return State.OUTSIDE
        mode = _mode(folder)
        if mode is not None and not stat.S_ISDIR(mode):
            return State.OUTSIDE
        return state_of(path)

    def owner(self, path: str) -> Folder | None:
        """The folder that a path in a text lies in; None where it is none of ours or leaves it again."""
        if "/../" in path or path.endswith("/.."):
            return None
        return next((folder for folder in self.all if path.startswith(folder.place + "/")), None)


def folders_of(home: Home) -> MediaFolders | None:
    """The media folders of a home; None where the database does not stand in one."""
    if not any(os.path.lexists(home.root / mark) for mark in HOME_MARKS):
        return None
    native = _folder(f"{os.path.realpath(home.documents_dir)}/native-inputs", Root.NATIVE_INPUTS)
    transcript = _folder(str(home.transcript_media_dir), Root.TRANSCRIPT_MEDIA)
    owned = [
        native,
        _folder(str(home.native_inputs_dir), Root.NATIVE_INPUTS),
        transcript,
        _folder(str(home.composer_pastes_dir), Root.COMPOSER_PASTES),
        *(_folder(str(folder), Root.COMPOSER_IMAGES) for folder in home.composer_images_dirs),
        *(_folder(str(home.root / cache), Root.SWEPT_CACHE) for cache in CACHES),
    ]
    real = [_folder(os.path.realpath(folder.place), folder.root) for folder in owned]
    return MediaFolders(native, transcript, tuple(dict.fromkeys((*owned, *real))))


def split(path: str) -> tuple[str, str]:
    """Folder and name of a path, as text: it may hold what no file name can."""
    folder, _, name = path.rpartition("/")
    return folder, name


def state_of(path: str) -> State:
    """What stands at a path itself, no link followed at its end. Raises OSError where that cannot be seen."""
    mode = _mode(path)
    if mode is None:
        return State.MISSING
    return State.FINE if stat.S_ISREG(mode) else State.NOT_REGULAR


def is_file(path: str) -> bool:
    """Whether anything but a folder stands at a path, or it cannot be seen; a link counts, broken or not."""
    try:
        mode = _mode(path)
    except OSError:
        return True
    return mode is not None and not stat.S_ISDIR(mode)


def find_copies(folders: MediaFolders, wanted: Iterable[Wanted]) -> Mapping[str, tuple[Copy, ...]]:
    """The regular files below the media folders that have a wanted digest, hard links of one file once.

    Only files of a wanted size are read, and those that are named by the digest or lie in a folder that is.
    What is named by another digest holds other bytes; that and what cannot be listed is passed over.
    """
    digests = {want.sha256 for want in wanted}
    sizes = {want.size for want in wanted if want.size is not None}
    copies: dict[str, list[Copy]] = {}
    seen: set[tuple[int, int]] = set()
    if not digests:
        return {}
    for root in dict.fromkeys(os.path.realpath(folder.place) for folder in folders.all):
        for path, info in _files(root, digests, DEEPEST):
            named = set(path.rsplit("/", 2)[1:]) & digests
            identity = (info.st_dev, info.st_ino)
            if identity in seen or not (info.st_size in sizes or named):
                continue
            seen.add(identity)
            if (digest := _digest(path)) in digests:
                copies.setdefault(digest, []).append(Copy(path, info.st_size))
    return {digest: tuple(sorted(found, key=lambda copy: copy.path)) for digest, found in copies.items()}


def _folder(place: str, root: Root) -> Folder:
    # The store of transcripts follows no link on the last two steps; the other folders may be links.
    path = Path(place)
    linked = root is Root.TRANSCRIPT_MEDIA and (path.is_symlink() or path.parent.is_symlink())
    return Folder(place, root, path.is_dir() and not linked)


def _mode(path: str) -> int | None:
    try:
        return os.lstat(path).st_mode
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return None
    except OSError as error:
        if error.errno in NEVER_THERE:
            return None
        raise


def _files(folder: str, digests: set[str], depth: int) -> Iterator[tuple[str, os.stat_result]]:
    try:
        with os.scandir(folder) as listing:
            kept = [entry for entry in listing if entry.name in digests or not SHA256.fullmatch(entry.name)]
    except OSError:
        return
    for entry in sorted(kept, key=lambda entry: entry.name):
        if entry.is_dir(follow_symlinks=False):
            if depth:
                yield from _files(entry.path, digests, depth - 1)
        elif entry.is_file(follow_symlinks=False):
            try:
                yield entry.path, entry.stat(follow_symlinks=False)
            except FileNotFoundError:
                continue


def _digest(path: str) -> str:
    """The digest of a regular file, or '' where this user may not read it as one."""
    try:
        return file_digest(path)
    except PermissionError:
        return ""
