"""The foreign key violations of some tables as a comparable set; never changes a row.

A violation is kept as an 8-byte digest of (table, primary key, key id): row ids do not survive an undo, and a file with a
million orphans must not cost hundreds of megabytes.
"""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Iterable
from dataclasses import dataclass

import apsw

from . import queries
from .model import Value
from .shape import Shape


@dataclass(frozen=True, slots=True)
class Violation:
    """One row that breaks a declared foreign key."""

    table: str
    key: tuple[Value, ...]
    parent: str
    key_id: int

    def digest(self) -> int:
        """A number that is the same whenever the same row breaks the same key."""
        text = repr((self.table, self.key, self.key_id)).encode()
        return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "big", signed=True)


def with_referrers(shape: Shape, tables: Iterable[str]) -> tuple[str, ...]:
    """These tables, every table that declares a key to one of them, those that point at these, and so on."""
    reached: set[str] = set()
    fresh = {table.lower() for table in tables}
    while fresh:
        reached |= fresh
        fresh = {
            name.lower()
            for name in shape.canonical_tables
            if any(key.parent.lower() in fresh for key in shape.tables[name].foreign_keys)
        } - reached
    return tuple(name for name in shape.canonical_tables if name.lower() in reached)


def find_violations(connection: apsw.Connection, shape: Shape, tables: Iterable[str]) -> Iterable[Violation]:
    """Every violation of these tables' declared keys."""
    for name in tables:
        table = shape.tables[name]
        if not table.foreign_keys:
            continue
        integer_key = (
            len(table.primary_key) == 1 and table.columns[table.primary_key[0]].type.upper() == "INTEGER"
        )
        for place, (_table, rowid, parent, key_id) in enumerate(
            connection.execute(f"PRAGMA foreign_key_check({queries.quote(name)})")
        ):
            if rowid is None:
                key: tuple[Value, ...] = (place,)
            elif integer_key or not table.primary_key:
                key = (rowid,)
            else:
                key = _key(connection, name, table.primary_key, rowid)
            yield Violation(name, key, parent, key_id)


def digests(violations: Iterable[Violation]) -> set[int]:
    """The violations as a set of digests."""
    return {violation.digest() for violation in violations}


def encode(numbers: Iterable[int]) -> bytes:
    """Numbers of 8 bytes each, lowest first, as a file holds them."""
    return array("q", sorted(numbers)).tobytes()


def decode(content: bytes) -> set[int]:
    """What `encode` made."""
    values = array("q")
    values.frombytes(content)
    return set(values)


def _key(connection: apsw.Connection, table: str, columns: tuple[str, ...], rowid: int) -> tuple[Value, ...]:
    casts = ", ".join(f"CAST({queries.quote(column)} AS BLOB)" for column in columns)
    sql = queries.fill(queries.statement("apply", "key-of-row").replace("{key}", casts), table=table)
    (row,) = connection.execute(sql, {"rowid": rowid}).fetchall()
    return tuple(row)
