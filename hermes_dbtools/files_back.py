"""Finish the files of a receipt after its COMMIT, and take copies away again after an undo; never overwrites a file.

A file is copied, not moved: its source may be named elsewhere. A copy is a name in its place only when it is complete.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from pathlib import Path

import msgspec

from . import receipts, trash
from .database import FileState, create_private
from .file_digests import file_digest
from .model import FileCopy, Receipt, Refused, ToolError
from .shown import reason


class Unfinished(ToolError):
    """The rows are committed, a file is not in its place yet."""

    exit_code = 1


def finish(folder: Path, state: FileState, receipt: Receipt, named: trash.Named) -> Receipt:
    """Copy each file of a receipt to its place, move away what it may, and mark the receipt committed.

    What is there already is left alone; `named` says which files must stay. Raises Unfinished when a file could not be
    put back or moved, or the receipt not written; it stays pending, and the next run tries again.
    """
    failed = [line for file in receipt.files if (line := _put_back(file, state))]
    if failed:
        raise unfinished(
            receipt,
            f"the rows are repaired, but {len(failed)} of {len(receipt.files)} files could not be put back: {failed[0]}",
        )
    try:
        receipt, failed = trash.move_away(folder, state, receipt, named)
    except (OSError, Refused) as error:
        why = f"the rows are changed, but its files could not be moved away: {reason(error)}"
        raise unfinished(receipt, why) from error
    if failed:
        # What it says of the files is for the next run, which looks at them anew where this cannot be written.
        with contextlib.suppress(OSError, Refused):
            receipts.write(folder, state, receipt)
        raise unfinished(
            receipt,
            f"the rows are changed, but {len(failed)} of {len(receipt.trash)} files could not be moved away: {failed[0]}",
        )
    receipt = msgspec.structs.replace(receipt, status="committed")
    write(folder, state, receipt)
    return receipt


def write(folder: Path, state: FileState, receipt: Receipt) -> None:
    """Write the receipt of rows that are committed. Raises Unfinished."""
    try:
        receipts.write(folder, state, receipt)
    except (OSError, Refused) as error:
        why = f"the rows are repaired, but the receipt does not say so yet: {reason(error)}"
        raise unfinished(receipt, why) from error


def unfinished(receipt: Receipt, why: str) -> Unfinished:
    """The error for what came after the COMMIT of a receipt and failed."""
    return Unfinished(f"receipt {receipt.id}: {why}; mend that and run hermes-dbtools repair --apply again")


def take_away(receipt: Receipt) -> tuple[str, ...]:
    """Remove the copies that a receipt made, and no last one: both it and its source hold what was copied. Returns what stays."""
    left = []
    for file in receipt.files:
        target = Path(file.target)
        try:
            if file_digest(target) == file_digest(Path(file.source)) == file.sha256:
                target.unlink()
            elif os.path.lexists(target):
                left.append(file.target)
        except OSError:
            left.append(file.target)
    return tuple(left)


def _put_back(file: FileCopy, state: FileState) -> str:
    source, target = Path(file.source), Path(file.target)
    scratch = target.with_name(f".{target.name}.dbtools")
    try:
        if os.path.lexists(target):
            return "" if file_digest(target) == file.sha256 else f"{target} is taken by another file"
        target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        scratch.unlink(missing_ok=True)
        with (
            os.fdopen(create_private(scratch, state), "wb") as writing,
            source.open("rb") as reading,
        ):
            shutil.copyfileobj(reading, writing)
            writing.flush()
            os.fsync(writing.fileno())
        if file_digest(scratch) != file.sha256:
            return f"{source} no longer has the digest that was found"
        os.link(scratch, target)
        receipts.sync_folder(target.parent)
    except OSError as error:
        return f"{target}: {reason(error)}"
    except Refused as error:
        return str(error)
    finally:
        # Also what a crash left between the two names of one file.
        with contextlib.suppress(OSError):
            scratch.unlink(missing_ok=True)
    return ""
