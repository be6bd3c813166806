"""Say in one line that there is no room for a private copy of a database; makes and removes none."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import apsw

from .model import CouldNotLook
from .shown import reason, shown

_UNWRITTEN = (
    apsw.SQLITE_IOERR_WRITE,
    apsw.SQLITE_IOERR_FSYNC,
    apsw.SQLITE_IOERR_DIR_FSYNC,
    apsw.SQLITE_IOERR_TRUNCATE,
)


class NoRoom(CouldNotLook):
    """A private copy could not be made or written; that says nothing of the file."""


@contextmanager
def room_for_copy(source: Path) -> Iterator[None]:
    """Whatever the system says while a private copy of a file is made or written. Raises NoRoom."""
    try:
        yield
    except (OSError, apsw.Error) as error:
        if isinstance(error, apsw.Error) and not unwritten(error):
            raise
        raise NoRoom(
            f"{shown(source)}: cannot be copied{_place()} ({reason(error)}); "
            "set TMPDIR to a folder with more room"
        ) from None


def _place() -> str:
    try:
        return f" to {shown(tempfile.gettempdir())}"
    except OSError:  # it can write to none
        return ""


def unwritten(error: apsw.Error) -> bool:
    """Whether SQLite says that the disk did not take what it wrote, and nothing of the file."""
    return isinstance(error, apsw.FullError) or getattr(error, "extendedresult", 0) in _UNWRITTEN
