"""The folder of backups beside a database: what lies there and what is known of each copy; makes and removes no copy.

`<home>/dbtools/backups/<moment>-<digest>.db` each has a manifest of the same name; a file without one is not of ours.
Backups that repairs made lie in the folders of their receipts and are listed too.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path, PurePath

import apsw
import msgspec

from .. import database, documents, our_files, receipts
from ..database import FileState
from ..home import Home
from ..model import CouldNotLook, Refused, UsageError
from ..shown import reason, shown
from ..sizes import path_text
from ..verification import tables
from .documents import Kept, Manifest

FOLDER = our_files.BACKUPS
MANIFEST = ".json"
LATEST = "latest"
"""The word for the newest verified backup."""


def folder_of(home: Home) -> Path:
    """Where the backups of a home lie, be it there or not."""
    return home.dbtools_dir / FOLDER


@contextmanager
def opened(home: Home, like: FileState) -> Iterator[Path]:
    """The folder, made where it is missing and ours alone as long as the body runs. Raises Refused."""
    database.private_folder(home.dbtools_dir, like)
    folder = database.private_folder(folder_of(home), like)
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        _lock(descriptor, folder)
        _tidy(home, folder)
        yield folder
    finally:
        os.close(descriptor)


def manifests(home: Home) -> tuple[Manifest, ...]:
    """What is known of each copy of the home's database that is there, oldest first. The name of the file tells whose it is."""
    folder = folder_of(home)
    found = [beside for path in _copies(folder) if (beside := manifest_of(path)) is not None]
    name = path_text(home.database.name)
    mine = [one for one in found if PurePath(one.database).name == name and not _in_place(home, folder, one)]
    return tuple(sorted(mine, key=lambda one: (one.created_at, one.name)))


def manifest_of(path: Path) -> Manifest | None:
    """What was written beside a copy, or None where nothing was that can be read."""
    try:
        found = msgspec.json.decode(path.with_suffix(MANIFEST).read_bytes(), type=Manifest)
    except (OSError, msgspec.MsgspecError, ValueError):
        return None
    return found if found.name == path.stem else None


def write_manifest(folder: Path, like: FileState, manifest: Manifest) -> Path:
    """Write what is known of a copy beside it, synced."""
    path = folder / f"{manifest.name}{MANIFEST}"
    try:
        receipts.write_private(path, like, documents.encode(manifest))
    except BaseException:
        path.unlink(missing_ok=True)  # it may have its name and be unsynced
        raise
    return path


def kept(home: Home) -> tuple[Kept, ...]:
    """Every copy of the home's database, oldest first: backups, those of repairs, and what restores took away.

    Raises CouldNotLook when a folder of ours cannot be read.
    """
    try:
        return _kept(home)
    except OSError as error:
        raise CouldNotLook(
            f"{shown(home.dbtools_dir)}: {reason(error)}; run as the user who owns it"
        ) from None


def _kept(home: Home) -> tuple[Kept, ...]:
    folder = folder_of(home)
    found = [_of_manifest(folder / f"{one.name}.db", one) for one in manifests(home)]
    found += [_unknown(path) for path in _copies(folder) if manifest_of(path) is None]
    root = home.dbtools_dir
    for place in sorted(root.iterdir()) if root.is_dir() else ():
        one = of_receipt(place / receipts.BACKUP)
        if one is not None and (
            not one.database or PurePath(one.database).name == path_text(home.database.name)
        ):
            found.append(one)
    return tuple(sorted(found, key=lambda one: (one.created_at, one.name)))


def of_receipt(path: Path) -> Kept | None:
    """The backup of a repair, or None where the file is none."""
    if path.name != receipts.BACKUP or not _regular(path) or not (path.parent / receipts.RECEIPT).exists():
        return None
    try:
        receipt = receipts.read(path.parent)
    except UsageError:
        return _unknown(path, name=path.parent.name, note="its receipt cannot be read")
    sessions, messages, rows, problem = _counted(path)
    return Kept(
        path.parent.name, "repair", path_text(path), receipt.database, receipt.created_at, path.stat().st_size,
        sessions, messages, rows, not problem, problem,
    )  # fmt: skip


