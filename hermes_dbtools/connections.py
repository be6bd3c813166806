"""Open SQLite connections with the settings we rely on; never changes a journal mode, never falls back.

Nothing from `apsw.bestpractice.recommended` is used: it switches files to WAL mode and runs `optimize`.
"""

from __future__ import annotations

import contextlib
import os
import stat
import urllib.parse
from pathlib import Path

import apsw

from .model import Refused
from .shown import shown

READ_BUSY_MS = 500
WRITE_BUSY_MS = 5_000

_SETTINGS = (
    (apsw.SQLITE_DBCONFIG_DEFENSIVE, 1),
    (apsw.SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0),
    (apsw.SQLITE_DBCONFIG_DQS_DML, 0),
    (apsw.SQLITE_DBCONFIG_DQS_DDL, 0),
    # The last close of a WAL database would write it and delete `-wal` and `-shm` under a running gateway.
    (apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1),
)


def file_uri(path: Path, parameters: str) -> str:
    """The `file:` URI of a path. Unquoted, a `?`, `#` or `%` in it would open another, empty database."""
    return f"file:{urllib.parse.quote(os.fsencode(path))}?{parameters}"


def connect(path: Path, parameters: str, *, write: bool = False) -> apsw.Connection:
    """Open an existing database with our settings. Raises apsw errors; nothing has been read from it yet."""
    flags = apsw.SQLITE_OPEN_READWRITE if write else apsw.SQLITE_OPEN_READONLY
    connection = apsw.Connection(file_uri(path, parameters), flags=flags | apsw.SQLITE_OPEN_URI)
    connection.set_busy_timeout(WRITE_BUSY_MS if write else READ_BUSY_MS)
    for setting, value in _SETTINGS:
        connection.config(setting, value)
    return connection


def begin_reading(connection: apsw.Connection) -> None:
    """Start the read transaction that holds one state of the file until the connection closes.

    Not `query_only`: that would forbid temporary tables, and the connection is read-only as it is.
    """
    connection.execute("BEGIN")
    connection.execute("PRAGMA schema_version").fetchall()


def open_private(path: Path) -> apsw.Connection:
    """Read a private copy that no other process knows and that has no `-wal`. Raises apsw errors."""
    return connect(path, "mode=ro&immutable=1")


def open_for_repair(path: Path, *, foreign_keys: bool) -> apsw.Connection:
    """The only writable connection to a store. It runs no checkpoint by itself, not even after a long transaction.

    The caller has done its preflight: `examine` said nothing against the file, and the repair lock is taken.
    Raises Refused when the file cannot be opened for writing or the foreign key setting does not hold.
    """
    real = Path(os.path.realpath(path))
    try:
        found = real.stat()
        if not stat.S_ISREG(found.st_mode) or not found.st_size:
            # SQLite deletes the `-wal` of a database of 0 bytes, and with it what could be rescued.
            raise Refused(f"{shown(real)}: not a database with content; next: hermes-dbtools scan")
        connection = connect(real, "mode=rw", write=True)
    except (OSError, apsw.Error) as error:
        raise Refused(
            f"{shown(real)}: cannot be opened for writing ({error}); check owner and permissions"
        ) from None
    try:
        _prepare_writing(connection, real, foreign_keys=foreign_keys)
    except BaseException:
        connection.close()
        raise
    return connection


def checkpoint_passive(connection: apsw.Connection) -> None:
    """Move what can be moved from the `-wal` into the database without waiting for anybody."""
    # Every commit is durable in the `-wal`: what a checkpoint cannot do now, the next one does.
    with contextlib.suppress(apsw.Error):
        connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)


def _prepare_writing(connection: apsw.Connection, path: Path, *, foreign_keys: bool) -> None:
    if connection.readonly("main"):
        raise Refused(
            f"{shown(path)}: may only be read; check owner and permissions of the file and its folder"
        )
    connection.execute(f"PRAGMA foreign_keys={'ON' if foreign_keys else 'OFF'}")
    # Inside a transaction the pragma above does nothing and says nothing.
    answer = connection.execute("PRAGMA foreign_keys").fetchall()
    if answer != [(int(foreign_keys),)] or connection.in_transaction:
        raise Refused(
            f"{shown(path)}: SQLite did not take the foreign key setting; report this with `--version`"
        )
    # A checkpoint by itself would follow the COMMIT inside the same call; the caller asks for one where nobody else
    # has the file open.
    connection.wal_autocheckpoint(0)
