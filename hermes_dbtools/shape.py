"""Find out what one file really has: tables, columns, keys, search layout; never judges whether that is damage.

`schema_version` alone says little: at least six shapes share the numbers 30 and 31, and an upgraded file differs from
a fresh one of the same number. Everything here is asked of the file.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import Any

import apsw

from . import known, known_shapes, queries
from .model import CouldNotLook, ShapeSummary
from .queries import quote

SEARCH_MARKS = (
    "fts_storage_version",
    "fts_optimize_available",
    "fts_stale",
    "fts_rebuild_high_water",
    "fts_rebuild_progress",
    "fts_tool_full_content_high_water",
)


@dataclass(frozen=True, slots=True)
class Column:
    """One column as `PRAGMA table_xinfo` gives it; `pk` is its place in the primary key, 0 for none."""

    name: str
    type: str
    not_null: bool
    default: str | None
    pk: int


@dataclass(frozen=True, slots=True)
class ForeignKey:
    """One declared foreign key; `id` is the number that `foreign_key_check` reports."""

    id: int
    columns: tuple[str, ...]
    parent: str
    parent_columns: tuple[str, ...]
    on_delete: str


@dataclass(frozen=True, slots=True)
class Table:
    """A table or view. Columns of virtual tables are not asked: a missing tokenizer would make that fail."""

    name: str
    kind: str
    columns: Mapping[str, Column]
    primary_key: tuple[str, ...]
    foreign_keys: tuple[ForeignKey, ...]
    without_rowid: bool
    root_page: int
    sql: str


@dataclass(frozen=True, slots=True)
class Trigger:
    """A trigger with the text that made it."""

    name: str
    table: str
    sql: str


@dataclass(frozen=True)
class Shape:
    """What one file has. Names are compared as SQLite does for ASCII: callers use the lower-case names of the store."""

    schema_version: int | None
    tables: Mapping[str, Table]
    indexes: Mapping[str, str]
    triggers: Mapping[str, Trigger]
    meta: Mapping[str, str]
    root_pages: Mapping[int, tuple[str, str]] = field(default_factory=dict)

    def has(self, need: str) -> bool:
        """Whether the file has `table`, `table.column`, `index:<name>` or `view:<name>`."""
        if need.startswith("index:"):
            return need.removeprefix("index:") in self.indexes
        if need.startswith("view:"):
            table = self.tables.get(need.removeprefix("view:"))
            return table is not None and table.kind == "view"
        name, _, column = need.partition(".")
        table = self.tables.get(name)
        return table is not None and table.kind != "view" and (not column or column in table.columns)

    @property
    def canonical_tables(self) -> tuple[str, ...]:
        """Ordinary tables that hold facts: not views, virtual tables, their shadows or SQLite's own."""
        return tuple(
            name
            for name, table in sorted(self.tables.items())
            if table.kind == "table" and not name.startswith("sqlite_") and not self._shadow_name(name)
        )

    def text_columns(self, table: str) -> tuple[str, ...]:
        """Columns of a table that SQLite keeps text in, by its rule of declared types, in the order of the table."""
        return tuple(
            column.name
            for column in self.tables[table].columns.values()
            if "INT" not in column.type.upper()
            and any(word in column.type.upper() for word in ("CHAR", "CLOB", "TEXT"))
        )

    def _shadow_name(self, name: str) -> bool:
        base, _, tail = name.rpartition("_")
        known_base = base in known.SEARCH_TABLES or re.fullmatch(known.DEMOTED_INDEX, base) is not None
        return tail in known.SHADOW_TAILS and known_base

    @property
    def newer(self) -> str:
        """Why the file is newer than this tool knows (then everything is report-only), or ''."""
        return self.newer_marks[0][2] if self.newer_marks else ""

    @cached_property
    def newer_marks(self) -> tuple[tuple[str, str, str], ...]:
        """Every sign that the file is newer than this tool knows: table, a key for it, and the sign in words."""
        marks = []
        if self.schema_version is not None and self.schema_version > known.NEWEST_SCHEMA_VERSION:
            number = f"schema_version {self.schema_version} is above {known.NEWEST_SCHEMA_VERSION}, the newest known"
            marks.append(("schema_version", "schema_version", number))
        for name, columns in sorted(known_shapes.columns().items()):
            table = self.tables.get(name)
            marks += [
                (
                    name,
                    f"{name}.{column.name}",
                    f"{name}.{column.name} is unknown, NOT NULL and without a default",
                )
                for column in (table.columns.values() if table else ())
                if column.name not in columns and column.not_null and column.default is None and not column.pk
            ]
        return tuple(marks)

    @property
    def known(self) -> bool:
        """Whether repairs may be planned for this shape."""
        return not self.newer

    @property
    def search_layout(self) -> str:
        """`inline`, `external 1`, `external 2`, `external 3` or `none`; recognised by the index's own text."""
        table = self.tables.get("messages_fts")
        if table is None or table.kind != "virtual":
            return "none"
        if not re.search(r"\bcontent\s*=", table.sql, re.IGNORECASE):
            return "inline"
        if "messages_fts_src" in self.tables:
            return "external 3"
        return "external 2" if self.meta.get("fts_storage_version") == "2" else "external 1"

    @property
    def features(self) -> tuple[str, ...]:
        """The features that tell shapes apart, in a fixed order."""
        return tuple(name for name, need in known.FEATURES if self.has(need))

    def summary(self) -> ShapeSummary:
        """What a report says of this shape."""
        return ShapeSummary(self.schema_version, self.known, self.features, self.search_layout)


