"""Make the private copy that a salvage works on; reads the source once, as bytes, and never opens it with SQLite."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import apsw

from .. import database
from ..copies import scratch_folder
from ..file_marks import Moved, marks, settled_marks, sidecar
from ..file_state import FileState
from ..model import CouldNotLook
from ..private_files import FILE_MODE
from ..scratch_room import room_for_copy, unwritten
from ..shown import shown
from .header import Header, mend, read_header
from .wal import apply_log, commits_behind, read_log

CHUNK = 1 << 20
SECTOR = 4096
"""Bytes that are given up together where the disk cannot read them."""


@dataclass(frozen=True, slots=True)
class Source:
    """A private copy of a damaged file with its log applied, its header mended, and what was found on the way.

    `log` says what became of a `-wal` or a journal, `log_lost` how many of its transactions lie behind a damaged place.
    `unread_bytes` could not be read from the disk, or are not there of the last page, and are zeroes.
    """

    copy: Path
    state: FileState
    header: Header
    log: str
    log_lost: int
    unread_bytes: int


@contextmanager
def private_source(path: Path, progress: Callable[[str], None]) -> Iterator[Source]:
    """The copy, removed afterwards. Raises CouldNotLook where there is nothing to copy, or it changes all the time."""
    for _ in range(database.STARTS):
        state = database.examine(path)
        if state.problem in ("missing", "directory", "not-a-file", "no-permission"):
            raise CouldNotLook(database.problem_line(state))
        with ExitStack() as stack:
            try:
                with room_for_copy(state.path):
                    folder = stack.enter_context(scratch_folder(state.size + (state.wal_size or 0)))
                    unread = _copy(state, folder, progress)
                    source = _prepared(state, folder / "copy.db", unread)
            except Moved:
                continue
            yield source
            return
    raise CouldNotLook(
        f"{shown(path)}: written all the time; stop {_holders(state)}, then run the command again"
    )


def _copy(state: FileState, folder: Path, progress: Callable[[str], None]) -> int:
    """Copy the file and its sidecars of one moment; the bytes that could not be read. Raises Moved."""
    before = settled_marks(state.path)
    unread = 0
    for suffix in ("", "-wal", "-journal"):
        source = sidecar(state.path, suffix) if suffix else state.path
        target = folder / f"copy.db{suffix}"
        try:
            unread += _copy_file(source, target, lambda share: progress(f"a private copy: {share} %"))
        except FileNotFoundError:
            if not suffix:
                raise Moved from None
    if marks(state.path) != before:
        raise Moved
    return unread


def _copy_file(source: Path, target: Path, copied: Callable[[int], None]) -> int:
    unread = at = 0
    reading = os.open(source, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    try:
        writing = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, FILE_MODE)
        with os.fdopen(writing, "wb") as file:
            size = os.fstat(reading).st_size
            while at < size:
                copied(100 * at // size)
                block, lost = _read(reading, min(CHUNK, size - at), at)
                if not block:
                    break
                file.write(block)
                at += len(block)
                unread += lost
    finally:
        os.close(reading)
    return unread


def _read(descriptor: int, count: int, at: int) -> tuple[bytes, int]:
    """Bytes of the file, and how many of them the disk could not read: those are zeroes."""
    try:
        return os.pread(descriptor, count, at), 0
    except OSError as error:
        if error.errno != errno.EIO:
            raise
    if count > SECTOR:
        parts = [
            _read(descriptor, min(SECTOR, at + count - place), place)
            for place in range(at, at + count, SECTOR)
        ]
        return b"".join(part for part, _lost in parts), sum(lost for _part, lost in parts)
    return bytes(count), count


def _prepared(state: FileState, copy: Path, unread: int) -> Source:
    told = _roll_back(copy)
    log_path = sidecar(copy, "-wal")
    log = read_log(log_path)
    known = read_header(copy) if state.size else None
    lost = commits_behind(log_path, log, known.page_size if known is not None else 0)
    if log is not None and known is not None and not known.derived and known.page_size != log.page_size:
        log, told = None, "the -wal is of a file with other pages and was left out"
        lost = 0
    elif log is not None:
        apply_log(log, log_path, copy)
        told = f"{len(log.frames):,} pages taken from the -wal"
    elif log_path.exists() and log_path.stat().st_size:
        told = "the -wal holds no whole transaction"
    log_path.unlink(missing_ok=True)
    header = read_header(copy, 0 if known is not None and not known.derived else log.page_size if log else 0)
    if header is None:
        raise CouldNotLook(
            f"{shown(state.path)}: nothing in it looks like a page of a database; no row was read"
        )
    unread += -copy.stat().st_size % header.page_size  # the rest of a last page that is cut off
    mend(copy, header)
    return Source(copy, state, header, told, lost, unread)


def _roll_back(copy: Path) -> str:
    """Let SQLite undo, in the copy, what a transaction that died had begun."""
    journal = sidecar(copy, "-journal")
    log = sidecar(copy, "-wal")
    if not journal.exists() or not journal.stat().st_size or (log.exists() and log.stat().st_size):
        journal.unlink(missing_ok=True)
        return ""
    connection = apsw.Connection(str(copy), flags=apsw.SQLITE_OPEN_READWRITE)
    try:
        connection.execute("PRAGMA schema_version").fetchall()
    except apsw.Error as error:  # of a damaged file; what counts is whether the journal went
        if unwritten(error):
            raise
    finally:
        connection.close()
    left = journal.exists() and journal.stat().st_size > 0
    journal.unlink(missing_ok=True)
    return "the journal could not be rolled back" if left else "an unfinished transaction was rolled back"


def _holders(state: FileState) -> str:
    return database.named(state.holders.processes) or "whoever writes it"
