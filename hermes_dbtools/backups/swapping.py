"""Put a whole new file in the place of a database that nobody holds; a crash leaves the old one whole, or the new one.

SQLite applies whatever `-wal` or `-journal` it finds beside a file: nothing ties the two together. So these must be gone before
the new file has the name, and the old file must be whole without them before they go:

1. where they hold anything, a copy of the old file with them folded in takes the old file's place. They stay beside it for
   a moment, and applying them to it once more gives the same bytes;
2. they are removed, and that is synced;
3. the new file takes the place by one rename, and that is synced.

SQLite's exclusive lock is held on each of these files meanwhile: whoever opens one waits, and who got hold of the old one is
seen afterwards; then the old file goes back.
"""

from __future__ import annotations

import os
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from .. import receipts
from ..database import FileState, named
from ..file_marks import sidecar
from ..file_state import JOURNAL_MAGIC
from ..holders import find_holders
from ..model import Refused
from ..shown import shown
from . import folding
from .whole_files import NO_LINKS, alone, copy_open, inode, like, link, refuse_holders, remove, rename

NEW = ".restore-new"
OLD = ".restore-old"
STEP = ".restore-step"
FIRST = ".restore-first"


@dataclass(frozen=True, slots=True)
class Swap:
    """The database, the new file beside it, and where the old one is to be kept as it was, its sidecars too."""

    state: FileState
    new: Path
    kept: Path

    @property
    def target(self) -> Path:
        """The real path of the database."""
        return self.state.path

    @property
    def old(self) -> Path:
        """The old file with its sidecars folded in, until the new one is in its place."""
        return self.target.with_name(self.target.name + OLD)

    @property
    def step(self) -> Path:
        """The second name of that file, under which it takes the old one's place."""
        return self.target.with_name(self.target.name + STEP)

    @property
    def first(self) -> Path:
        """A second name of the old file itself, until the new one is in its place."""
        return self.target.with_name(self.target.name + FIRST)

    def clear(self) -> None:
        """Remove what only lies there meanwhile, or since a crash."""
        for path in (self.new, self.old, self.step, self.first):
            folding.remove_with_sidecars(path)


def swap(one: Swap) -> None:
    """Put the new file in place of the old one.

    Raises Refused when somebody holds the old file, and OSError or apsw errors; the database is then what it was.
    """
    new, spare = inode(one.new), True
    try:
        with ExitStack() as locks:
            descriptor = locks.enter_context(alone(one.target))
            locks.enter_context(alone(one.new))
            refuse_holders(one.target)
            keep(one, descriptor)
            link(one.target, one.first)
            content = has_content(one.target)
            if folded := content and fold_old(one, descriptor):
                locks.enter_context(alone(one.old))
                link(one.old, one.step)
                rename(one.step if one.step.exists() else one.old, one.target)
                receipts.sync_folder(one.target.parent)
            # What SQLite cannot fold in lies only beside the kept file from here on.
            spare = folded or not content
            remove_sidecars(one.target)
            rename(one.new, one.target)
            receipts.sync_folder(one.target.parent)
            give_back_if_held(one)
    finally:
        one.clear()
        if spare and inode(one.target) != new:
            folding.remove_with_sidecars(one.kept)
    one.kept.chmod(0o600)


def put(one: Swap) -> None:
    """Put the new file where no database is; stale sidecars are kept and removed first. Raises Refused when one has come."""
    keep_sidecars(one)
    remove_sidecars(one.target)
    try:
        os.link(one.new, one.target)
    except FileExistsError:
        raise Refused(f"{shown(one.target)}: is there now; run the command again") from None
    except OSError as error:
        if error.errno not in NO_LINKS:
            raise
        rename(one.new, one.target)
    one.new.unlink(missing_ok=True)
    receipts.sync_folder(one.target.parent)


def has_content(target: Path) -> bool:
    """Whether something that SQLite would apply lies beside the file."""
    wal, journal = sidecar(target, "-wal"), sidecar(target, "-journal")
    if wal.exists() and wal.stat().st_size:
        return True
    if not journal.exists():
        return False
    with journal.open("rb") as file:
        return file.read(len(JOURNAL_MAGIC)) == JOURNAL_MAGIC


def keep(one: Swap, descriptor: int) -> None:
    """Keep the old file and its sidecars as they are: a second name where the file system has that, else a copy."""
    try:
        os.link(one.target, one.kept)
    except OSError as error:
        if error.errno not in NO_LINKS:
            raise
        copy_open(descriptor, one.kept, one.state)
    keep_sidecars(one)


def keep_sidecars(one: Swap) -> None:
    """Copy what lies in the sidecars next to the file that is kept."""
    for suffix in ("-wal", "-journal"):
        path = sidecar(one.target, suffix)
        if path.exists() and path.stat().st_size:
            descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
            try:
                copy_open(descriptor, sidecar(one.kept, suffix), one.state)
            finally:
                os.close(descriptor)
    receipts.sync_folder(one.kept.parent)


def fold_old(one: Swap, descriptor: int) -> bool:
    """Make the old file with its sidecars folded in. False where SQLite makes no database of them, in whatever place."""
    copy_open(descriptor, one.old, one.state)
    for suffix in ("-wal", "-journal"):
        if sidecar(one.kept, suffix).exists():
            kept = os.open(sidecar(one.kept, suffix), os.O_RDONLY | os.O_CLOEXEC)
            try:
                copy_open(kept, sidecar(one.old, suffix), one.state)
            finally:
                os.close(kept)
    if one.state.problem or not folding.fold(one.old):
        folding.remove_with_sidecars(one.old)
        return False
    like(one.old, one.state)
    return True


def remove_sidecars(target: Path) -> None:
    """Remove what lies beside the file and may be applied to it, and sync that."""
    for suffix in folding.SIDECARS:
        remove(sidecar(target, suffix))
    receipts.sync_folder(target.parent)


def give_back_if_held(one: Swap) -> None:
    """Put back the file that somebody got hold of: it was locked all the time, so nothing was read or written yet."""
    held = [(path, find_holders(path)) for path in (one.old, one.first) if path.exists()]
    holders = next((found for _path, found in held if found.held), None)
    if holders is None:
        return
    if one.old.exists():
        rename(one.old, one.target)
        receipts.sync_folder(one.target.parent)
    if any(path == one.first and found.held for path, found in held):
        # Beside the folded file its own sidecars may lie, beside the first one they must.
        give_sidecars_back(one)
        rename(one.first, one.target)
        receipts.sync_folder(one.target.parent)
    raise Refused(
        f"{shown(one.target)} was opened by {named(holders.processes)} meanwhile; nothing was changed; "
        "stop it, then run the command again"
    )


def give_sidecars_back(one: Swap) -> None:
    """Put the sidecars of the old file beside it again, each in one step."""
    for suffix in ("-wal", "-journal"):
        if sidecar(one.kept, suffix).exists():
            descriptor = os.open(sidecar(one.kept, suffix), os.O_RDONLY | os.O_CLOEXEC)
            try:
                copy_open(descriptor, sidecar(one.first, suffix), one.state)
            finally:
                os.close(descriptor)
            like(sidecar(one.first, suffix), one.state)
            rename(sidecar(one.first, suffix), sidecar(one.target, suffix))
    receipts.sync_folder(one.target.parent)
