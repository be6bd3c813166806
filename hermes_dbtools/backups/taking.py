"""Make a verified copy of a store, unless the last one already holds the same; never opens the store for writing.

A copy has its name only once it has passed its checks: until then it lies there as `unfinished`, which the next backup removes.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import apsw

from .. import database, dbhash, naming, partials, preflight, queries, receipts
from ..database import FileState
from ..file_digests import file_digest
from ..home import Home
from ..model import CouldNotLook, Refused
from ..our_files import UNFINISHED_BACKUP
from ..shape import read_shape
from ..shown import shown
from ..sizes import path_text
from . import shelf
from .documents import BackupDocument, Manifest
from .room import explained, free_name, needed, refuse_little_space

MARKS = "state_meta"
"""The table that holds this tool's own marks, which are no change of a store."""


@dataclass(frozen=True, slots=True)
class BackupOptions:
    """How to back up. `output` is a file that is not there yet, `keep` how many backups are to be left, `now` epoch seconds."""

    output: Path | None = None
    keep: int | None = None
    now: float = field(default_factory=time.time)


@dataclass(frozen=True, slots=True)
class Copy:
    """A copy that passed its checks."""

    path: Path
    rows: Mapping[str, int]
    search_problems: tuple[str, ...]
    sha256: str
    schema_sha256: str
    schema_version: int | None


def back_up(
    home: Home, options: BackupOptions, progress: Callable[[str], None] = lambda _what: None
) -> BackupDocument:
    """Back up the database of a home: into its folder of backups, or to the file that was named.

    Raises CouldNotLook when it cannot be read, Refused when it is damaged, or when there is no room or no right to write.
    No half copy is left, whatever happens but a kill.
    """
    state = database.examine(home.database)
    if state.problem:
        raise CouldNotLook(database.problem_line(state))
    if options.output is not None:
        return _to_file(home, state, options.output, options.now, progress)
    refuse_little_space(home.root, needed(state))
    with explained(shelf.folder_of(home)), shelf.opened(home, state) as folder:
        scratch = folder / UNFINISHED_BACKUP
        try:
            copy = _verified_copy(home, scratch, progress)
            last = next((one for one in reversed(shelf.manifests(home)) if one.kind == "backup"), None)
            if last is not None and _unchanged(last, folder / f"{last.name}.db", copy, progress):
                made, manifest = False, last
            else:
                made, manifest = True, _shelve(state, folder, copy, options.now)
        finally:
            scratch.unlink(missing_ok=True)
        removed, spared = _removed(home, folder, options.keep)
    return _document(
        home, manifest, folder / f"{manifest.name}.db", copy, made=made, removed=removed, needed=spared
    )


def _verified_copy(home: Home, target: Path, progress: Callable[[str], None]) -> Copy:
    target.unlink(missing_ok=True)
    progress("copying")
    counts = preflight.copy_counted(home.database, target, progress)
    progress("verifying")
    # Both read the whole file and neither needs the interpreter: the digest costs no time of its own.
    with ThreadPoolExecutor(1) as pool:
        digest = pool.submit(file_digest, target)
        verification = preflight.verified(target, counts, progress=progress)
    connection = database.open_private(target)
    try:
        version, schema = read_shape(connection).schema_version, _schema_digest(connection)
    finally:
        connection.close()
    return Copy(target, counts, verification.search_problems, digest.result(), schema, version)


def _schema_digest(connection: apsw.Connection) -> str:
    digest = hashlib.sha256()
    for row in connection.execute(queries.statement("backups", "schema")):
        digest.update(repr(row).encode("utf-8", "surrogateescape"))
    return digest.hexdigest()


def _unchanged(last: Manifest, path: Path, copy: Copy, progress: Callable[[str], None]) -> bool:
    """Whether the last backup is still what it was and holds the same rows. Rows are only compared where nothing else differs."""
    if last.schema_sha256 != copy.schema_sha256 or _without_marks(last.rows) != _without_marks(copy.rows):
        return False
    progress("comparing with the last backup")
    if file_digest(path, follow_links=True, progress=progress) != last.sha256:
        return False
    return last.sha256 == copy.sha256 or _rows_digest(path) == _rows_digest(copy.path)


