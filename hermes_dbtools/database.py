"""Read a database without a trace, whatever state it is in; re-exports the other ways to open or copy one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

import apsw

from .connections import checkpoint_passive, open_for_repair, open_private
from .copies import Progress, WrittenTooOften, copy_database, copy_snapshot, copy_unmoved, private_copy, quiet
from .file_marks import Moved, sidecar
from .file_state import FileState, examine
from .holders import Holders
from .model import CouldNotLook
from .opening import HotJournal, Reading, look_at_rows, named, opened
from .private_files import create_private, free_bytes, own_like, private_folder, repair_lock
from .shown import shown
from .verification import Verification, verify_copy

__all__ = [
    "FileState",
    "Holders",
    "Progress",
    "Reading",
    "Verification",
    "checkpoint_passive",
    "copy_database",
    "copy_snapshot",
    "copy_unmoved",
    "create_private",
    "examine",
    "free_bytes",
    "look_at_rows",
    "named",
    "open_for_repair",
    "open_private",
    "own_like",
    "private_copy",
    "private_folder",
    "problem_line",
    "quiet",
    "read",
    "repair_lock",
    "sidecar",
    "verify_copy",
]

T = TypeVar("T")

STARTS = 5

_RUNBOOK = "next: hermes-dbtools runbook unreadable-file"
_PROBLEMS = {
    "": ("no problem", "next: hermes-dbtools scan"),
    "missing": ("no such file", "check the path, or set HERMES_HOME"),
    "directory": ("a folder, not a database", "name a state.db or a Hermes home"),
    "not-a-file": ("a FIFO, socket or device, not a database", "name a state.db or a Hermes home"),
    "no-permission": ("may not be read by this user", "run as the user who owns it"),
    "empty": ("0 bytes", _RUNBOOK),
    "zeroes": ("nothing but zero bytes", _RUNBOOK),
    "wrong-header": ("not an SQLite database, or its header was overwritten", _RUNBOOK),
    "truncated": ("shorter than its header says", _RUNBOOK),
}


def read(
    path: Path | str | bytes,
    body: Callable[[Reading], T],
    *,
    pause_writers: bool = False,
    to_copy: bool = False,
) -> T:
    """Run `body` on one unchanging state of the database and return its answer. No byte of its files changes.

    `body` may run up to STARTS times: when the file moved under an immutable read, its answer or exception is
    thrown away and it runs again. So it must have no effect but its answer, and keep nothing of the Reading.
    No other `read` or `examine` of the same file may be made inside it. Beside writers of a rollback journal
    the file is copied; `pause_writers` takes one step for that, which always ends and makes them wait. `to_copy`
    asks for the Reading's `snapshot`.

    Raises CouldNotLook for a missing, locked or damaged file and one written too often.
    """
    for _ in range(STARTS):
        state = examine(path)
        if state.problem:
            raise CouldNotLook(problem_line(state))
        try:
            return _run(state, body, pause_writers=pause_writers, to_copy=to_copy)
        except Moved:
            continue
        except WrittenTooOften:
            break
        except (apsw.CorruptError, apsw.NotADBError) as error:
            raise CouldNotLook(
                f"{shown(state.path)}: {error}; next: hermes-dbtools runbook structural-damage"
            ) from error
    raise CouldNotLook(_too_often_line(state))


def problem_line(state: FileState) -> str:
    """One line that says why a file cannot be opened and what to do next, for a state with a `problem`."""
    text, advice = _PROBLEMS[state.problem]
    if state.problem == "empty" and state.wal_size:
        text += (
            f", and a -wal of {state.wal_size:,} bytes that opening them with SQLite deletes: copy it first"
        )
    return f"{shown(state.path)}: {text}; {advice}"


def _run(state: FileState, body: Callable[[Reading], T], *, pause_writers: bool, to_copy: bool) -> T:
    try:
        with opened(state, pause_writers=pause_writers, to_copy=to_copy) as reading:
            return body(reading)
    except HotJournal:
        with opened(replace(state, hot_journal=True), pause_writers=pause_writers) as reading:
            return body(reading)


def _too_often_line(state: FileState) -> str:
    writers = named(state.holders.processes) or "the program that writes it"
    return (
        f"{shown(state.path)}: written too often to be read; wait for a quiet moment, stop {writers}, "
        "or make it wait with --pause-writers"
    )
