"""Say which objects of the schema two files do not share; compares by name and never by the order of columns."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from .. import known
from ..shape import Column, Shape, Table
from .model import ShapeChanges


def shape_changes(before: Shape, after: Shape) -> ShapeChanges:
    """What was added, went, or is another thing under the same name. Shadow tables of a search index are part of it."""
    old, new = _tables(before), _tables(after)
    both = sorted(set(old) & set(new))
    return ShapeChanges(
        tables_added=_only(new, old),
        tables_gone=_only(old, new),
        columns_added=tuple(
            f"{name}.{column}" for name in both for column in _only(new[name].columns, old[name].columns)
        ),
        columns_gone=tuple(
            f"{name}.{column}" for name in both for column in _only(old[name].columns, new[name].columns)
        ),
        columns_changed=tuple(change for name in both for change in _changed(old[name], new[name])),
        indexes_added=_only(_named(after.indexes), _named(before.indexes)),
        indexes_gone=_only(_named(before.indexes), _named(after.indexes)),
        triggers_added=_only(after.triggers, before.triggers),
        triggers_gone=_only(before.triggers, after.triggers),
        triggers_changed=tuple(
            name
            for name in sorted(set(before.triggers) & set(after.triggers))
            if _words(before.triggers[name].sql) != _words(after.triggers[name].sql)
        ),
    )


def _tables(shape: Shape) -> dict[str, Table]:
    shadows = {f"{table}_{tail}" for table in known.SEARCH_TABLES for tail in known.SHADOW_TAILS}
    return {
        name: table
        for name, table in shape.tables.items()
        if name not in shadows and not name.startswith("sqlite_")
    }


def _named(indexes: Collection[str]) -> list[str]:
    return [name for name in indexes if not name.startswith("sqlite_")]


def _only(these: Collection[str], others: Collection[str]) -> tuple[str, ...]:
    return tuple(sorted(set(these) - set(others)))


def _changed(before: Table, after: Table) -> Iterator[str]:
    """Columns that have another type, default, rule or place in the key; a change of the whole table is told by its kind."""
    if before.kind != after.kind:
        yield f"{before.name} ({before.kind}, now {after.kind})"
    for name in sorted(set(before.columns) & set(after.columns)):
        if _facts(before.columns[name]) != _facts(after.columns[name]):
            yield f"{before.name}.{name}"


def _facts(column: Column) -> tuple[str, bool, str | None, int]:
    return column.type.upper(), column.not_null, column.default, column.pk


def _words(sql: str) -> list[str]:
    return sql.replace('"', "").split()