def read_shape(connection: apsw.Connection) -> Shape:
    """Ask the file what it has. Raises CouldNotLook when it is not a Hermes store; apsw errors pass through."""
    tables: dict[str, Table] = {}
    indexes: dict[str, str] = {}
    triggers: dict[str, Trigger] = {}
    roots: dict[int, tuple[str, str]] = {}
    kinds = {row[0]: (row[1], bool(row[2])) for row in _rows(connection, "kinds")}
    for kind, name, table_name, root_page, sql in _rows(connection, "objects"):
        if kind == "index":
            indexes[name] = table_name
        elif kind == "trigger":
            triggers[name] = Trigger(name, table_name, sql or "")
        else:
            table_kind, without_rowid = kinds.get(name, (kind, False))
            if (sql or "").upper().startswith("CREATE VIRTUAL"):
                table_kind = "virtual"
            tables[name] = _table(connection, name, table_kind, without_rowid, root_page or 0, sql or "")
        if root_page:
            roots[root_page] = (kind, name)
    shape = Shape(
        _schema_version(connection, tables),
        MappingProxyType(tables),
        MappingProxyType(indexes),
        MappingProxyType(triggers),
        MappingProxyType(_marks(connection, tables)),
        MappingProxyType(roots),
    )
    missing = [need for need in known.CORE if not shape.has(need)]
    if missing:
        raise CouldNotLook(f"not a Hermes store: it has no {missing[0]}")
    return shape


def _rows(connection: apsw.Connection, block: str, **bindings: str) -> list[tuple[Any, ...]]:
    return list(connection.execute(queries.statement("shape", block), bindings))


def _table(
    connection: apsw.Connection, name: str, kind: str, without_rowid: bool, root: int, sql: str
) -> Table:
    columns: dict[str, Column] = {}
    keys: list[ForeignKey] = []
    if kind != "virtual":
        quoted = quote(name)
        for row in connection.execute(f"PRAGMA table_xinfo({quoted})"):
            _cid, column, type_, not_null, default, pk, _hidden = row
            columns[column] = Column(column, type_ or "", bool(not_null), default, pk)
        keys = foreign_keys(connection, quoted)
    primary = tuple(c.name for c in sorted((c for c in columns.values() if c.pk), key=lambda c: c.pk))
    return Table(name, kind, MappingProxyType(columns), primary, tuple(keys), without_rowid, root, sql)


def foreign_keys(connection: apsw.Connection, quoted_table: str) -> list[ForeignKey]:
    """The declared foreign keys of a table; an omitted parent column list becomes an empty tuple."""
    grouped: dict[int, list[tuple[int, str, str, str | None, str]]] = {}
    for key, seq, parent, column, parent_column, _update, on_delete, _match in connection.execute(
        f"PRAGMA foreign_key_list({quoted_table})"
    ):
        grouped.setdefault(key, []).append((seq, parent, column, parent_column, on_delete))
    found = []
    for key, parts in sorted(grouped.items()):
        parts.sort()
        found.append(
            ForeignKey(
                key,
                tuple(part[2] for part in parts),
                parts[0][1],
                tuple(part[3] for part in parts if part[3] is not None),
                parts[0][4],
            )
        )
    return found


def _schema_version(connection: apsw.Connection, tables: Mapping[str, Table]) -> int | None:
    if "schema_version" not in tables or "version" not in tables["schema_version"].columns:
        return None
    with suppress(apsw.CorruptError):  # of the pages of that table: the structural gate says so
        for (version,) in _rows(connection, "version"):
            return version if isinstance(version, int) else None
    return None


def _marks(connection: apsw.Connection, tables: Mapping[str, Table]) -> dict[str, str]:
    if "state_meta" not in tables or not {"key", "value"} <= set(tables["state_meta"].columns):
        return {}
    marks: dict[str, str] = {}
    with suppress(apsw.CorruptError):  # as above
        for mark in SEARCH_MARKS:
            for (value,) in _rows(connection, "mark", key=mark):
                marks[mark] = value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
    return marks
