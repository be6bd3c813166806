"""What is written about a backup and what the commands answer, as typed documents; opens nothing.

Times are epoch seconds, sizes are bytes. `rows` are those of each table, search indexes left out.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from ..model import Holder

Kind = Literal["backup", "repair", "replaced", "unknown"]
"""`backup`: made by the command. `repair`: made before a repair, named by its receipt. `replaced`: what a restore took away."""


class Manifest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What lies beside a copy: of which database it is, and what was true of it when it was made.

    A replaced file is kept as it was: it was not verified, and has no digest.
    """

    format: Literal["hermes-dbtools/manifest"] = "hermes-dbtools/manifest"
    format_version: Literal[1] = 1
    name: str
    kind: Literal["backup", "replaced"]
    database: str
    created_at: float
    size: int
    rows: dict[str, int]
    modified_ns: int = 0
    sha256: str = ""
    schema_sha256: str = ""
    schema_version: int | None = None


class Kept(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One copy as the list shows it. `verified`: it passed its checks when it was made and was not written since.

    `sessions` and `messages` are None where they could not be counted; `note` says what is wrong with it, or ''.
    """

    name: str
    kind: Kind
    path: str
    database: str
    created_at: float
    size: int
    sessions: int | None
    messages: int | None
    rows: int | None
    verified: bool
    note: str = ""


class BackupsDocument(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Every copy of one database that this tool keeps, oldest first."""

    format: Literal["hermes-dbtools/backups"] = "hermes-dbtools/backups"
    format_version: Literal[1] = 1
    database: str
    backups: tuple[Kept, ...]


class BackupDocument(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What one backup did. Where nothing had changed since the last one, `made` is False and `path` is that one.

    `removed` are older backups that `--keep` left no place for; `needed` those it spared because a receipt names them.
    """

    format: Literal["hermes-dbtools/backup"] = "hermes-dbtools/backup"
    format_version: Literal[1] = 1
    database: str
    made: bool
    name: str
    path: str
    created_at: float
    size: int
    sha256: str
    schema_version: int | None
    rows: dict[str, int]
    search_problems: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    needed: tuple[str, ...] = ()


class Facts(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a restore says of a file. `problem` says why it could not be read; the rest is then empty."""

    path: str
    size: int
    problem: str = ""
    schema_version: int | None = None
    search_layout: str = ""
    sessions: int | None = None
    messages: int | None = None
    application_id: int = 0


class RestoreDocument(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a restore would do, or has done: `replaced` is then where the file that it took away is kept.

    `created_at` is when the backup was made, None where nothing tells; `holders` have the database open and must end first.
    """

    format: Literal["hermes-dbtools/restore"] = "hermes-dbtools/restore"
    format_version: Literal[1] = 1
    applied: bool
    name: str
    kind: Kind
    created_at: float | None
    backup: Facts
    database: Facts
    holders: tuple[Holder, ...]
    notes: tuple[str, ...]
    replaced: str = ""
