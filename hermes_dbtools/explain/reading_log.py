"""Read a log of any length and say which failures of the store it holds, how often, when and of which sessions.

Keeps kinds, ids and times and no text; memory does not grow with the log.
"""

from __future__ import annotations

import gzip
import os
import stat
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path
from typing import BinaryIO

from ..model import UsageError
from ..shown import reason, shown
from .failures import Failure, Failures, failures
from .log_lines import Entry, begins, entry_of, seconds
from .log_records import told, without_colours

BLOCK = 1024 * 1024
LONGEST = 64 * 1024
"""Bytes of a line that are looked at, and how far above a line its entry may begin."""

MOST_IDS = 100
"""Sessions of one log that are looked up, the first ones; the others are counted."""

TOGETHER = 60.0
"""Seconds for which what follows damage may be a consequence of it."""

BOMS = (b"\xff\xfe", b"\xfe\xff")
GZIP = b"\x1f\x8b"


@dataclass(slots=True)
class Seen:
    """All lines of one kind. Times are as the log has them, '' where it has none."""

    failure: Failure
    count: int = 0
    first: str = ""
    last: str = ""
    follows: str = ""
    statements: dict[str, int] = field(default_factory=dict)
    ids: dict[str, int] = field(default_factory=dict)


@dataclass(slots=True)
class LogReading:
    """What a log holds: kinds in the order in which they first came, and the sessions that their lines name."""

    name: str
    bytes: int = 0
    kinds: dict[str, Seen] = field(default_factory=dict)
    ids: dict[str, int] = field(default_factory=dict)
    more_ids: int = 0
    _primary: tuple[str, float | None] | None = None

    def add(self, entry: Entry) -> None:
        """Count one line."""
        seen = self.kinds.setdefault(entry.failure.kind, Seen(entry.failure))
        seen.count += 1
        if entry.time:
            seen.first = min(seen.first or entry.time, entry.time)
            seen.last = max(seen.last, entry.time)
        if entry.statement:
            seen.statements[entry.statement] = seen.statements.get(entry.statement, 0) + 1
        for one in entry.ids:
            if one in self.ids or len(self.ids) < MOST_IDS:
                self.ids[one] = self.ids.get(one, 0) + 1
                seen.ids[one] = seen.ids.get(one, 0) + 1
            else:
                self.more_ids += 1
        self._connect(seen, entry)

    def begin(self) -> None:
        """Begin another file, whose first lines follow from nothing of the one before."""
        self._primary = None

    def _connect(self, seen: Seen, entry: Entry) -> None:
        moment = seconds(entry.time)
        if entry.failure.primary:
            self._primary = (entry.failure.kind, moment)
        elif entry.failure.secondary and not seen.follows and self._primary is not None and seen.count == 1:
            kind, before = self._primary
            undated = moment is None and before is None
            if undated or (moment is not None and before is not None and 0 <= moment - before <= TOGETHER):
                seen.follows = kind


def read_log(name: str, stdin: BinaryIO | None = None) -> LogReading:
    """Read a log file, or `stdin` where it is given. Raises UsageError for what is no log."""
    return read_logs([name], stdin)