def _without_marks(rows: Mapping[str, int]) -> dict[str, int]:
    return {table: count for table, count in rows.items() if table != MARKS}


def _rows_digest(path: Path) -> str:
    connection = database.open_private(path)
    try:
        return dbhash.of_connection(connection)
    finally:
        connection.close()


def _shelve(state: FileState, folder: Path, copy: Copy, now: float) -> Manifest:
    """Give a copy its name and write its manifest, which comes first: a file with that name is always a backup."""
    found = copy.path.stat()
    manifest = Manifest(
        name=free_name(folder, now, copy.sha256[:8]),
        kind="backup",
        database=path_text(state.path),
        created_at=now,
        size=found.st_size,
        rows=dict(copy.rows),
        modified_ns=found.st_mtime_ns,
        sha256=copy.sha256,
        schema_sha256=copy.schema_sha256,
        schema_version=copy.schema_version,
    )
    written, named = shelf.write_manifest(folder, state, manifest), folder / f"{manifest.name}.db"
    try:
        copy.path.rename(named)
        receipts.sync_folder(folder)
    except BaseException:
        for path in (named, written):
            path.unlink(missing_ok=True)
        raise
    return manifest


def _removed(home: Home, folder: Path, keep: int | None) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Remove the oldest backups above the number to keep. Returns those that went, and those that a receipt still names."""
    mine = [one for one in shelf.manifests(home) if one.kind == "backup"]
    going = mine[: max(0, len(mine) - keep)] if keep is not None else []
    if not going:
        return (), ()
    if malformed := receipts.malformed(home):
        raise Refused(
            f"the backup is made and no older one was removed, for a receipt may need it: {malformed[0].line}"
        )
    named = {os.path.realpath(receipt.backup) for receipt in receipts.read_all(home) if receipt.backup}
    removed, spared = [], []
    for one in going:
        path = folder / f"{one.name}.db"
        if os.path.realpath(path) in named:
            spared.append(path_text(path))
            continue
        path.unlink()
        path.with_suffix(shelf.MANIFEST).unlink()
        removed.append(path_text(path))
    receipts.sync_folder(folder)
    return tuple(removed), tuple(spared)


def _to_file(
    home: Home, state: FileState, output: Path, now: float, progress: Callable[[str], None]
) -> BackupDocument:
    target = Path.cwd() / output
    for path in (target, *(database.sidecar(target, tail) for tail in ("-wal", "-shm", "-journal"))):
        if os.path.lexists(path):
            raise Refused(
                f"{shown(path)}: is there already; nothing was changed; name another file or move it away"
            )
    refuse_little_space(target.parent, needed(state))
    with explained(target):
        partials.remove_abandoned(target)
        scratch = partials.partial_of(target)
        try:
            copy = _verified_copy(home, scratch, progress)
            size = scratch.stat().st_size
            naming.give_name(scratch, target)
        finally:
            scratch.unlink(missing_ok=True)
    manifest = Manifest(
        name=target.name, kind="backup", database=path_text(state.path), created_at=now, size=size,
        rows=dict(copy.rows), sha256=copy.sha256,
    )  # fmt: skip
    return _document(home, manifest, target, copy, made=True)


def _document(
    home: Home,
    manifest: Manifest,
    path: Path,
    copy: Copy,
    *,
    made: bool,
    removed: tuple[str, ...] = (),
    needed: tuple[str, ...] = (),
) -> BackupDocument:
    return BackupDocument(
        database=path_text(home.database),
        made=made,
        name=manifest.name,
        path=path_text(path),
        created_at=manifest.created_at,
        size=manifest.size,
        sha256=manifest.sha256,
        schema_version=copy.schema_version,
        rows=dict(manifest.rows),
        search_problems=copy.search_problems,
        removed=removed,
        needed=needed,
    )
