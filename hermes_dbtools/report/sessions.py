"""Render deletes of sessions as text for a person; computes nothing and opens nothing."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ..model import Deletion, LiveSession, Plan, Receipt, Skipped
from ..plan import totals
from ..shown import call, one_line, shell_word
from ..sizes import counted, size_text

SHOWN = 20
"""Lines of one kind before the rest is only counted."""


def plan_text(plan: Plan, seconds: float) -> str:
    """The dry run of a delete: what would go, what would not and why."""
    roots = [step for step in plan.steps if step.session_ids]
    if not roots:
        lines = ["dry run: nothing is written, and nothing would be deleted"]
    else:
        count = sum(len(step.session_ids) for step in roots)
        lines = [
            f"dry run: nothing is written. {counted(count, 'session')}, about {max(seconds, 0.1):.1f} s under the write lock",
            "",
            *_some([f"  {one_line(step.title)}" for step in plan.steps]),
            _totals(plan),
        ]
    lines += _some([f"active: {one_line(one.key)}: {one_line(one.reason)}" for one in plan.skipped_active])
    lines += _skipped(plan.skipped)
    return "\n".join(lines) + "\n"


def plan_next(ids: Sequence[str], options: str) -> list[str]:
    """The command that does what was shown."""
    return [call("hermes-dbtools sessions delete", f"{options} --apply", ids)]


def deletion_text(done: Deletion) -> str:
    """What a delete did, and how to take it back."""
    asked = len(done.deleted) + len(done.skipped_active) + len(done.skipped)
    lines = [f"deleted {len(done.deleted):,} of {counted(asked, 'session')}" + _beside(done)]
    if done.skipped_active:
        lines.append(f"Cannot delete active session: {len(done.skipped_active):,} skipped")
        lines += _some([f"  {active_text(one)}" for one in done.skipped_active])
    lines += _skipped(done.skipped)
    lines += _some([f"no session has the id {one_line(one)}" for one in done.missing])
    for receipt in done.receipts:
        lines += _receipt(receipt)
    if done.receipts:
        lines.append(f"undo:   hermes-dbtools undo {shell_word(done.receipts[-1].database)}")
    return "\n".join(lines) + "\n"


def spared_text(pinned: int, half_matched: int) -> str:
    """How many lineages with a match a prune leaves alone, besides the live ones."""
    lines = []
    if pinned:
        lines.append(f"spared: {counted(pinned, 'pinned lineage')}")
    if half_matched:
        lines.append(f"spared: {counted(half_matched, 'lineage')} of which only a part matches")
    return "".join(f"{line}\n" for line in lines)


def active_text(live: LiveSession) -> str:
    """A live session in one line."""
    holder = f", {live.holder}" if live.holder else ""
    return one_line(f"{live.session_id!s}: {live.reason}{holder}")


def _receipt(receipt: Receipt) -> list[str]:
    moved = [file for file in receipt.trash if not file.left]
    left = [file for file in receipt.trash if file.left]
    rows = sum(receipt.changed.values()) + sum(receipt.cascaded.values())
    lines = [f"receipt {receipt.id}: {rows:,} rows, {receipt.lock_seconds:.1f} s under the write lock"]
    if moved:
        size = size_text(sum(file.size for file in moved))
        lines.append(f"  {counted(len(moved), 'file')} ({size}) moved beside it")
    return lines + _some([f"  left: {one_line(file.path)}: {file.left}" for file in left])


def _beside(done: Deletion) -> str:
    return f", and {len(done.also_deleted):,} that went with them" if done.also_deleted else ""


def _totals(plan: Plan) -> str:
    found = totals(plan)
    files = f", {found['files_moved']:,} files moved" if found["files_moved"] else ""
    return f"{found['rows_removed']:,} rows removed, {found['rows_changed']:,} changed{files}"


def _skipped(skipped: Iterable[Skipped]) -> list[str]:
    return _some([f"skipped: {one_line(one.key)}: {one_line(one.reason)}" for one in skipped])


def _some(lines: Sequence[str]) -> list[str]:
    more = len(lines) - SHOWN
    return [*lines[:SHOWN], f"  … and {more:,} more"] if more > 0 else list(lines)
