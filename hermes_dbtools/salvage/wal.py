"""Apply the committed frames of a write-ahead log to a copy of its database; never to the database itself.

SQLite does the same, but only where it can read the first page of the database. Facts: the file format description, section 4.
"""

from __future__ import annotations

import os
import struct
from dataclasses import dataclass
from pathlib import Path

from ..wal_format import FRAME, FRAME_SALTS, HEADER, ORDERS, SALTS, Sum, checksum


@dataclass(frozen=True, slots=True)
class Log:
    """What a log holds: its page size in bytes, the place of the newest frame of each page, pages of the database after it.

    `end` is where the first frame begins that is not valid, or the file ends.
    """

    page_size: int
    frames: dict[int, int]
    page_count: int
    end: int


def read_log(path: Path) -> Log | None:
    """The committed frames of a log up to the first that is not valid; None where there is no log or it holds none."""
    try:
        with path.open("rb") as file:
            head = file.read(HEADER)
            told = _header(head)
            if told is None:
                return None
            size, order, total = told
            committed: dict[int, int] = {}
            open_frames: dict[int, int] = {}
            pages = 0
            at = HEADER
            while len(frame := file.read(FRAME + size)) == FRAME + size:
                number, commit = struct.unpack(">2I", frame[:8])
                total = checksum(frame[:8], order, total)
                total = checksum(frame[FRAME:], order, total)
                if (
                    frame[FRAME_SALTS] != head[SALTS]
                    or total != struct.unpack(">2I", frame[16:24])
                    or not number
                ):
                    break
                open_frames[number] = at + FRAME
                if commit:
                    committed |= open_frames
                    open_frames = {}
                    pages = commit
                at += FRAME + size
    except FileNotFoundError:
        return None
    return Log(size, committed, pages, at) if pages else None


def commits_behind(path: Path, log: Log | None, page_size: int) -> int:
    """How many transactions end behind the first place of a log that is damaged; `page_size` is that of the database.

    Frames of one generation have the same salts, and only a committed transaction has a mark at its end: SQLite takes nothing
    behind a frame that is not valid, so these are lost. A damaged last frame is none: it may never have been written whole.
    """
    size = log.page_size if log else page_size
    if not size or not path.exists():
        return 0
    found = 0
    with path.open("rb") as file:
        head = file.read(HEADER)
        first = file.read(FRAME)
        at = log.end if log else HEADER
        whole = _header(head) is not None
        salts = head[SALTS] if whole else first[FRAME_SALTS]
        if whole:
            at += FRAME + size  # the damaged frame itself
        file.seek(at)
        while len(frame := file.read(FRAME)) == FRAME:
            number, commit = struct.unpack(">2I", frame[:8])
            found += bool(number and commit) and frame[FRAME_SALTS] == salts
            at += FRAME + size
            file.seek(at)
    return found


def apply_log(log: Log, path: Path, database: Path) -> None:
    """Write the newest committed state of each page into a copy of the database, and give it the size it had then."""
    with path.open("rb") as source, database.open("r+b") as target:
        for number, at in sorted(log.frames.items()):
            if number <= log.page_count:
                target.seek((number - 1) * log.page_size)
                target.write(os.pread(source.fileno(), log.page_size, at))
        target.truncate(log.page_count * log.page_size)


def _header(head: bytes) -> tuple[int, str, Sum] | None:
    if len(head) < HEADER:
        return None
    magic, version, size = struct.unpack(">3I", head[:12])
    order = ORDERS.get(magic)
    if order is None or version != 3007000 or size & (size - 1) or not 512 <= size <= 65536:
        return None
    total = checksum(head[:24], order)
    return (size, order, total) if total == struct.unpack(">2I", head[24:32]) else None
