"""Put a backup in the place of a database: say what that would do, then do it as a whole or not at all.

The backup is verified before anything else, and what is put in place is a verified copy of it. The file that was there is kept.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from .. import database, preflight
from ..database import FileState
from ..home import Home
from ..model import CouldNotLook, Refused, ToolError
from ..shown import reason, shown
from ..sizes import path_text
from . import folding, looking, room, shelf, swapping, whole_files
from .documents import Facts, Kept, Manifest, RestoreDocument
from .folding import Identity
from .swapping import Swap


class InPlace(ToolError):
    """The backup is in its place, and something after that failed."""

    exit_code = 1


@dataclass(frozen=True, slots=True)
class Prepared:
    """A backup that passed its checks, the database whose place it would take, and what there is to say of both."""

    source: Path
    backup: Facts
    known: Kept | None
    state: FileState
    present: Facts
    identity: Identity | None
    rows: Mapping[str, int]
    notes: tuple[str, ...]

    def document(
        self, *, applied: bool = False, replaced: str = "", notes: tuple[str, ...] = ()
    ) -> RestoreDocument:
        """What the command answers."""
        return RestoreDocument(
            applied=applied,
            name=self.known.name if self.known else self.source.name,
            kind=self.known.kind if self.known else "unknown",
            created_at=self.known.created_at if self.known and self.known.database else None,
            backup=self.backup,
            database=self.present,
            holders=() if applied else self.state.holders.processes,
            notes=(*self.notes, *notes),
            replaced=replaced,
        )


def prepare(home: Home, word: str, progress: Callable[[str], None] = lambda _what: None) -> Prepared:
    """Verify the backup that was named and look at the database; writes nothing.

    Raises UsageError or CouldNotLook when there is no such backup or it is no store, Refused when it is damaged.
    """
    source = shelf.choose(home, word)
    state = database.examine(home.database)
    if state.problem in ("directory", "not-a-file", "no-permission"):
        raise CouldNotLook(database.problem_line(state))
    if not state.problem and source.exists() and source.samefile(state.path):
        raise Refused(f"{shown(source)}: is the database itself; nothing was changed; name a backup")
    known = shelf.described(source)
    progress("verifying the backup")
    backup = looking.verified_source(source, progress)
    now = looking.present(state)
    return Prepared(
        source,
        backup.facts,
        known,
        _with_owner(state),
        now if isinstance(now, Facts) else now.facts,
        None if isinstance(now, Facts) else now.identity,
        {} if isinstance(now, Facts) else now.rows,
        tuple(looking.notes(state, known, backup, now)),
    )


def restore(
    home: Home,
    prepared: Prepared,
    now: float | None = None,
    progress: Callable[[str], None] = lambda _what: None,
) -> RestoreDocument:
    """Put the backup in place. Raises Refused when that was not done: the database is then what it was."""
    state = _with_owner(database.examine(home.database))
    whole_files.refuse_holders(state.path) if state.problem != "missing" else None
    with room.explained(state.path), _locked(home, state) as folder:
        moment = time.time() if now is None else now
        name = room.free_name(folder, moment, "replaced")
        one = Swap(state, state.path.with_name(state.path.name + swapping.NEW), folder / f"{name}.db")
        one.clear()
        _refuse_little_space(prepared, state, folder)
        try:
            progress("copying")
            _make_new(prepared, one, progress)
            progress("putting in place")
            _put_in_place(one, prepared, moment)
        finally:
            one.clear()
        return prepared.document(applied=True, replaced=path_text(one.kept) if one.kept.exists() else "")


@contextmanager
def _locked(home: Home, state: FileState) -> Iterator[Path]:
    """The folder of backups; no other repair, backup or restore runs meanwhile."""
    with ExitStack() as stack:
        if state.problem != "missing":
            stack.enter_context(database.repair_lock(state.path))
        yield stack.enter_context(shelf.opened(home, state))


def _refuse_little_space(prepared: Prepared, state: FileState, folder: Path) -> None:
    old = room.needed(state)
    folds = state.problem == "" and swapping.has_content(state.path)
    room.refuse_little_space(state.path.parent, prepared.backup.size + (old if folds else 0))
    if state.problem != "missing" and folder.stat().st_dev != state.path.stat().st_dev:
        room.refuse_little_space(folder, old)


def _make_new(prepared: Prepared, one: Swap, progress: Callable[[str], None]) -> None:
    """Copy the backup beside the database, give the copy what the database is known by, and verify it as it then is."""
    with looking.readable(prepared.source) as source:
        counts = preflight.copy_counted(source, one.new, progress)
    if prepared.identity is not None:
        counts["state_meta"] = counts.get("state_meta", 0) + folding.stamp(one.new, prepared.identity)
    progress("verifying")
    preflight.verified(one.new, counts, progress=progress)
    whole_files.like(one.new, one.state)


def _put_in_place(one: Swap, prepared: Prepared, now: float) -> None:
    new = whole_files.inode(one.new)
    try:
        if one.state.problem == "missing":
            swapping.put(one)
        else:
            _exchange(one, prepared, now)
    except OSError as error:
        if not one.target.exists() or whole_files.inode(one.target) != new:
            raise
        before = f", the file before it is {shown(one.kept)}" if one.kept.exists() else ""
        raise InPlace(
            f"{shown(one.target)}: the backup is in place{before}, but then: {reason(error)}; check the disk"
        ) from error


def _exchange(one: Swap, prepared: Prepared, now: float) -> None:
    manifest = Manifest(
        name=one.kept.stem,
        kind="replaced",
        database=path_text(one.target),
        created_at=now,
        size=one.state.size,
        rows=dict(prepared.rows),
        schema_version=prepared.present.schema_version,
    )
    written = shelf.write_manifest(one.kept.parent, one.state, manifest)
    try:
        swapping.swap(one)
    finally:
        if not one.kept.exists():
            written.unlink(missing_ok=True)


def _with_owner(state: FileState) -> FileState:
    """The state with the owner and mode that the new file gets: those of the folder where there was none."""
    if state.problem != "missing":
        return state
    try:
        folder = state.path.parent.stat()
    except OSError as error:
        raise CouldNotLook(f"{shown(state.path.parent)}: {reason(error)}; check the path") from None
    return replace(state, uid=folder.st_uid, gid=folder.st_gid, mode=0o600)
