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

import contextlib
import errno
import os
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from .. import our_files, receipts
from ..database import FileState, named
from ..file_marks import sidecar
from ..file_state import JOURNAL_MAGIC
from ..holders import find_holders
from ..model import Refused
from ..private_files import NO_LINKS
from ..shown import shown
from . import folding
from .whole_files import alone, copy_open, inode, like, link, refuse_holders, remove, rename

NEW = our_files.RESTORE_NEW
OLD = our_files.RESTORE_OLD
STEP = our_files.RESTORE_STEP
FIRST = our_files.RESTORE_FIRST

KEPT_SIDECARS = ("-wal", "-journal")
"""What may hold something that SQLite would apply."""


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
    new = inode(one.new)
    with ExitStack() as locks:
        locks.callback(one.clear)
        try:
            _exchange(one, locks)
        except BaseException:
            if inode(one.target) != new:
                go_back(one)
            raise
    one.kept.chmod(0o600)


def _exchange(one: Swap, locks: ExitStack) -> None:
    descriptor = locks.enter_context(alone(one.target))
    locks.enter_context(alone(one.new))
    refuse_holders(one.target)
    keep(one, descriptor)
    link(one.target, one.first)
    if has_content(one.target) and fold_old(one, descriptor):
        locks.enter_context(alone(one.old))
        link(one.old, one.step)
        rename(one.step if one.step.exists() else one.old, one.target)
        receipts.sync_folder(one.target.parent)
    # What SQLite cannot fold in lies only beside the kept file from here on.
    remove_sidecars(one.target)
    rename(one.new, one.target)
    receipts.sync_folder(one.target.parent)
    give_back_if_held(one)


def put(one: Swap) -> None:
    """Put the new file where no database is; stale sidecars are kept and removed first.

    Raises Refused when one has come, and OSError; the sidecars are what they were then, unless the new file has the name.
    """
    try:
        keep_sidecars(one)
        remove_sidecars(one.target)
        _name_new(one)
    except BaseException:
        with contextlib.suppress(OSError, Refused):
            give_sidecars_back(one)
        _forget_kept(one)
        raise
    receipts.sync_folder(one.target.parent)


def _name_new(one: Swap) -> None:
    try:
        os.link(one.new, one.target)
    except FileExistsError:
        raise Refused(f"{shown(one.target)}: is there now; run the command again") from None
    except OSError as error:
        if error.errno not in NO_LINKS:
            raise
        rename(one.new, one.target)


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
    for suffix in KEPT_SIDECARS:
        path = sidecar(one.target, suffix)
        if path.exists() and path.stat().st_size:
            _copy_sidecar(path, sidecar(one.kept, suffix), one.state)
    receipts.sync_folder(one.kept.parent)


def fold_old(one: Swap, descriptor: int) -> bool:
    """Make the old file with its sidecars folded in. False where SQLite makes no database of them, in whatever place."""
    copy_open(descriptor, one.old, one.state)
    for suffix in KEPT_SIDECARS:
        if sidecar(one.kept, suffix).exists():
            _copy_sidecar(sidecar(one.kept, suffix), sidecar(one.old, suffix), one.state)
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


def go_back(one: Swap) -> None:
    """Let the old file lie in its place again as it was, and keep no copy of it.

    Where the system does not let it, or somebody got hold of the folded file, that one stays: it holds the same.
    """
    original = not one.first.exists() or inode(one.first) == inode(one.target)
    with contextlib.suppress(OSError, Refused):
        if original or not find_holders(one.target).held:
            give_sidecars_back(one)
            if not original:
                rename(one.first, one.target)
                receipts.sync_folder(one.target.parent)
    _forget_kept(one, folded=not original)


def _forget_kept(one: Swap, *, folded: bool = False) -> None:
    """Remove the kept file, unless its sidecars lie nowhere else."""
    if folded or not any(_only_kept(one, suffix) for suffix in KEPT_SIDECARS):
        folding.remove_with_sidecars(one.kept)


def give_sidecars_back(one: Swap) -> None:
    """Put the sidecars of the old file beside it again, each in one step."""
    for suffix in KEPT_SIDECARS:
        if _only_kept(one, suffix):
            _give_back(one, suffix)
    receipts.sync_folder(one.target.parent)


def _only_kept(one: Swap, suffix: str) -> bool:
    """Whether this sidecar lies beside the file that is kept and no longer beside the database."""
    return sidecar(one.kept, suffix).exists() and not sidecar(one.target, suffix).exists()


def _give_back(one: Swap, suffix: str) -> None:
    kept = sidecar(one.kept, suffix)
    like(kept, one.state)
    try:
        rename(kept, sidecar(one.target, suffix))
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        copy = sidecar(one.first, suffix)
        _copy_sidecar(kept, copy, one.state)
        like(copy, one.state)
        rename(copy, sidecar(one.target, suffix))


def _copy_sidecar(source: Path, target: Path, owner: FileState) -> None:
    descriptor = os.open(source, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    try:
        copy_open(descriptor, target, owner)
    finally:
        os.close(descriptor)
