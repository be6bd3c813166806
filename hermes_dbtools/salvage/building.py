"""Make a new store from the texts of a schema: tables, then indexes, then search indexes with their triggers; no rows.

Application id, user version, page size, encoding and vacuum mode are those of the old file.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import apsw

from .. import known, queries, search_index
from ..connections import file_uri
from ..file_sql import run_one
from ..model import Refused
from ..search_layouts import wanted
from ..search_remaking import give_triggers
from ..shape import read_shape
from .header import Header
from .schema import SchemaObject

CACHE_KIB = 65_536
"""Memory for pages of the new file."""

_ENCODINGS = {1: "UTF-8", 2: "UTF-16le", 3: "UTF-16be"}


def begin(path: Path, header: Header) -> apsw.Connection:
    """Open the new, empty file with the settings of the old one."""
    flags = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_URI
    connection = apsw.Connection(file_uri(path, "mode=rw"), flags=flags)
    for pragma in (
        f"page_size={header.page_size}",
        f"encoding='{_ENCODINGS[header.encoding]}'",
        f"auto_vacuum={header.auto_vacuum}",
        # Nobody else knows the file and it goes when anything fails: what is undone are single statements.
        "journal_mode=MEMORY",
        "synchronous=OFF",
        "locking_mode=EXCLUSIVE",
        "foreign_keys=OFF",
        f"cache_size=-{CACHE_KIB}",
        f"application_id={header.application_id}",
        f"user_version={header.user_version}",
    ):
        connection.execute(f"PRAGMA {pragma}").fetchall()
    return connection


@contextmanager
def attached(connection: apsw.Connection, copy: Path | None) -> Iterator[apsw.Connection | None]:
    """The copy attached as `damaged`, and a connection of its own that reads it; None where SQLite cannot.

    Outside of a transaction: SQLite lets a connection write no more once it has found damage inside of one.
    """
    if copy is None:
        yield None
        return
    reader = apsw.Connection(
        file_uri(copy, "mode=ro&immutable=1"), flags=apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
    )
    with closing(reader):
        try:
            reader.execute(queries.statement("salvage/schema", "objects-of-copy")).fetchall()
        except (apsw.CorruptError, apsw.NotADBError, apsw.SQLError):
            yield None
            return
        uri = file_uri(copy, "mode=ro&immutable=1")
        connection.execute(queries.statement("salvage/schema", "attach"), {"uri": uri})
        yield reader
        connection.execute(queries.statement("salvage/schema", "detach"))


def make_tables(
    connection: apsw.Connection, objects: Iterable[SchemaObject]
) -> tuple[list[SchemaObject], list[str]]:
    """Make the ordinary tables. Returns them, and the names of those whose text makes none."""
    every = tuple(objects)
    made: list[SchemaObject] = []
    refused: list[str] = []
    for one in every:
        if one.kind != "table" or one.virtual or _of_sqlite(one.name) or _shadow(one.name, every):
            continue
        if _make(connection, one):
            made.append(one)
        elif not one.added:
            refused.append(one.name)
    return made, refused


def make_rest(connection: apsw.Connection, objects: Iterable[SchemaObject], kind: str) -> list[str]:
    """Make the objects of one kind (`virtual` for search indexes). Returns the names of those that could not be made."""
    return [
        one.name
        for one in objects
        if (("virtual" if one.virtual else one.kind) == kind and one.sql and not _of_sqlite(one.name))
        and not _make(connection, one)
        and not one.added
    ]


def right_triggers(connection: apsw.Connection) -> None:
    """Give every search index the triggers of its layout for what none keeps it right at: one may be missing or damaged."""
    shape = read_shape(connection)
    for index in search_index.read_indexes(connection, shape):
        found = wanted(shape, index.name)
        if index.missing_triggers and found.index is not None and not found.refused:
            give_triggers(connection, found.index)


def refill_search(connection: apsw.Connection) -> tuple[list[str], str]:
    """Fill every search index from the messages, as the file's own triggers would. Returns their names, or why not."""
    shape = read_shape(connection)
    names = [index.name for index in search_index.read_indexes(connection, shape)]
    if not names:
        return [], ""
    connection.execute(queries.statement("apply", "touched-table"))
    connection.execute(queries.statement("salvage/schema", "touch-all"))
    try:
        upkeep = search_index.decide(connection, shape)
    except Refused as error:
        return [], str(error)
    search_index.register_tokenizer(connection, upkeep)
    search_index.begin_change(connection, upkeep)
    search_index.end_change(connection, upkeep)
    return [item.index.name for item in upkeep.indexes if item.mode in ("touch", "rebuild")], ""


def _make(connection: apsw.Connection, one: SchemaObject) -> bool:
    try:
        run_one(connection, one.sql)
    except (apsw.SQLError, apsw.ConstraintError, apsw.CorruptError):
        return False
    return True


def _of_sqlite(name: str) -> bool:
    return name.lower().startswith("sqlite_")


def _shadow(name: str, objects: Iterable[SchemaObject]) -> bool:
    base, _, tail = name.rpartition("_")
    indexes = {*known.SEARCH_TABLES, *(one.name for one in objects if one.virtual)}
    return tail in known.SHADOW_TAILS and base in indexes
