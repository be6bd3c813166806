"""Find what commands of this tool that were killed left in a home; removes only the folder of a repair that had not begun.

What a running command writes is never among it: its process, or the lock that it holds, tells. Where neither can be seen (other
hosts share the file system, or the system does not list locks) a file counts once it is a day old.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePath

from . import partials
from .holders import SIDECARS, lock_owners
from .home import Home
from .leftovers import Kind, Leftover, leftovers_of
from .our_files import BACKUPS, PLAN, RECEIPT, RECEIPT_ID, RESTORES, SCRATCH_SUFFIX, UNFINISHED_BACKUP
from .private_files import LOCK_SUFFIX
from .processes import Processes, processes_of
from .sizes import path_text

GRACE_SECONDS = 24 * 3600
"""How old a file must be where nothing else tells that nobody writes it any more."""

_WRITTEN_FIRST = frozenset((PLAN, PLAN + SCRATCH_SUFFIX, RECEIPT + SCRATCH_SUFFIX))
"""All that the folder of a repair may hold before its receipt is written."""
_LOCKS_LISTED = Path("/proc/locks")


@dataclass(frozen=True, slots=True)
class _Look:
    """A home, how far its processes are believed, and the moment (epoch seconds)."""

    home: Home
    processes: Processes
    now: float

    def unlocked(self, *locks: Path) -> Callable[[Leftover], bool]:
        """A test of what was written under these locks: whether whoever wrote it is gone."""
        seen = not self.processes.doubt and _LOCKS_LISTED.is_file()
        taken = any(lock_owners(lock) for lock in locks if lock.exists())
        return lambda one: not taken and (seen or one.made_at <= self.now - GRACE_SECONDS)


def unfinished(home: Home, now: float) -> tuple[Leftover, ...]:
    """What killed commands left in a home, by kind and name. Raises OSError for its folders."""
    look = _Look(home, processes_of(home.database, ()), now)
    found = (*_files(look), *_restores(look), *_backups(look), *_repairs(look))
    return tuple(sorted(found, key=lambda one: (one.kind, one.made_at, one.name)))


def remove_begun(home: Home) -> None:
    """Remove folders of repairs that were killed before they had a receipt; the caller holds the repair lock of its database."""
    if _repair_runs(home):
        return
    for folder in begun(home):
        with contextlib.suppress(OSError):  # one that must stay says so in the next scan
            for path in folder.iterdir():
                path.unlink()
            folder.rmdir()


def _files(look: _Look) -> Iterator[Leftover]:
    for folder in (look.home.root, look.home.dbtools_dir):
        if folder.is_dir():
            for path in partials.abandoned(folder, look.processes):
                yield from leftovers_of("unfinished-files", path.name, (path,))


def _restores(look: _Look) -> Iterator[Leftover]:
    database = look.home.database
    folder = look.home.dbtools_dir / BACKUPS
    gone = look.unlocked(database.with_name(database.name + LOCK_SUFFIX), folder)
    for tail in RESTORES:
        path = database.with_name(database.name + tail)
        yield from _those(gone, "unfinished-restores", path.name, [path, *_beside(path)], but=database)


def _backups(look: _Look) -> Iterator[Leftover]:
    folder = look.home.dbtools_dir / BACKUPS
    path = folder / UNFINISHED_BACKUP
    name = f"{look.home.dbtools_dir.name}/{BACKUPS}/{path.name}"
    yield from _those(look.unlocked(folder), "unfinished-backups", name, [path, *_beside(path)])


def _repairs(look: _Look) -> Iterator[Leftover]:
    root = look.home.dbtools_dir
    if not root.is_dir() or _repair_runs(look.home):
        return
    gone = look.unlocked()
    waiting = [root / one for one in _pending(look.home)]
    for folder in (*begun(look.home), *waiting):
        paths = sorted(path for path in folder.iterdir() if path.is_file())
        yield from _those(gone, "unfinished-repairs", f"{root.name}/{folder.name}", paths)


def _those(
    gone: Callable[[Leftover], bool], kind: Kind, name: str, paths: list[Path], but: Path | None = None
) -> Iterator[Leftover]:
    """The leftover of these files, if it is one; without a second name of the database itself."""
    own = [path for path in paths if but is None or not _same(path, but)]
    yield from (one for one in leftovers_of(kind, name, own) if gone(one))


def _beside(path: Path) -> list[Path]:
    return [path.with_name(path.name + suffix) for suffix in SIDECARS]


def _same(path: Path, other: Path) -> bool:
    try:
        return os.path.samefile(path, other)  # noqa: PTH121 - either may be gone
    except OSError:
        return False


def _repair_runs(home: Home) -> bool:
    """Whether a repair of any database of the folder runs: they share the folder of receipts."""
    return any(lock_owners(lock) for lock in home.root.glob(f"*{LOCK_SUFFIX}"))


def begun(home: Home) -> Iterator[Path]:
    """Folders of repairs, one that runs included, that have no receipt yet."""
    root = home.dbtools_dir
    for folder in sorted(root.iterdir()) if root.is_dir() else ():
        if RECEIPT_ID.fullmatch(folder.name) and folder.is_dir() and not folder.is_symlink():
            names = {path.name for path in folder.iterdir()}
            if names <= _WRITTEN_FIRST:
                yield folder


def _pending(home: Home) -> Iterator[str]:
    """The ids of receipts of this database whose repair did not come to its end; one that cannot be read is history's to name."""
    name = path_text(home.database.name)
    for folder in sorted(home.dbtools_dir.iterdir()):
        try:
            told = json.loads((folder / RECEIPT).read_bytes())
        except (OSError, ValueError, RecursionError):
            continue
        of_ours = isinstance(told, dict) and PurePath(str(told.get("database"))).name == name
        if of_ours and told.get("status") == "pending":
            yield folder.name
