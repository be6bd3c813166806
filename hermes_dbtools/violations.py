"""The foreign key violations of some tables as a comparable set; never changes a row.

A violation is kept as a number of 8 bytes made from (table, primary key, key id): row ids do not survive an undo, and a file
with a million orphans must not cost hundreds of megabytes.
"""

from __future__ import annotations

import hashlib
import zlib
from array import array
from collections.abc import Iterable, Iterator, Set
from dataclasses import dataclass

import apsw

from . import queries
from .model import Value
from .shape import Shape, Table

PRINTABLE_KEYS = ("id", "session_id", "hash", "execution_id", "conversation_id")
"""Key columns that may be printed; others hold addresses or chat ids."""


@dataclass(frozen=True, slots=True)
class Violation:
    """One row that breaks a declared foreign key."""

    table: str
    key: tuple[Value, ...]
    parent: str
    key_id: int

    def number(self) -> int:
        """A number of 64 bits that is the same whenever the same row breaks the same key."""
        if len(self.key) == 1 and isinstance(self.key[0], int):
            return _base(self.table, self.key_id) ^ self.key[0]
        text = repr((self.table, self.key, self.key_id)).encode()
        return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "big", signed=True)


def key_text(shape: Shape, name: str, key: tuple[object, ...]) -> str:
    """A row for an error line, by the columns of its key that may be printed."""
    for column, value in zip(shape.tables[name].primary_key, key, strict=False):
        if column in PRINTABLE_KEYS and isinstance(value, str | bytes | int):
            return (
                f"{name} {value.decode('utf-8', 'backslashreplace') if isinstance(value, bytes) else value}"
            )
    return f"a row of {name}"


def row_text(shape: Shape, violation: Violation) -> str:
    """The row of a violation for an error line."""
    return key_text(shape, violation.table, violation.key)


def first_new(
    connection: apsw.Connection, shape: Shape, tables: tuple[str, ...], known: Set[int]
) -> Violation | None:
    """The first violation of some tables that is not among these numbers."""
    if numbers(connection, shape, tables) <= known:
        return None
    found = find_violations(connection, shape, tables)
    return next((violation for violation in found if violation.number() not in known), None)


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


def find_violations(connection: apsw.Connection, shape: Shape, tables: Iterable[str]) -> Iterator[Violation]:
    """Every violation of these tables' declared keys."""
    for table in _with_keys(shape, tables):
        by_rowid = _rowid_is_key(table)
        for place, (_table, rowid, parent, key_id) in enumerate(_check(connection, table.name)):
            if rowid is None:
                key: tuple[Value, ...] = (place,)
            elif by_rowid:
                key = (rowid,)
            else:
                key = _key(connection, table.name, table.primary_key, rowid)
            yield Violation(table.name, key, parent, key_id)


def numbers(connection: apsw.Connection, shape: Shape, tables: Iterable[str]) -> set[int]:
    """The numbers of all violations of these tables, without an object for each: there may be a million."""
    found: set[int] = set()
    for table in _with_keys(shape, tables):
        if _rowid_is_key(table):
            bases: dict[int, int] = {}
            for _table, rowid, _parent, key_id in _check(connection, table.name):
                if key_id not in bases:
                    bases[key_id] = _base(table.name, key_id)
                found.add(bases[key_id] ^ rowid)
        else:
            found.update(one.number() for one in find_violations(connection, shape, (table.name,)))
    return found


def encode(numbers: Iterable[int]) -> bytes:
    """Numbers of 8 bytes each, lowest first, as a file holds them."""
    return array("q", sorted(numbers)).tobytes()


def decode(content: bytes) -> array[int]:
    """What `encode` made."""
    values = array("q")
    values.frombytes(content)
    return values


def _with_keys(shape: Shape, tables: Iterable[str]) -> Iterator[Table]:
    return (shape.tables[name] for name in tables if shape.tables[name].foreign_keys)


def _rowid_is_key(table: Table) -> bool:
    if table.without_rowid:
        return False
    key = table.primary_key
    return not key or (len(key) == 1 and table.columns[key[0]].type.upper() == "INTEGER")


def _check(connection: apsw.Connection, table: str) -> apsw.Cursor:
    return connection.execute(f"PRAGMA foreign_key_check({queries.quote(table)})")


def _base(table: str, key_id: int) -> int:
    """The high half of the numbers of one key; the low half is the row's id."""
    return int.from_bytes(
        zlib.crc32(f"{table} {key_id}".encode()).to_bytes(4, "big") + bytes(4), "big", signed=True
    )


def _key(connection: apsw.Connection, table: str, columns: tuple[str, ...], rowid: int) -> tuple[Value, ...]:
    casts = ", ".join(f"CAST({queries.quote(column)} AS BLOB)" for column in columns)
    sql = queries.fill(queries.statement("apply", "key-of-row").replace("{key}", casts), table=table)
    (row,) = connection.execute(sql, {"rowid": rowid}).fetchall()
    return tuple(row)
