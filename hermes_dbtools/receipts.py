"""The folder of receipts beside a database: what was applied, where its undo file and backup are; changes no database.

`<home>/dbtools/<receipt id>/` holds receipt.json, plan.json, undo, violations and, unless it was declined, backup.db.
A receipt is written as `pending` before COMMIT; whether that transaction happened is said by the row
`hermes_dbtools.repair.<id>` of `state_meta`, which commits with it.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePath

import msgspec

from . import documents, our_files
from .database import FileState, create_private, private_folder
from .home import Home
from .model import Receipt, Refused, UsageError
from .shown import reason, shown
from .sizes import path_text

RECEIPT = our_files.RECEIPT
PLAN = our_files.PLAN
UNDO = "undo"
VIOLATIONS = "violations"
TOUCHED = "touched"
BACKUP = "backup.db"

SCRATCH_SUFFIX = our_files.SCRATCH_SUFFIX

MOST_SYNCED = 64
"""Folders that are made durable one by one."""

MARK_PREFIX = "hermes_dbtools.repair."


@dataclass(frozen=True, slots=True)
class Malformed:
    """A receipt that cannot be read: the name of its folder, and the line that says why."""

    name: str
    line: str

    def may_follow(self, receipt_id: str) -> bool:
        """Whether it may be of a later moment than a receipt."""
        return not our_files.RECEIPT_ID.fullmatch(self.name) or self.name[:16] >= receipt_id[:16]


def new_folder(home: Home, state: FileState, fingerprint: str, now: float) -> Path:
    """Make the folder of a new receipt; its name is the receipt's id. Raises Refused where it cannot be private."""
    root = private_folder(home.dbtools_dir, state)
    moment = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(now))
    for attempt in range(1000):
        name = f"{moment}-{fingerprint[:8]}" + (f"-{attempt}" if attempt else "")
        if not (root / name).exists():
            return _durable(private_folder(root / name, state), home)
    raise Refused(f"{root}: too many receipts of one second")


def _durable(folder: Path, home: Home) -> Path:
    try:
        sync_folder(folder.parent)
        sync_folder(home.root)
    except OSError as error:
        folder.rmdir()
        raise Refused(f"{shown(folder)}: {reason(error)}; nothing was changed") from None
    return folder


def write(folder: Path, state: FileState, receipt: Receipt) -> None:
    """Write or replace a receipt, synced, in one step."""
    write_private(folder / RECEIPT, state, documents.encode_receipt(receipt))


def write_private(path: Path, state: FileState, content: bytes) -> None:
    """Write a file that only the database's owner may read, synced, replacing what was there in one step."""
    scratch = path.with_name(path.name + SCRATCH_SUFFIX)
    scratch.unlink(missing_ok=True)
    try:
        with os.fdopen(create_private(scratch, state), "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        scratch.replace(path)
    except BaseException:
        scratch.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Make the names in a folder durable."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def sync_folders(folders: Iterable[Path]) -> None:
    """Make the names in many folders durable."""
    each = sorted(set(folders))
    if len(each) > MOST_SYNCED and sys.platform == "linux":
        # There it waits for everything to be written, which takes less than a thousand waits.
        os.sync()
        return
    for folder in each:
        sync_folder(folder)


def read_all(home: Home) -> tuple[Receipt, ...]:
    """Every receipt of a home's database that can be read, oldest first; those of another file in the folder are not its own.

    The name of the file tells, not its folder: a home may be moved.
    """
    name = path_text(home.database.name)
    found = (one for one in _each(home) if isinstance(one, Receipt))
    own = (receipt for receipt in found if PurePath(receipt.database).name == name)
    return tuple(
        sorted(own, key=lambda receipt: receipt.created_at)
    )  # two of one second have names in any order


def malformed(home: Home) -> tuple[Malformed, ...]:
    """The receipts of a home that cannot be read, by name of their folder; of which database they are nobody knows."""
    return tuple(one for one in _each(home) if isinstance(one, Malformed))


def _each(home: Home) -> Iterator[Receipt | Malformed]:
    root = home.dbtools_dir
    for folder in sorted(root.iterdir()) if root.is_dir() else ():
        if (folder / RECEIPT).is_file():
            try:
                yield read(folder)
            except UsageError as error:
                yield Malformed(folder.name, str(error))


def read(folder: Path) -> Receipt:
    """One receipt. Raises UsageError when it is malformed."""
    try:
        return documents.decode_receipt((folder / RECEIPT).read_bytes())
    except (OSError, msgspec.MsgspecError, ValueError) as error:
        raise UsageError(f"{folder / RECEIPT}: not a receipt: {error}; move that folder away") from None


def without_copies(receipt: Receipt, *, keep_backup: bool = False) -> Receipt:
    """The receipt of a repair that changed nothing: it has no undo file and, unless kept, no backup."""
    return msgspec.structs.replace(receipt, backup=receipt.backup if keep_backup else "", undo="")


def settled(receipt: Receipt, marked: Callable[[str], str]) -> Receipt:
    """The receipt with the status that the database's own mark gives it; `marked` reads the mark of an id."""
    if receipt.status == "rolled-back":
        return receipt
    word = marked(receipt.id)
    if word == "undone":
        return msgspec.structs.replace(receipt, status="undone")
    if receipt.status == "pending":
        return msgspec.structs.replace(receipt, status="committed" if word == "applied" else "rolled-back")
    return receipt


def held(receipt: Receipt, marked: Callable[[str], str]) -> Receipt:
    """The receipt as the file that is there now has it: `gone` where that holds no mark of it, as after a restore.

    The file of before, put back, holds it again; so this is shown and never written.
    """
    found, word = settled(receipt, marked), marked(receipt.id)
    if found.status == "committed" and not word:
        return msgspec.structs.replace(found, status="gone")
    if found.status == "undone" and word == "applied":
        return msgspec.structs.replace(found, status="committed")
    return found
