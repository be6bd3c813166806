"""Put a backup in the place of a database: say what that would do, then do it as a whole or not at all.

The backup is verified before anything else, and what is put in place is a verified copy of it. The file that was there is kept.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import apsw

from .. import database, preflight
from ..database import FileState, Reading
from ..home import Home
from ..model import CouldNotLook, Refused
from ..shape import read_shape
from ..shown import shown
from ..sizes import path_text
from ..verification import tables, whole_file
from . import folding, shelf, swapping, taking
from .documents import Facts, Kept, Manifest, RestoreDocument
from .folding import Identity
from .swapping import Swap

STORE_TABLES = frozenset(("sessions", "messages", "state_meta", "schema_version"))
"""A file with other tables and none of these belongs to another program."""

_DAMAGED = ("empty", "zeroes", "wrong-header", "truncated")


@dataclass(frozen=True, slots=True)
class Prepared:
    """A backup that passed its checks, the database whose place it would take, and what there is to say of both."""

    source: Path
    backup: Facts
    known: Kept | None
    state: FileState
    present: Facts
    identity: Identity | None
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


@dataclass(frozen=True, slots=True)
class _Read:
    """What one read of a store tells."""

    facts: Facts
    features: tuple[str, ...]
    newer: str
    identity: Identity


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
    backup = _verified_source(source)
    present = _present(state)
    return Prepared(
        source,
        backup.facts,
        known,
        _with_owner(state),
        present if isinstance(present, Facts) else present.facts,
        None if isinstance(present, Facts) else present.identity,
        tuple(_notes(state, known, backup, present)),
    )


def restore(
    home: Home,
    prepared: Prepared,
    now: float | None = None,
    progress: Callable[[str], None] = lambda _what: None,
) -> RestoreDocument:
    """Put the backup in place. Raises Refused when that was not done: the database is then what it was."""
    state = _with_owner(database.examine(home.database))
    swapping.refuse_holders(state.path) if state.problem != "missing" else None
    with taking.explained(state.path), _locked(home, state) as folder:
        moment = time.time() if now is None else now
        name = taking.free_name(folder, moment, "replaced")
        one = Swap(state, state.path.with_name(state.path.name + swapping.NEW), folder / f"{name}.db")
        one.clear()
        _refuse_little_space(prepared, state, folder)
        try:
            progress("copying")
            _make_new(prepared, one, progress)
            progress("putting in place")
            if state.problem == "missing":
                swapping.put(one)
            else:
                _exchange(one, prepared, moment)
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
    old = taking.needed(state)
    folds = state.problem == "" and swapping.has_content(state.path)
    taking.refuse_little_space(state.path.parent, prepared.backup.size + (old if folds else 0))
    if state.problem != "missing" and folder.stat().st_dev != state.path.stat().st_dev:
        taking.refuse_little_space(folder, old)


def _make_new(prepared: Prepared, one: Swap, progress: Callable[[str], None]) -> None:
    """Copy the backup beside the database, give the copy what the database is known by, and verify it as it then is."""
    counts = preflight.copy_counted(prepared.source, one.new)
    if prepared.identity is not None:
        counts["state_meta"] = counts.get("state_meta", 0) + folding.stamp(one.new, prepared.identity)
    progress("verifying")
    preflight.verified(one.new, counts)
    swapping.like(one.new, one.state)


def _exchange(one: Swap, prepared: Prepared, now: float) -> None:
    folder, present = one.kept.parent, prepared.present
    counted = {"sessions": present.sessions, "messages": present.messages}
    manifest = Manifest(
        name=one.kept.stem,
        kind="replaced",
        database=path_text(one.target),
        created_at=now,
        size=one.state.size,
        rows={table: count for table, count in counted.items() if count is not None},
        schema_version=present.schema_version,
    )
    written = shelf.write_manifest(folder, one.state, manifest)
    try:
        swapping.swap(one)
    finally:
        if not one.kept.exists():
            written.unlink(missing_ok=True)


def _verified_source(source: Path) -> _Read:
    """Check a backup whatever made it. Raises Refused when it is damaged, CouldNotLook when it is no store."""
    state = database.examine(source)
    if state.problem:
        error = Refused if state.problem in _DAMAGED else CouldNotLook
        raise error(f"{database.problem_line(state)}; nothing was changed")
    manifest = shelf.manifest_of(source)
    if manifest and manifest.sha256 and (state.wal_size or taking.file_digest(source) != manifest.sha256):
        raise Refused(
            f"{shown(source)}: the backup is not any more what was verified; nothing was changed; "
            "name another one (hermes-dbtools backup --list)"
        )
    try:
        lines, _search = database.read(source, lambda reading: whole_file(reading.connection))
        problems = preflight.structural(lines) or database.read(source, _uncountable)
        if not problems:
            return database.read(source, _read)
    except apsw.Error as error:
        problems = [str(error)]
    raise Refused(
        f"{shown(source)}: the backup is damaged: {problems[0]}; nothing was changed; "
        "name another one (hermes-dbtools backup --list)"
    )


def _uncountable(reading: Reading) -> list[str]:
    return list(tables(reading.connection, search=False)[0])


def _read(reading: Reading) -> _Read:
    preflight.refuse_untrusted(reading)
    state = reading.state
    try:
        shape = read_shape(reading.connection)
    except CouldNotLook as error:
        raise CouldNotLook(f"{shown(state.path)}: {error}; nothing was changed") from None
    rows = tables(reading.connection, search=False)[2]
    identity = folding.identity_of(reading.connection, wal_mode=state.wal_mode)
    facts = Facts(
        path=path_text(state.path),
        size=taking.needed(state),
        schema_version=shape.schema_version,
        search_layout=shape.search_layout,
        sessions=rows.get("sessions"),
        messages=rows.get("messages"),
        application_id=identity.application_id,
    )
    return _Read(facts, shape.features, shape.newer, identity)


def _present(state: FileState) -> _Read | Facts:
    """What the database is now, or why that cannot be said. Raises Refused for a file of another program."""
    if state.problem:
        return Facts(path_text(state.path), taking.needed(state), state.problem)
    try:
        rows = database.read(state.path, lambda reading: tables(reading.connection, search=False)[2])
        foreign = bool(rows) and not STORE_TABLES & set(rows)
        found = None if foreign else database.read(state.path, _read)
    except Refused as error:
        if state.hot_journal or state.deleted_sidecar:
            return Facts(path_text(state.path), taking.needed(state), str(error))
        raise
    except (CouldNotLook, apsw.Error) as error:
        return Facts(path_text(state.path), taking.needed(state), f"cannot be read: {error}")
    if found is None:
        raise Refused(f"{shown(state.path)}: belongs to another program; nothing was changed; check the path")
    return found


def _notes(state: FileState, known: Kept | None, backup: _Read, present: _Read | Facts) -> Iterator[str]:
    if known is None or not known.database:
        yield "nothing lies beside the backup that tells which database it is of"
    elif known.database != path_text(state.path):
        yield f"the backup is of another database: {known.database}"
    if backup.newer:
        yield f"the backup is newer than this tool knows ({backup.newer})"
    if isinstance(present, Facts):
        return
    ours, theirs = backup.facts, present.facts
    if _shape(backup) != _shape(present):
        yield f"the backup has another shape: {_shape(backup)}; the present file: {_shape(present)}"
    fewer = [
        f"{there - here:,} {name}"
        for name, here, there in (
            ("sessions", ours.sessions or 0, theirs.sessions or 0),
            ("messages", ours.messages or 0, theirs.messages or 0),
        )
        if there > here
    ]
    if fewer:
        yield f"the present file has {' and '.join(fewer)} more; they stay in the file that is kept"


def _shape(read: _Read) -> str:
    number = read.facts.schema_version
    words = [
        f"schema {'unknown' if number is None else number}, {read.facts.search_layout} search",
        *read.features,
    ]
    return " · ".join(words)


def _with_owner(state: FileState) -> FileState:
    """The state with the owner and mode that the new file gets: those of the folder where there was none."""
    if state.problem != "missing":
        return state
    try:
        folder = state.path.parent.stat()
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise CouldNotLook(f"{shown(state.path.parent)}: {reason}; check the path") from None
    return replace(state, uid=folder.st_uid, gid=folder.st_gid, mode=0o600)
