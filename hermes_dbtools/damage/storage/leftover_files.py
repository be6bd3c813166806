"""Files that repairs and crashes have left beside the database

What it means
-------------
Copies of a damaged file, logs that were set aside, locks of processes that are gone and what killed commands of this tool had
begun to write lie beside the database and take room.
In a public report 89 GB of such copies were made in eleven days. A folder of a retired log may hold messages that are nowhere
else.

Why it happens
--------------
Hermes copies the file before each attempt to mend it; releases up to 0.19.0 never remove a copy. It sets the log aside when it
finds that the file was replaced, and an update takes a snapshot. A rebuild of the search index that was killed leaves its lock.
A backup, restore, salvage, export or repair of this tool that was killed leaves what it was writing.

Repair
------
`trash` moves older copies of a damaged file, copies of nothing but zeroes, stale locks and unfinished files beside the receipt.
Room is gained when the receipt's folder is removed; until then undo puts them back. Retired logs and snapshots are only listed.
The next backup or restore, and the next salvage or export into the same file, removes its own unfinished files by itself; an
unfinished repair is settled by the next `repair --apply`.

Safety
------
Planned only with `--allow-lossy`. The newest copy of a damaged file stays, and all that is younger than 24 hours. A copy that is
called zeroed is read to its end first. A lock is stale, and a file unfinished, only where its process provably does not exist on
this host or its lock is free: never a lock that names a host, that a living process holds, or on a file system that other hosts
may share; and no lock while others have the store open. Links are never followed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from ...holders import lock_owners
from ...leftovers import Leftover, leftovers, lock_record
from ...model import FileTrash, Finding, Remedy, Safety, Severity, Step
from ...processes import processes_of
from ...sizes import size_text
from ...unfinished import unfinished
from .._declare import NotApplicable, ScanContext, declare

GRACE_SECONDS = 24 * 3600
"""How long a leftover is left alone: what made it may still be at work, or be asked about."""

COPIES_KEPT = 1
SNAPSHOTS_KEPT = 3

HELD = "others have the file open: stop them first"

WORDS = {
    "malformed-backups": ("copy of a damaged file", "copies of a damaged file"),
    "zeroed-copies": ("copy of zeroes", "copies of zeroes"),
    "retired-wals": ("retired log", "retired logs"),
    "snapshots": ("snapshot", "snapshots"),
    "stale-lock": ("stale lock", "stale locks"),
    "unfinished-backups": ("unfinished backup", "unfinished backups"),
    "unfinished-files": ("unfinished file", "unfinished files"),
    "unfinished-repairs": ("unfinished repair", "unfinished repairs"),
    "unfinished-restores": ("file of an unfinished restore", "files of an unfinished restore"),
}
LISTED = {
    "retired-wals": "it may hold messages that are nowhere else: hermes-dbtools runbook leftover-files",
    "snapshots": "hermes snapshot lists and prunes them",
    "unfinished-repairs": "the next hermes-dbtools repair --apply settles it",
}
"""Why these kinds are never moved."""


def _find(context: ScanContext) -> Iterator[Finding]:
    if context.home is None:
        raise NotApplicable("the file lies in no Hermes home")
    database = context.file.path
    found = leftovers(database)
    old = [one for one in found if one.made_at <= context.now - GRACE_SECONDS]
    kinds = {kind: [one for one in old if one.kind == kind] for kind in sorted(WORDS)}
    newest = max((one.made_at for one in found if one.kind == "malformed-backups"), default=0.0)
    copies = [one for one in kinds["malformed-backups"] if one.made_at < newest]
    yield from _finding("malformed-backups", copies)
    yield from _finding("retired-wals", kinds["retired-wals"])
    snapshots = [one for one in found if one.kind == "snapshots"]
    yield from _finding("snapshots", snapshots[:-SNAPSHOTS_KEPT])
    yield from _stale_lock(context, database)
    broken_off = unfinished(context.home, context.now)
    for kind in sorted({one.kind for one in broken_off}):
        yield from _finding(kind, [one for one in broken_off if one.kind == kind])
    yield from _finding("zeroed-copies", [one for one in kinds["zeroed-copies"] if _only_zeroes(one.files)])


def _stale_lock(context: ScanContext, database: Path) -> Iterator[Finding]:
    record = lock_record(database)
    if record is None:
        return
    lock, pid = record
    path = Path(lock.files[0].path)
    if (
        lock.made_at <= context.now - GRACE_SECONDS
        and not lock_owners(path)
        and processes_of(database, ()).gone(pid)
    ):
        yield from _finding("stale-lock", [lock], HELD if context.file.holders.held else None)


def _finding(kind: str, group: list[Leftover], refused: str | None = None) -> Iterator[Finding]:
    if not group:
        return
    size = sum(one.size for one in group)
    files = tuple(file for one in group for file in one.files)
    counted = f"{len(group):,} {WORDS[kind][len(group) != 1]}"
    refused = refused or LISTED.get(kind)
    title = f"move {counted} away: {size_text(size)}"
    step = Step(DAMAGE.code, DAMAGE.slug, kind, "trash", title, (), trash=files)
    yield DAMAGE.finding(
        table="files",
        key=kind,
        kind=kind,
        message=f"{counted}, {size_text(size)}; the oldest is {group[0].name}",
        evidence={
            "leftovers": len(group),
            "files": len(files),
            "bytes": size,
            "oldest": group[0].made_at,
            "newest": group[-1].made_at,
        },
        remedies=(Remedy("trash", Safety.LOSSY, None if refused else step, refused),),
    )


def _only_zeroes(files: Iterable[FileTrash]) -> bool:
    """Whether the files hold nothing but zero bytes."""
    for file in files:
        with Path(file.path).open("rb") as opened:
            while block := opened.read(1 << 20):
                if block.count(0) != len(block):
                    return False
    return True


DAMAGE = declare(
    __name__,
    __doc__,
    code="HDB005",
    severity=Severity.NOTE,
    safety=Safety.LOSSY,
    answers=("trash",),
    stage="file",
    noun=("kind of leftovers", "kinds of leftovers"),
    sums=(("files", "files"), ("bytes", "bytes")),
    find=_find,
)
