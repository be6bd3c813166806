"""Write to copies that no other process knows: bring their sidecars into them, give them an identity; never touches a store."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import apsw

from .. import queries
from ..connections import connect
from ..file_marks import sidecar

SIDECARS = ("-shm", "-wal", "-journal")


@dataclass(frozen=True, slots=True)
class Identity:
    """What a file is known by to those who used it: its application_id with the row it derives from, and its journal mode.

    `application_id` is 0 where the file has none, `generation` None where it has no such row.
    """

    application_id: int
    generation: bytes | None
    wal_mode: bool


def identity_of(connection: apsw.Connection, *, wal_mode: bool) -> Identity:
    """The identity of an open store."""
    ((application_id,),) = connection.execute("PRAGMA application_id").fetchall()
    rows = connection.execute(queries.statement("backups", "generation")).fetchall()
    generation = rows[0][0] if rows and isinstance(rows[0][0], bytes) else None
    return Identity(int(str(application_id)), generation, wal_mode)


def fold(copy: Path) -> bool:
    """Bring what lies in the `-wal` or the journal of a private copy into the copy itself, as the next reader would.

    False where SQLite makes no database of it; the copy is then good for nothing. Raises apsw errors for a full disk.
    """
    try:
        connection = connect(copy, "mode=rw", write=True)
        try:
            connection.execute("PRAGMA schema_version").fetchall()
            connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
        finally:
            connection.close()
    except (apsw.NotADBError, apsw.CorruptError):
        return False
    return _alone(copy)


def stamp(copy: Path, like: Identity) -> int:
    """Give a private copy the identity of the file whose place it takes; returns the rows that this added.

    A file without an application_id leaves the copy its own, for that derives from a row of the copy.
    """
    connection = connect(copy, "mode=rw", write=True)
    # Without this the last close would leave a `-wal` beside the copy.
    connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 0)
    added = 0
    try:
        if (
            like.application_id
            and like.application_id != identity_of(connection, wal_mode=False).application_id
        ):
            connection.execute(f"PRAGMA application_id = {like.application_id}")
        if like.application_id and like.generation is not None:
            added = _keep_generation(connection, like.generation)
        connection.execute(f"PRAGMA journal_mode = {'WAL' if like.wal_mode else 'DELETE'}").fetchall()
    finally:
        connection.close()
    _alone(copy)
    return added


def remove_with_sidecars(copy: Path) -> None:
    """Remove a private copy and what lies beside it; nothing of it need be there."""
    for path in (*(sidecar(copy, suffix) for suffix in SIDECARS), copy):
        path.unlink(missing_ok=True)


def _keep_generation(connection: apsw.Connection, generation: bytes) -> int:
    found = connection.execute(queries.statement("backups", "generation")).fetchall()
    if found == [(generation,)]:
        return 0
    connection.execute(queries.statement("backups", "keep-generation"), {"value": generation})
    return 0 if found else 1


def _alone(copy: Path) -> bool:
    """Remove sidecars that have nothing left in them. Whether the copy alone is now all of it."""
    wal = sidecar(copy, "-wal")
    if wal.exists() and wal.stat().st_size:
        return False
    for suffix in SIDECARS:
        sidecar(copy, suffix).unlink(missing_ok=True)
    return True
