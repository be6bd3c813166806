"""What every command that copies a store needs: room, a free name, and one line for what the system says."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import apsw

from .. import database, preflight
from ..database import FileState
from ..model import Refused
from ..shown import reason, shown
from . import shelf


def needed(state: FileState) -> int:
    """The bytes that a copy of a database may take."""
    return state.size + (state.wal_size or 0)


def refuse_little_space(folder: Path, size: int) -> None:
    """Raise Refused when a folder's file system has no room for so many bytes."""
    free, wanted = database.free_bytes(folder), size + preflight.SLACK_BYTES
    if free < wanted:
        raise Refused(
            f"{shown(folder)}: {free:,} bytes free, {wanted:,} needed for the copy; nothing was changed; make room"
        )


@contextmanager
def explained(place: Path) -> Iterator[None]:
    """Turn what the system says while files are written into one line."""
    try:
        yield
    except (OSError, apsw.Error) as error:
        raise Refused(f"{shown(place)}: {reason(error)}; nothing was changed") from error


def free_name(folder: Path, now: float, word: str) -> str:
    """A name for a copy that nothing in the folder has. Raises Refused."""
    moment = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(now))
    for attempt in range(1000):
        name = f"{moment}-{word}" + (f"-{attempt}" if attempt else "")
        if not any((folder / f"{name}{tail}").exists() for tail in (".db", shelf.MANIFEST)):
            return name
    raise Refused(f"{shown(folder)}: too many copies of one second")
