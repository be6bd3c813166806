"""Find out what became of receipts that a crash left pending, and finish their work; changes no row."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable
from pathlib import Path

import apsw

from . import database, files_back, named_files, queries, receipts, trash
from .database import FileState
from .home import Home
from .model import Receipt
from .shape import read_shape
from .unfinished import remove_begun


def mark_of(connection: apsw.Connection) -> Callable[[str], str]:
    """A function that reads what the database itself says of a receipt: `applied`, `undone` or ''."""

    def read(receipt_id: str) -> str:
        key = receipts.MARK_PREFIX + receipt_id
        for (word,) in connection.execute(queries.statement("apply", "marked"), {"key": key}):
            return word.decode("utf-8", "replace") if isinstance(word, bytes) else ""
        return ""

    return read


def settle_pending(
    connection: apsw.Connection, home: Home, state: FileState, current: str = ""
) -> tuple[Receipt, ...]:
    """Give every receipt but the current one the status that the database proves, and finish what it began.

    Committed: its files are put back or moved away; one that cannot be keeps it pending, for the next run.
    Undone: its copies are taken away. Rolled back: its backup and undo file are removed, since they undo nothing.
    """
    return _finish(home, state, mark_of(connection), current, named_files.of_connection(connection))


def settle_home(home: Home, state: FileState) -> tuple[Receipt, ...]:
    """The same, by a read connection: for a run that has nothing to write. The caller holds the repair lock."""
    words = database.read(home.database, lambda reading: _marks(reading, receipts.read_all(home)))
    if words is None:
        return ()
    return _finish(home, state, lambda receipt_id: words.get(receipt_id, ""), "", named_files.of_home(home))


def proven(home: Home) -> tuple[Receipt, ...]:
    """Every receipt with the status that the database proves, oldest first; writes nothing.

    A database with a hot journal proves nothing: its receipts are as they were written. Raises CouldNotLook.
    """
    if not (found := receipts.read_all(home)):
        database.read(
            home.database, lambda reading: read_shape(reading.connection)
        )  # a bad file, or none of Hermes
        return ()
    words = database.read(home.database, lambda reading: _marks(reading, found))
    if words is None:
        return found
    return tuple(receipts.held(receipt, words.__getitem__) for receipt in found)


def give_up(home: Home, folder: Path, state: FileState) -> str:
    """Mark a receipt rolled back and remove what it prepared, unless the database says that it was applied.

    Returns the status that the database proves, `pending` where it proves none.
    """
    receipt = receipts.read(folder)
    words = database.read(home.database, lambda reading: _marks(reading, (receipt,)))
    if words is None:
        return receipt.status
    settled = receipts.settled(receipt, words.__getitem__)
    if settled.status == "rolled-back":
        _write_rolled_back(folder, state, settled)
    return settled.status


def word_of(home: Home, receipt: Receipt) -> str:
    """What the database itself says of a receipt: `applied`, `undone`, or '' where it says nothing. Raises CouldNotLook."""
    words = database.read(home.database, lambda reading: _marks(reading, (receipt,)))
    return "" if words is None else words[receipt.id]


def discard(folder: Path, *, keep_backup: bool = False) -> None:
    """Remove what a receipt that changed nothing had prepared: its undo file and, unless kept, its backup."""
    backup = () if keep_backup else (receipts.BACKUP,)
    for name in (*backup, receipts.UNDO, receipts.VIOLATIONS, receipts.TOUCHED):
        (folder / name).unlink(missing_ok=True)
        (folder / f"{name}{receipts.SCRATCH_SUFFIX}").unlink(missing_ok=True)


def _marks(reading: database.Reading, found: Iterable[Receipt]) -> dict[str, str] | None:
    if not reading.rows_trusted:
        return None
    read_mark = mark_of(reading.connection)
    return {receipt.id: read_mark(receipt.id) for receipt in found}


def _finish(
    home: Home, state: FileState, read_mark: Callable[[str], str], current: str, named: trash.Named
) -> tuple[Receipt, ...]:
    remove_begun(home)
    changed = []
    for receipt in receipts.read_all(home):
        settled = receipts.settled(receipt, read_mark)
        if receipt.id == current or settled.status == receipt.status:
            continue
        folder = home.dbtools_dir / receipt.id
        if settled.status == "rolled-back":
            # So far along it may have been committed in a file that another one has replaced since.
            settled = _write_rolled_back(folder, state, settled, keep_backup=bool(receipt.undo_sha256))
        elif settled.status == "committed":
            with contextlib.suppress(files_back.Unfinished):
                settled = files_back.finish(folder, state, settled, named)
        else:
            files_back.take_away(settled)
            trash.empty(folder, settled)
            receipts.write(folder, state, settled)
        changed.append(settled)
    return tuple(changed)


def _write_rolled_back(
    folder: Path, state: FileState, receipt: Receipt, *, keep_backup: bool = False
) -> Receipt:
    discard(folder, keep_backup=keep_backup)
    receipt = receipts.without_copies(receipt, keep_backup=keep_backup)
    receipts.write(folder, state, receipt)
    return receipt
