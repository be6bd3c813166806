"""Render backups and restores as text for a person; computes nothing and opens nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..columns import columns
from ..shown import one_line, shell_word
from ..sizes import counted, moment_text, search_text, size_text

if TYPE_CHECKING:
    from ..backups.documents import BackupDocument, BackupsDocument, Facts, Kept, RestoreDocument

KINDS = {
    "backup": "backup",
    "repair": "before a repair",
    "replaced": "replaced by a restore",
    "unknown": "unknown",
}


def backup_text(done: BackupDocument) -> str:
    """What a backup did, and what it is good for."""
    where = f"  {one_line(done.path)}"
    if not done.made:
        lines = [
            f"nothing has changed since the last backup, of {moment_text(done.created_at)}: none was made",
            where,
        ]
    else:
        lines = [f"backed up and verified: {_counts(done.rows)} · {size_text(done.size)}", where]
        lines += [f"  sha256 {done.sha256}"]
    if done.search_problems:
        lines.append("  its search index is damaged, as that of the database is: hermes-dbtools scan")
    lines += [f"removed {one_line(path)}" for path in done.removed]
    lines += [f"left {one_line(path)}: a receipt names it" for path in done.needed]
    return "\n".join(lines) + "\n"


def backup_next(done: BackupDocument) -> list[str]:
    """The command that puts the backup in the place of the database."""
    return [f"hermes-dbtools restore {shell_word(done.path)} {shell_word(done.database)}   put it back"]


def list_text(found: BackupsDocument) -> str:
    """One line per copy, oldest first."""
    if not found.backups:
        return "no backup of this database by hermes-dbtools\n"
    rows = [
        [
            one.name,
            moment_text(one.created_at),
            KINDS[one.kind],
            size_text(one.size),
            _number(one.sessions),
            _number(one.messages),
            _number(one.rows),
            "yes" if one.verified else f"no: {one_line(one.note)}",
        ]
        for one in found.backups
    ]
    heads = ["backup", "when", "what", "size", "sessions", "messages", "rows", "verified"]
    return columns(rows, heads) + f"\n\n{_sum(found.backups)}\n"


def restore_text(done: RestoreDocument) -> str:
    """What a restore would do, or has done."""
    when = f" of {moment_text(done.created_at)}" if done.created_at is not None else ""
    head = "restored" if done.applied else "dry run: nothing is written. The restore would put in place"
    lines = [
        f"{head}: backup{when}",
        "",
        columns(
            [["", *_row(done.backup)], ["instead of", *_row(done.database)]],
            ["", "file", "size", "schema", "sessions", "messages"],
        ),
    ]
    lines += ["", *(f"note: {one_line(note)}" for note in done.notes)] if done.notes else []
    if done.replaced:
        lines += ["", f"kept: {one_line(done.replaced)}"]
    return "\n".join(lines) + "\n"


def restore_next(done: RestoreDocument, options: str) -> list[str]:
    """The command that does what was shown."""
    command = f"hermes-dbtools restore {shell_word(done.backup.path)} {shell_word(done.database.path)}{options} --apply"
    if not done.holders:
        return [command]
    held = ", ".join(f"{one_line(one.name)} (pid {one.pid})" for one in done.holders)
    return [f"stop {held}, then  {command}"]


def restored_next(done: RestoreDocument) -> list[str]:
    """What to run after a restore: look at the file, or take the restore back."""
    place = shell_word(done.database.path)
    lines = [f"hermes-dbtools scan {place}"]
    if done.replaced:
        lines.append(f"hermes-dbtools restore {shell_word(done.replaced)} {place}   take it back")
    return lines


def _row(facts: Facts) -> list[str]:
    if facts.problem:
        return [one_line(facts.path), size_text(facts.size), one_line(facts.problem), "", ""]
    version = "unknown" if facts.schema_version is None else str(facts.schema_version)
    return [
        one_line(facts.path),
        size_text(facts.size),
        f"{version}, {search_text(facts.search_layout)}",
        _number(facts.sessions),
        _number(facts.messages),
    ]


def _counts(rows: dict[str, int]) -> str:
    sessions, messages = rows.get("sessions", 0), rows.get("messages", 0)
    return (
        f"{counted(sessions, 'session')}, {counted(messages, 'message')}, {sum(rows.values()):,} rows in all"
    )


def _sum(found: tuple[Kept, ...]) -> str:
    return f"{len(found):,} in all, {size_text(sum(one.size for one in found))}"


def _number(count: int | None) -> str:
    return "?" if count is None else f"{count:,}"
