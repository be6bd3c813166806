"""Databases that a restore finds in its way: in every state of journal and sidecars that a dead process leaves."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Callable
from pathlib import Path

from hermes_dbtools.backups import taking
from hermes_dbtools.home import Home
from tests.live_writers import crashed, written
from tests.repairs import NOW, digests, new_home
from tests.shapes.make import execute

TITLED = "UPDATE sessions SET title = 'renamed ' || rowid"
MORE = """
    WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 400)
    INSERT INTO messages (session_id, role, content, timestamp)
    SELECT (SELECT min(id) FROM sessions), 'user', 'more words ' || i || hex(zeroblob(200)), 1780000000 + i FROM n
"""


def closed(path: Path) -> None:
    """Nothing lies beside it."""
    written(path, MORE, TITLED)


def with_wal(path: Path) -> None:
    """Its last rows lie in a `-wal`, as after a crash: applied to another file, that would ruin it."""
    crashed(path, MORE, TITLED)


def with_wal_alone(path: Path) -> None:
    """The same without the `-shm`."""
    with_wal(path)
    path.with_name(path.name + "-shm").unlink()


def with_hot_journal(path: Path) -> None:
    """A transaction that a crash broke off is to be rolled back."""
    written(path, MORE, TITLED, "PRAGMA journal_mode=DELETE")
    crashed(path, "PRAGMA cache_size=1", "BEGIN", "DELETE FROM messages", "UPDATE sessions SET title = NULL")


def with_empty_sidecars(path: Path) -> None:
    """What a kill after a checkpoint leaves."""
    written(path, MORE, TITLED)
    for suffix in ("-wal", "-journal"):
        path.with_name(path.name + suffix).touch()


OLD: dict[str, Callable[[Path], None]] = {
    made.__name__: made for made in (closed, with_wal, with_wal_alone, with_hot_journal, with_empty_sidecars)
}


def read_in_place(path: Path, folder: Path) -> dict[str, str]:
    """Open a copy of the file with all that lies beside it, as the next process would; check it whole, digest its rows.

    The same bytes are looked at once.
    """
    beside = [path.with_name(path.name + suffix) for suffix in ("", "-wal", "-journal")]
    found = {one.name.removeprefix(path.name): one.read_bytes() for one in beside if one.exists()}
    key = tuple((suffix, hashlib.sha256(content).digest()) for suffix, content in found.items())
    if key not in _LOOKED_AT:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        copy = folder / "state.db"
        for suffix, content in found.items():
            (folder / f"state.db{suffix}").write_bytes(content)
        answer = execute(copy, "PRAGMA integrity_check")
        assert answer == [("ok",)], answer
        _LOOKED_AT[key] = digests(copy)
    return _LOOKED_AT[key]


_LOOKED_AT: dict[tuple[tuple[str, bytes], ...], dict[str, str]] = {}


def backed_up(folder: Path, shape: str = "22") -> tuple[Home, Path]:
    """A home, and a backup of it as it is made."""
    home = new_home(folder, shape)
    done = taking.back_up(home, taking.BackupOptions(now=NOW))
    return home, Path(done.path)
