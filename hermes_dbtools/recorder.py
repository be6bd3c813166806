"""Record what a transaction changes as SQLite changesets and write them to an undo file; changes no row itself.

The recorder of SQLite keeps its changes in memory (200,000 deleted messages: 340 MB, measured), so it is emptied into the
file by batches. The file is a header, then batches of an 8-byte big-endian length and a changeset, in the order they
happened; undoing takes them from the last to the first. A thread hashes, writes and syncs one batch while the next is
recorded: of a purge of 750 MB this took a second out of the time under the write lock.
"""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

import apsw

from .model import Refused, SchemaChange

MAGIC = b"hermes-dbtools undo 1\n"
BATCH_ROWS = 20_000
BATCH_BYTES = 32 * 1024 * 1024


@dataclass(slots=True)
class Changes:
    """Rows changed, by table: by statements of the plan, and by foreign key actions or triggers; and indexes and triggers."""

    direct: Counter[str] = field(default_factory=Counter)
    indirect: Counter[tuple[str, str]] = field(default_factory=Counter)
    schema: list[SchemaChange] = field(default_factory=list)

    @property
    def tables(self) -> frozenset[str]:
        """Every table of which a row changed."""
        return frozenset(self.direct) | frozenset(table for table, _operation in self.indirect)


class Recorder:
    """Records the changes of some tables of one connection into one undo file. State: the open recorder and the file."""

    def __init__(self, connection: apsw.Connection, tables: Iterable[str], undo: BinaryIO) -> None:
        """Begin to record. `undo` is an empty file open for writing; it is not closed here."""
        self._connection = connection
        self._tables = tuple(tables)
        self._undo = _UndoFile(undo)
        self.changes = Changes()
        self._undo.write(MAGIC)
        self._session = self._attach()
        self._others = False

    def note(self, table: str, direct: int, total: int) -> None:
        """Count what one statement changed in its table; `total` includes triggers and foreign key actions."""
        self.changes.direct[table] += direct
        self._others = self._others or total != direct

    def batch_full(self) -> bool:
        """Whether the recorder holds as much as it should keep in memory."""
        return self._session.memory_used >= BATCH_BYTES

    def flush(self) -> None:
        """Write what was recorded since the last flush to the undo file and forget it."""
        if self._session.is_empty:
            return
        # As a stream: one growing block of memory took three times as long, measured with rows of 4 kB.
        parts: list[bytes] = []
        self._session.changeset_stream(lambda part: parts.append(bytes(part)))
        self._session.close()
        if self._others:
            self._count_others(b"".join(parts))
            self._others = False
        size = sum(map(len, parts))
        self._undo.write(size.to_bytes(8, "big"), *parts)
        self._session = self._attach()

    def begin_sync(self) -> None:
        """Flush, and let the disk have all of it while the caller goes on; `finish` waits for that."""
        self.flush()
        self._undo.begin_sync()

    def finish(self) -> str:
        """Stop recording, sync the undo file and return its SHA-256."""
        self.flush()
        self._session.close()
        return self._undo.finish()

    def close(self) -> None:
        """Stop recording without writing anything more."""
        self._session.close()
        self._undo.stop()

    def _attach(self) -> apsw.Session:
        session = apsw.Session(self._connection, "main")
        for table in self._tables:
            session.attach(table)
        return session

    def _count_others(self, changeset: bytes) -> None:
        for change in apsw.Changeset.iter(changeset):
            if change.indirect:
                self.changes.indirect[(change.name, change.op)] += 1


class _UndoFile:
    """Writes what it is given to a file, in order, in a thread of its own. State: the one batch on its way, the digest."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._digest = hashlib.sha256()
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="undo-file")
        self._on_its_way: Future[None] | None = None

    def write(self, *parts: bytes) -> None:
        """Hand a batch over as soon as the one before is written. Raises the OSError of that one."""
        self._wait()
        self._on_its_way = self._thread.submit(self._write, parts)

    def begin_sync(self) -> None:
        """Sync what was written, in the thread. Raises the OSError of the last batch."""
        self._wait()
        self._on_its_way = self._thread.submit(self._sync)

    def finish(self) -> str:
        """Wait until all is on the disk; the SHA-256 of the file. Raises the OSError of the last batch."""
        self._wait()
        self._sync()
        return self._digest.hexdigest()

    def stop(self) -> None:
        """End the thread; what is on its way is waited for, and nobody asks how it went."""
        self._thread.shutdown()

    def _wait(self) -> None:
        batch, self._on_its_way = self._on_its_way, None
        if batch is not None:
            batch.result()

    def _write(self, parts: tuple[bytes, ...]) -> None:
        data = b"".join(parts)
        self._file.write(data)
        self._digest.update(data)

    def _sync(self) -> None:
        self._file.flush()
        os.fsync(self._file.fileno())


def count(changeset: bytes) -> int:
    """How many rows a changeset changes."""
    return sum(1 for _change in apsw.Changeset.iter(changeset))


def batches_backwards(path: Path, sha256: str) -> Iterator[bytes]:
    """The changesets of an undo file from the last to the first. Raises Refused when the file is not what was written."""
    digest = hashlib.sha256()
    places: list[tuple[int, int]] = []
    with path.open("rb") as file:
        for block in iter(lambda: file.read(1 << 20), b""):
            digest.update(block)
        if digest.hexdigest() != sha256:
            raise Refused(
                f"{path}: the undo file is not the one that was written; restore the backup instead"
            )
        file.seek(len(MAGIC))
        while length := file.read(8):
            size = int.from_bytes(length, "big")
            places.append((file.tell(), size))
            file.seek(size, os.SEEK_CUR)
        for place, size in reversed(places):
            file.seek(place)
            yield file.read(size)
