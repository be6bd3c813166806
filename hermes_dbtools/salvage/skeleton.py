"""Give a private copy a schema that SQLite can read: the tables and indexes that were found, with their pages as they are.

The pages of the old schema are left where they are and lead nowhere. Search indexes, views and triggers are left out: nothing is
asked of them, and a damaged one would answer every other question with an error.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import closing
from pathlib import Path

import apsw

from .. import queries
from ..file_sql import run_one
from ..scratch_room import unwritten
from .header import Header
from .leaves import LEAF
from .pages import HEADER, Pages
from .schema import SchemaObject


def give_schema(copy: Path, header: Header, pages: Pages, objects: Iterable[SchemaObject]) -> bool:
    """Write the objects that SQLite understands into the copy. False where it cannot read the copy even so.

    Raises OSError or apsw errors where the disk does not take them.
    """
    usable = list(_understood(tuple(objects), pages))
    head = bytearray(pages.page(1)[:HEADER])
    head[32:40] = bytes(8)  # no free pages: what is written now goes behind all that was there
    head[52:56] = bytes(4)  # no map of pointers to keep up
    leaf = bytes((LEAF, 0, 0, 0, 0)) + (header.page_size - header.reserved).to_bytes(4, "big")[2:] + b"\0"
    with copy.open("r+b") as file:
        file.write(bytes(head) + leaf)
    try:
        with closing(apsw.Connection(str(copy), flags=apsw.SQLITE_OPEN_READWRITE)) as connection:
            for pragma in ("journal_mode=OFF", "synchronous=OFF", "writable_schema=ON"):
                connection.execute(f"PRAGMA {pragma}").fetchall()
            connection.execute("BEGIN")
            connection.executemany(queries.statement("salvage/schema", "object-of-copy"), usable)
            connection.execute("COMMIT")
    except apsw.Error as error:
        if unwritten(error):
            raise
        return False
    return True


def _understood(objects: tuple[SchemaObject, ...], pages: Pages) -> Iterator[dict[str, str | int | None]]:
    """The tables and indexes whose text makes one, each with a first page of its own."""
    taken: set[int] = set()
    names: set[str] = set()
    with closing(apsw.Connection(":memory:")) as scratch:
        for one in objects:
            known = one.root > 1 and pages.exists(one.root) and one.root not in taken
            if known and one.kind in ("table", "index") and not one.virtual and _makes(scratch, one, names):
                taken.add(one.root)
                names.add(one.name)
                yield {
                    "kind": one.kind,
                    "name": one.name,
                    "table": one.table,
                    "root": one.root,
                    "sql": one.sql or None,
                }


def _makes(scratch: apsw.Connection, one: SchemaObject, names: set[str]) -> bool:
    if not one.sql:  # the index of a key comes with its table
        return one.kind == "index" and one.table in names
    if one.name.startswith("sqlite_"):
        return False
    try:
        run_one(scratch, one.sql)
    except apsw.Error:
        return False
    return True
