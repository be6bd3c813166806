"""Look at a backup and at the file whose place it would take: whether it is whole, what both hold; writes nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import apsw
import msgspec

from .. import database, preflight
from ..copies import copy_plain, scratch_folder
from ..database import FileState, Reading
from ..file_digests import file_digest
from ..model import CouldNotLook, Refused
from ..pages_read import CHECK_PASSES, told
from ..scratch_room import NoRoom, room_for_copy
from ..shape import read_shape
from ..shown import shown
from ..sizes import counted, path_text, search_text
from ..verification import tables, whole_file
from . import folding, room, shelf
from .documents import Facts, Kept
from .folding import Identity

STORE_TABLES = frozenset(("sessions", "messages", "state_meta", "schema_version"))
"""A file with other tables and none of these belongs to another program."""

_DAMAGED = ("empty", "zeroes", "wrong-header", "truncated")


@dataclass(frozen=True, slots=True)
class Looked:
    """What one read of a store tells; `rows` are those of each table, search indexes left out."""

    facts: Facts
    features: tuple[str, ...]
    newer: str
    identity: Identity
    rows: Mapping[str, int]


@contextmanager
def readable(source: Path) -> Iterator[Path]:
    """A backup that can be read: itself, or where a journal of a dead process lies beside it, a copy that is rolled back."""
    state = database.examine(source)
    if state.problem or not state.hot_journal:
        yield source
        return
    with ExitStack() as stack:
        with room_for_copy(state.path):
            copy = stack.enter_context(scratch_folder(room.needed(state))) / "copy.db"
            copy_plain(state.path, copy)
            copy_plain(database.sidecar(state.path, "-journal"), database.sidecar(copy, "-journal"))
            whole = folding.fold(copy)
        if not whole:
            raise Refused(
                f"{shown(source)}: the backup is damaged: its journal cannot be rolled back; nothing was changed"
            )
        yield copy


def verified_source(source: Path, progress: database.Progress = database.quiet) -> Looked:
    """Check a backup whatever made it. Raises Refused when it is damaged, CouldNotLook when it is no store."""
    state = database.examine(source)
    if state.problem:
        error = Refused if state.problem in _DAMAGED else CouldNotLook
        raise error(f"{database.problem_line(state)}; nothing was changed")
    manifest = shelf.manifest_of(source)
    if (
        manifest
        and manifest.sha256
        and (state.wal_size or file_digest(source, follow_links=True, progress=progress) != manifest.sha256)
    ):
        raise Refused(
            f"{shown(source)}: the backup is not any more what was verified; nothing was changed; "
            "name another one (hermes-dbtools backup --list)"
        )
    try:
        with readable(source) as copy:
            lines = database.read(copy, lambda reading: _problems(reading, progress))
            problems = preflight.structural(lines) or database.read(copy, _uncountable)
            if not problems:
                return _named(database.read(copy, _read), state, source)
    except apsw.Error as error:
        problems = [str(error)]
    raise Refused(
        f"{shown(source)}: the backup is damaged: {problems[0]}; nothing was changed; "
        "name another one (hermes-dbtools backup --list)"
    )


def _problems(reading: Reading, progress: database.Progress) -> tuple[str, ...]:
    with told((reading.connection,), "verifying the backup", progress, passes=CHECK_PASSES):
        return whole_file(reading.connection)[0]


def _named(looked: Looked, state: FileState, path: Path) -> Looked:
    """What was read, under the name of the file itself where a copy of it was read."""
    facts = msgspec.structs.replace(looked.facts, path=path_text(path), size=room.needed(state))
    return replace(looked, facts=facts, identity=replace(looked.identity, wal_mode=state.wal_mode))


def _uncountable(reading: Reading) -> list[str]:
    return list(tables(reading.connection, search=False)[0])


def _read(reading: Reading) -> Looked:
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
        size=room.needed(state),
        schema_version=shape.schema_version,
        search_layout=shape.search_layout,
        sessions=rows.get("sessions"),
        messages=rows.get("messages"),
        application_id=identity.application_id,
    )
    return Looked(facts, shape.features, shape.newer, identity, rows)


def present(state: FileState) -> Looked | Facts:
    """What the database is now, or why that cannot be said. Raises Refused for a file of another program, NoRoom."""
    if state.problem:
        return Facts(path_text(state.path), room.needed(state), state.problem)
    try:
        with readable(state.path) as path:
            rows = database.read(path, lambda reading: tables(reading.connection, search=False)[2])
            foreign = bool(rows) and not STORE_TABLES & set(rows)
            found = None if foreign else database.read(path, _read)
    except NoRoom:
        raise
    except (CouldNotLook, Refused, apsw.Error) as error:
        return Facts(path_text(state.path), room.needed(state), f"cannot be read: {error}")
    if found is None:
        raise Refused(f"{shown(state.path)}: belongs to another program; nothing was changed; check the path")
    return _named(found, state, state.path)


def notes(state: FileState, known: Kept | None, backup: Looked, now: Looked | Facts) -> Iterator[str]:
    """What an operator should know before this backup takes the place of this file."""
    if known is None or not known.database:
        yield "nothing lies beside the backup that tells which database it is of"
    elif known.database != path_text(state.path):
        yield f"the backup is of another database: {known.database}"
    if backup.newer:
        yield f"the backup is newer than this tool knows ({backup.newer})"
    if isinstance(now, Facts):
        return
    ours, theirs = backup.facts, now.facts
    if _shape(backup) != _shape(now):
        yield f"the backup has another shape: {_shape(backup)}; the present file: {_shape(now)}"
    counts = (("session", ours.sessions, theirs.sessions), ("message", ours.messages, theirs.messages))
    more = [(noun, (there or 0) - (here or 0)) for noun, here, there in counts]
    fewer = [counted(count, noun) for noun, count in more if count > 0]
    if fewer:
        yield f"the present file has {' and '.join(fewer)} more; they stay in the file that is kept"


def _shape(read: Looked) -> str:
    number = read.facts.schema_version
    words = [
        f"schema {'unknown' if number is None else number}, {search_text(read.facts.search_layout)}",
        *read.features,
    ]
    return " · ".join(words)
