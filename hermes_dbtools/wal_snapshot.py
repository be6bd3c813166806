"""Copy the state of a WAL database that a read transaction sees, by bytes; takes no lock and never writes to its files.

SQLite's own copy asks for each page by itself and takes twice as long. The bytes of a file that others write are one state,
given a read transaction that lives meanwhile, because of three rules of SQLite (file format, section 4; WAL-mode file format):
a checkpoint writes no frame into the database that a living reader does not see, so every page that it may be writing has a frame
that goes over what the copy caught of it; the log starts anew only once no reader needs a frame of it; and where a reader needs
none, because all were in the database when it began, nobody writes to the database while it lives.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from .holders import in_use
from .wal_format import FRAME, FRAME_SALTS, HEADER, SALTS

_INDEX = 48
"""Bytes of one of the two equal headers of a `-shm`."""


class NotWhole(Exception):
    """The files do not hold the state that the shared memory told of."""


@dataclass(frozen=True, slots=True)
class Files:
    """Descriptors of a database, its `-wal` and its `-shm`. They must outlive every connection of this process to them."""

    database: int
    wal: int
    shm: int


@dataclass(frozen=True, slots=True)
class Mark:
    """How far a `-wal` was written and what that makes of the database: page size in bytes, numbers of frames and pages.

    Without a frame only the database counts, and sizes here may be 0.
    """

    header: bytes
    page_size: int
    frames: int
    pages: int
    salts: bytes


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The state that a read transaction sees, while it lives."""

    files: Files
    mark: Mark


@contextmanager
def opened(database: int, path: Path) -> Iterator[Files | None]:
    """Descriptors of the sidecars beside one of the database; None where they cannot be opened."""
    with ExitStack() as stack:
        found = []
        try:
            for suffix in ("-wal", "-shm"):
                name = path.with_name(path.name + suffix)
                found.append(os.open(name, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK))
                stack.callback(os.close, found[-1])
        except OSError:
            found.clear()
        yield Files(database, *found) if found else None


def mark_of(files: Files) -> Mark | None:
    """The mark as it is now; None while it is being changed, and where no other process keeps the shared memory true.

    With nobody else there, SQLite reads the log itself and does not look at the shared memory.
    """
    if not in_use(files.shm):
        return None
    both = os.pread(files.shm, 2 * _INDEX, 0)
    header = both[:_INDEX]
    if len(both) < 2 * _INDEX or header != both[_INDEX:] or not header[12]:
        return None
    size, frames, pages = struct.unpack("=H2I", header[14:24])
    return Mark(header, (size & 0xFE00) + ((size & 1) << 16), frames, pages, header[32:40])


def finish(snapshot: Snapshot, copied: int, target: BinaryIO) -> None:
    """Make the state out of the first `copied` bytes of the database, which `target` got while the read transaction lived.

    Raises NotWhole where the files do not hold it, and OSError.
    """
    mark, files = snapshot.mark, snapshot.files
    if not mark.frames:
        return
    newest = newest_frames(mark, files.wal)
    size, end = mark.page_size, copied
    for page, place in newest.items():
        target.seek((page - 1) * size)
        target.write(os.pread(files.wal, size, place))
        end = max(end, page * size)
    if os.pread(files.wal, HEADER, 0)[SALTS] != mark.salts:
        # A log that started anew has left all of it in the database, which stays so while the read transaction lives.
        for page in newest:
            target.seek((page - 1) * size)
            target.write(os.pread(files.database, size, (page - 1) * size))
        end = os.fstat(files.database).st_size
    elif not newest:
        raise NotWhole("its log has other frames than its shared memory says")
    if end < mark.pages * size:
        raise NotWhole("it is shorter than its log says")
    target.flush()
    target.truncate(mark.pages * size)


def newest_frames(mark: Mark, wal: int) -> Mapping[int, int]:
    """Where in a log the newest state of each page lies, in bytes; nothing where a frame is of another turn of the log."""
    newest: dict[int, int] = {}
    for number in range(mark.frames):
        place = HEADER + number * (FRAME + mark.page_size)
        head = os.pread(wal, FRAME, place)
        if len(head) < FRAME or head[FRAME_SALTS] != mark.salts:
            return {}
        newest[int.from_bytes(head[:4], "big")] = place + FRAME
    return {page: place for page, place in newest.items() if 1 <= page <= mark.pages}
