"""Find out what became of receipts that a crash left pending, and finish their work; changes no row."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import apsw

from . import files_back, queries, receipts
from .database import FileState
from .home import Home
from .model import Receipt


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

    Committed: its files are put back. Rolled back: its backup and undo file are removed, since they undo nothing.
    """
    read_mark = mark_of(connection)
    changed = []
    for receipt in receipts.read_all(home):
        if receipt.id == current:
            continue
        settled = receipts.settled(receipt, read_mark)
        if settled.status == receipt.status:
            continue
        folder = home.dbtools_dir / receipt.id
        if settled.status == "committed":
            settled = files_back.put_back(folder, state, settled)
        elif settled.status == "rolled-back":
            discard(folder)
        receipts.write(folder, state, settled)
        changed.append(settled)
    return tuple(changed)


def discard(folder: Path) -> None:
    """Remove the backup and the undo file of a receipt that changed nothing."""
    for name in (receipts.BACKUP, receipts.UNDO, receipts.VIOLATIONS, receipts.TOUCHED):
        (folder / name).unlink(missing_ok=True)