def described(path: Path) -> Kept | None:
    """What is known of a copy, wherever it lies; None where nothing lies beside it that tells."""
    manifest = manifest_of(path)
    return of_receipt(path) if manifest is None else _of_manifest(path, manifest)


def choose(home: Home, word: str) -> Path:
    """The copy that an operator names: a file, the beginning of a name in the list, or `latest`.

    Raises CouldNotLook for a file that is not there, UsageError where none or several are named so.
    """
    if os.path.lexists(word) or os.sep in word:
        if not os.path.lexists(word):
            raise CouldNotLook(
                f"{shown(word)}: no such file; hermes-dbtools backup --list shows what there is"
            )
        return Path.cwd() / word
    found = kept(home)
    if word == LATEST:
        good = [one for one in found if one.verified and one.kind in ("backup", "repair")]
        if not good:
            raise UsageError(f"{shown(home.dbtools_dir)}: no verified backup; name a file")
        return Path(good[-1].path)
    named = [one for one in found if one.name.startswith(word)] if word else []
    if len(named) != 1:
        raise UsageError(
            f"{len(named)} backups begin with {shown(word)!r}; hermes-dbtools backup --list shows them, or name a file"
        )
    return Path(named[0].path)


def total(rows: Mapping[str, int]) -> int:
    """All rows of a copy."""
    return sum(rows.values())


def _copies(folder: Path) -> list[Path]:
    return sorted(path for path in folder.glob("*.db") if _regular(path)) if folder.is_dir() else []


def _in_place(home: Home, folder: Path, manifest: Manifest) -> bool:
    """Whether a crash left a second name of the database itself here: that is no copy."""
    try:
        return (folder / f"{manifest.name}.db").samefile(home.database)
    except OSError:
        return False


def _tidy(home: Home, folder: Path) -> None:
    """Remove what a crash left: a manifest without its copy, and a second name of the database itself."""
    for path in folder.glob(f"*{MANIFEST}"):
        copy = path.with_suffix(".db")
        manifest = manifest_of(copy)
        if manifest is None or (copy.exists() and not _in_place(home, folder, manifest)):
            continue
        for one in (path, copy, *(copy.with_name(copy.name + suffix) for suffix in ("-wal", "-journal"))):
            one.unlink(missing_ok=True)


def _of_manifest(path: Path, manifest: Manifest) -> Kept:
    found = path.stat()
    same = (found.st_size, found.st_mtime_ns) == (manifest.size, manifest.modified_ns)
    verified = manifest.kind == "backup" and same
    note = (
        ""
        if verified
        else "was written since"
        if manifest.kind == "backup"
        else "kept as it was, not checked"
    )
    wal = path.with_name(f"{path.name}-wal")
    size = found.st_size + (wal.stat().st_size if wal.exists() else 0)
    rows = manifest.rows
    return Kept(
        manifest.name, manifest.kind, path_text(path), manifest.database, manifest.created_at, size,
        rows.get("sessions"), rows.get("messages"), total(rows) if rows else None, verified, note,
    )  # fmt: skip


def _unknown(path: Path, *, name: str = "", note: str = "nothing lies beside it that tells") -> Kept:
    found = path.stat()
    return Kept(
        name or path.stem,
        "unknown",
        path_text(path),
        "",
        found.st_mtime,
        found.st_size,
        None,
        None,
        None,
        False,
        note,
    )


def _counted(path: Path) -> tuple[int | None, int | None, int | None, str]:
    try:
        connection = database.open_private(path)
    except apsw.Error as error:
        return None, None, None, str(error)
    try:
        problems, _search, rows = tables(connection, search=False)
    finally:
        connection.close()
    return rows.get("sessions"), rows.get("messages"), total(rows), problems[0] if problems else ""


def _regular(path: Path) -> bool:
    return path.is_file() and not path.is_symlink()


def _lock(descriptor: int, folder: Path) -> None:
    if sys.platform == "win32":
        return
    import fcntl

    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise Refused(
            f"{shown(folder)}: another backup or restore is running; wait until it has finished"
        ) from None
    except OSError as error:
        raise Refused(f"{shown(folder)}: cannot be locked ({reason(error)})") from None