def read_logs(names: Sequence[str], stdin: BinaryIO | None = None) -> LogReading:
    """Read the files of one log, rotated and compressed by gzip or not, or `stdin` where it is given.

    Raises UsageError for what is no log.
    """
    if stdin is not None:
        return _whole(_read(LogReading("stdin"), "stdin", stdin))
    titles = [Path(name).name for name in names]
    more = f" and {len(titles) - 1:,} more" if len(titles) > 1 else ""
    reading = LogReading(titles[0] + more)
    for name, title in zip(names, titles, strict=True):
        try:
            handle = os.open(name, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except (OSError, ValueError) as error:
            raise UsageError(f"{shown(name) or repr(name)}: {reason(error)}") from None
        with os.fdopen(_regular(handle, name), "rb") as file:
            packed = file.peek(2).startswith(GZIP)
            _read(reading, title, gzip.GzipFile(fileobj=file) if packed else file)
    return _whole(reading)


def read_line(line: str) -> LogReading:
    """Read a line that was given as a word."""
    return _read(LogReading("the line"), "the line", BytesIO(line.encode("utf-8", "surrogateescape") + b"\n"))


def _whole(reading: LogReading) -> LogReading:
    """What was read. Raises UsageError where that is nothing."""
    if not reading.bytes:
        raise UsageError(f"{shown(reading.name)}: empty; nothing can be said of it")
    return reading


def _regular(handle: int, name: str) -> int:
    """The handle, of a regular file. Raises UsageError for anything else."""
    mode = os.fstat(handle).st_mode
    if stat.S_ISREG(mode):
        return handle
    os.close(handle)
    if stat.S_ISDIR(mode):
        raise UsageError(f"{shown(name)}: a folder, not a log; name one of its files")
    raise UsageError(f"{shown(name)}: no regular file; give it on standard input: … | hermes-dbtools explain")


def _read(reading: LogReading, title: str, file: BinaryIO | gzip.GzipFile) -> LogReading:
    """Add what one file holds."""
    kinds = failures()
    words = tuple(word.encode() for word in kinds.words)
    owner = b""
    size = 0
    reading.begin()
    try:
        for block in _blocks(file):
            if size == 0:
                _refuse_other_things(title, block)
            size += len(block)
            owner = _look(reading, without_colours(block), words, kinds, owner)
    except (EOFError, zlib.error, gzip.BadGzipFile):
        raise UsageError(
            f"{shown(title)}: compressed, and cut off or damaged; what zcat still reads can be given on standard input"
        ) from None
    except OSError as error:
        raise UsageError(f"{shown(title)}: {reason(error)}") from None
    reading.bytes += size
    return reading


def _blocks(file: BinaryIO | gzip.GzipFile) -> Iterator[bytes]:
    """Whole lines, about a block at a time; a line without an end is cut."""
    while block := file.read(BLOCK):
        yield block if block.endswith(b"\n") else block + file.readline(LONGEST)


def _look(
    reading: LogReading, block: bytes, words: tuple[bytes, ...], kinds: Failures, owner: bytes
) -> bytes:
    """Count what a block holds; returns its last line that begins an entry, which the next block may go on from."""
    seen = 0
    for start in _starts(block.lower(), words):
        end = block.find(b"\n", start)
        end = min(len(block) if end < 0 else end, start + LONGEST)
        line = told(block[start:end])
        owner = line if begins(line) else _line_above(block, start, seen) or owner
        seen = start
        entry = entry_of(line, line.lower(), owner or line, kinds)
        if entry is not None:
            reading.add(entry)
    return _line_above(block, len(block), seen) or owner


def _starts(lower: bytes, words: tuple[bytes, ...]) -> list[int]:
    """Where the lines begin that hold one of the words, in order."""
    starts: set[int] = set()
    for word in words:
        place = lower.find(word)
        while place >= 0:
            starts.add(lower.rfind(b"\n", 0, place) + 1)
            end = lower.find(b"\n", place)
            place = lower.find(word, end) if end >= 0 else -1
    return sorted(starts)


def _line_above(block: bytes, place: int, seen: int) -> bytes:
    """The last line before a place of a block that begins an entry, b'' where none is near or after what was `seen`."""
    end = place
    while end > seen and place - end < LONGEST:
        start = block.rfind(b"\n", 0, end - 1) + 1
        line = told(block[start : min(end, start + LONGEST)])
        if begins(line):
            return line
        end = start
    return b""


def _refuse_other_things(name: str, block: bytes) -> None:
    block = block.lstrip(b"\0")  # a file that was cut to nothing while it was written begins so
    if block.startswith(GZIP):
        raise UsageError(f"{shown(name)}: compressed; zcat it and give it on standard input")
    if block.startswith(BOMS):
        raise UsageError(f"{shown(name)}: UTF-16; convert it to UTF-8 first: iconv -f UTF-16 -t UTF-8")
    if b"\0" in block[:4096]:
        raise UsageError(f"{shown(name)}: holds NUL bytes and is no text; name a log")
