"""Move files that nothing names any more beside the receipt, after a COMMIT, and back again for an undo; removes none for good.

A file is moved only as the regular file that was planned, by the real name of its folder, and only after the database was asked
once more. What stays, stays with its reason in the receipt.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec

from . import receipts
from .database import FileState, create_private, private_folder
from .file_digests import file_digest
from .model import FileTrash, Receipt, RolledBack
from .shown import reason

FOLDER = "trash"

Named = Callable[[Sequence[FileTrash]], Mapping[str, str]]
"""Says of which files something is left that names them, and what: by path."""


def places(files: Iterable[FileTrash]) -> tuple[FileTrash, ...]:
    """The files with the place beside the receipt that each will have."""
    return tuple(
        msgspec.structs.replace(file, kept=f"{FOLDER}/{number:06d}") for number, file in enumerate(files, 1)
    )


def move_away(folder: Path, state: FileState, receipt: Receipt, named: Named) -> tuple[Receipt, list[str]]:
    """Move every file of a receipt that may go; returns the receipt as it is now, and a line for each failure.

    May be run again after a crash at any place: what is beside the receipt has gone already.
    """
    waiting = [file for file in receipt.trash if not file.left and not (folder / file.kept).exists()]
    if not waiting:
        return receipt, []
    private_folder(folder / FOLDER, state)
    reasons = named(waiting)
    left: dict[str, str] = {}
    failed: list[str] = []
    for file in waiting:
        try:
            stays = reasons.get(file.path) or _move(file, folder, state)
        except OSError as error:
            failed.append(f"{file.path}: {reason(error)}")
            continue
        if stays:
            left[file.kept] = stays
    # A power loss may bring an old name back beside the new one: that loses nothing.
    receipts.sync_folder(folder / FOLDER)
    files = tuple(
        msgspec.structs.replace(file, left=left[file.kept]) if file.kept in left else file
        for file in receipt.trash
    )
    return msgspec.structs.replace(receipt, trash=files), failed


def give_back(folder: Path, state: FileState, receipt: Receipt) -> tuple[Path, ...]:
    """Give every file of a receipt its name back, beside the one in the trash; returns the names given.

    Raises RolledBack where another file has taken a place, or OSError; no name given by this call is left then.
    """
    given: list[Path] = []
    try:
        for file in receipt.trash:
            kept, target = folder / file.kept, Path(file.path)
            if file.left or not kept.exists() or _same(kept, target):
                continue
            if os.path.lexists(target):
                raise RolledBack(  # noqa: TRY301 - the names given are taken away again in one place
                    f"undo of {receipt.id}: {file.path} is taken by another file; nothing was changed; move that away"
                )
            target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            _link(kept, target, state)
            given.append(target)
        receipts.sync_folders(path.parent for path in given)
    except (OSError, RolledBack):
        take_names(given)
        raise
    return tuple(given)


def take_names(paths: Iterable[Path]) -> None:
    """Take away names that `give_back` gave, for an undo that did not come to its COMMIT."""
    for path in paths:
        path.unlink(missing_ok=True)


def empty(folder: Path, receipt: Receipt) -> None:
    """After an undo: forget the second name of each file that has its own back."""
    for file in receipt.trash:
        kept = folder / file.kept
        if not file.left and kept.exists() and os.path.lexists(file.path):
            kept.unlink()


def _move(file: FileTrash, folder: Path, state: FileState) -> str:
    """Move one file; returns why it stays. Raises OSError where it cannot be moved now."""
    path, kept = Path(file.path), folder / file.kept
    with _parent(path) as parent:
        if parent is None:
            return "its folder is gone, or is a link now"
        try:
            found = os.stat(path.name, dir_fd=parent, follow_symlinks=False)
        except FileNotFoundError:
            return "it is gone"
        if not stat.S_ISREG(found.st_mode) or (found.st_size, found.st_mtime_ns) != (
            file.size,
            file.mtime_ns,
        ):
            return "it is no longer the file that was found"
        if file.sha256 and file_digest(path.name, folder=parent) != file.sha256:
            return "it is no longer the file that was found"
        try:
            os.rename(path.name, kept, src_dir_fd=parent)
        except OSError as error:
            if not _other_file_system(error):
                raise
            _copy(path.name, parent, kept, state, found)
            os.unlink(path.name, dir_fd=parent)
    return ""


def _link(kept: Path, target: Path, state: FileState) -> None:
    try:
        os.link(kept, target, follow_symlinks=False)
    except OSError as error:
        if not _other_file_system(error):
            raise
        scratch = target.with_name(f".{target.name}.dbtools")
        scratch.unlink(missing_ok=True)
        with _parent(kept) as parent:
            if parent is None:
                raise
            _copy(kept.name, parent, scratch, state, kept.stat())
        try:
            os.link(scratch, target, follow_symlinks=False)
        finally:
            scratch.unlink(missing_ok=True)


def _copy(name: str, parent: int, target: Path, state: FileState, found: os.stat_result) -> None:
    """Copy a file of an open folder to a new place, synced, with its times and mode; a name only when it is complete."""
    scratch = target.with_name(target.name + receipts.SCRATCH_SUFFIX)
    scratch.unlink(missing_ok=True)
    source = os.open(name, os.O_RDONLY | os.O_NOFOLLOW, dir_fd=parent)
    with os.fdopen(source, "rb") as reading, os.fdopen(create_private(scratch, state), "wb") as writing:
        while block := reading.read(1 << 20):
            writing.write(block)
        writing.flush()
        os.fchmod(writing.fileno(), stat.S_IMODE(found.st_mode))
        os.utime(writing.fileno(), ns=(found.st_atime_ns, found.st_mtime_ns))
        os.fsync(writing.fileno())
    scratch.replace(target)
    receipts.sync_folder(target.parent)


def _same(kept: Path, target: Path) -> bool:
    """Whether a file has its name back already: an undo was cut off between that and its COMMIT."""
    try:
        one, other = kept.lstat(), target.lstat()
    except FileNotFoundError:
        return False
    if (one.st_dev, one.st_ino) == (other.st_dev, other.st_ino):
        return True
    return (
        one.st_dev != other.st_dev
        and stat.S_ISREG(other.st_mode)
        and (one.st_size, one.st_mtime_ns) == (other.st_size, other.st_mtime_ns)
    )


def _other_file_system(error: OSError) -> bool:
    return error.errno in (errno.EXDEV, errno.EPERM, errno.EMLINK)


@contextmanager
def _parent(path: Path) -> Iterator[int | None]:
    """The folder of a path, open; None where it is no folder or a link."""
    handle: int | None = None
    try:
        handle = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError as error:
        if error.errno not in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP):
            raise
    try:
        yield handle
    finally:
        if handle is not None:
            os.close(handle)
