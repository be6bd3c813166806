"""Apply the committed frames of a write-ahead log to a copy of its database; never to the database itself.

SQLite does the same, but only where it can read the first page of the database. Facts: the file format description, section 4.
"""

from __future__ import annotations

import os
import struct
from dataclasses import dataclass
from pathlib import Path

HEADER, FRAME = 32, 24
_LITTLE, _BIG = 0x377F0682, 0x377F0683
_MASK = 0xFFFFFFFF

Sum = tuple[int, int]


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
                if frame[8:16] != head[16:24] or total != struct.unpack(">2I", frame[16:24]) or not number:
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
        salts = head[16:24] if whole else first[8:16]
        if whole:
            at += FRAME + size  # the damaged frame itself
        file.seek(at)
        while len(frame := file.read(FRAME)) == FRAME:
            number, commit = struct.unpack(">2I", frame[:8])
            found += bool(number and commit) and frame[8:16] == salts
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


def checksum(data: bytes, order: str, before: Sum = (0, 0)) -> Sum:
    """The checksum of a log over whole pairs of 32-bit words, `order` being `<` or `>`."""
    one, two = before
    words = struct.unpack(f"{order}{len(data) // 4}I", data)
    for first, second in zip(words[::2], words[1::2], strict=True):
        one = (one + first + two) & _MASK
        two = (two + second + one) & _MASK
    return one, two


def _header(head: bytes) -> tuple[int, str, Sum] | None:
    if len(head) < HEADER:
        return None
    magic, version, size = struct.unpack(">3I", head[:12])
    if magic not in (_LITTLE, _BIG) or version != 3007000 or size & (size - 1) or not 512 <= size <= 65536:
        return None
    order = ">" if magic == _BIG else "<"
    total = checksum(head[:24], order)
    return (size, order, total) if total == struct.unpack(">2I", head[24:32]) else None
