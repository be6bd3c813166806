"""Render what was applied, and what an undo takes back, as text for a person; computes nothing and opens nothing."""

from __future__ import annotations

from collections.abc import Sequence

from ..columns import columns
from ..model import Receipt
from ..shown import one_line, shell_word
from ..sizes import counted, moment_text
from . import schema_words

COUNTERS = "sqlite_sequence"
"""SQLite's own counters of ids: a repair only ever raises one, and an undo leaves it raised."""


def receipt_text(receipt: Receipt) -> str:
    """What was applied, and how to take it back."""
    lines = [
        f"applied: receipt {receipt.id}, {counted(receipt.steps, 'step')}, {receipt.lock_seconds:.2f} s under the write lock",
        *(f"  {table}: {counted(rows, 'row')}" for table, rows in receipt.changed.items()),
        *(
            f"  {table}: {counted(rows, 'row')} by foreign keys or the store's triggers"
            for table, rows in receipt.cascaded.items()
        ),
        *schema_words.done_lines(receipt),
        *(f"  put back {one_line(file.target)}" for file in receipt.files),
        *_trash_lines(receipt),
    ]
    if receipt.search_rebuilt:
        lines.append("  search index rebuilt: " + ", ".join(receipt.search_rebuilt))
    if receipt.dbhash_before:
        lines.append(f"  digest before {receipt.dbhash_before}")
        lines.append(f"  digest after  {receipt.dbhash_after}")
    lines.append(f"  backup: {one_line(receipt.backup) or 'none (--no-backup)'}")
    database = shell_word(receipt.database)
    lines.append(f"next:  hermes-dbtools undo {database} {receipt.id}   take it back")
    return "\n".join(lines) + "\n"


GONE = "gone: the database that is there now holds nothing of it, as after a restore of a backup from before; nothing to undo"


def history_text(receipts: Sequence[Receipt]) -> str:
    """One line per receipt, oldest first."""
    if not receipts:
        return "nothing was applied to this database by hermes-dbtools\n"
    rows = [
        [
            receipt.id,
            receipt.status,
            moment_text(receipt.created_at),
            ", ".join(f"{count} {code}" for code, count in receipt.codes.items()),
            f"{sum(receipt.changed.values()):,}",
        ]
        for receipt in receipts
    ]
    head = ["receipt", "status", "when", "steps", "rows"]
    table = columns(rows, head)
    gone = f"\n\n{GONE}" if any(receipt.status == "gone" for receipt in receipts) else ""
    return f"{table}{gone}\n"


def undo_text(receipt: Receipt, *, done: bool) -> str:
    """What an undo would restore, or has restored."""
    verb = "undone" if done else "dry run: nothing is written. The undo would take back"
    lines = [
        f"{verb}: receipt {receipt.id} of {moment_text(receipt.created_at)}",
        *(
            f"  {table}: {counted(rows, 'row')}"
            if table != COUNTERS
            else f"  {table}: stays raised, so that no id is given out twice"
            for table, rows in receipt.changed.items()
        ),
        *(f"  {table}: {counted(rows, 'row')} that came along" for table, rows in receipt.cascaded.items()),
        *schema_words.taken_back_lines(receipt, done=done),
        *(f"  {'taken away' if done else 'take away'} {one_line(file.target)}" for file in receipt.files),
        *_given_back(receipt, done=done),
    ]
    if not done:
        lines.append(f"next:  hermes-dbtools undo {shell_word(receipt.database)} {receipt.id} --apply")
    return "\n".join(lines) + "\n"


def _given_back(receipt: Receipt, *, done: bool) -> list[str]:
    count = sum(not file.left for file in receipt.trash)
    return [f"  {counted(count, 'file')} {'put back' if done else 'to put back'}"] if count else []


def _trash_lines(receipt: Receipt) -> list[str]:
    left = [file for file in receipt.trash if file.left]
    gone = len(receipt.trash) - len(left)
    lines = [f"  moved away: {counted(gone, 'file')}"] if gone else []
    return lines + [f"  left: {one_line(file.path)} ({file.left})" for file in left]
