"""What each known shape of the store has, by the number that its store stamps; reads `known_shapes.toml` and no database.

Several shapes share a number, and an upgraded file differs from a fresh one, so only what every shape of a number has is
expected of a file: sets of names, never an order, and nothing of what a store makes at first use.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from types import MappingProxyType
from typing import Any

Names = Mapping[str, frozenset[str]]
"""Names of columns or indexes by table."""

FACTS = "known_shapes.toml"


@dataclass(frozen=True, slots=True)
class KnownShape:
    """One shape: all its columns and indexes by table. `number` is None where its store stamps none of its own."""

    name: str
    number: int | None
    columns: Names
    indexes: Names


@dataclass(frozen=True, slots=True)
class Expected:
    """The columns that a file of a number must have. `number` is that of the known shapes, at most the file's own."""

    number: int
    columns: Names


@dataclass(frozen=True, slots=True)
class Facts:
    """All that is known: shapes, oldest first; the primary key of each table, and the defaults of NOT NULL columns."""

    shapes: tuple[KnownShape, ...]
    keys: Mapping[str, frozenset[str]]
    rekeyed: Mapping[str, int]
    defaults: Mapping[str, Mapping[str, str]]


@cache
def facts() -> Facts:
    """The facts of the shipped file."""
    document = tomllib.loads((files("hermes_dbtools") / FACTS).read_text("utf-8"))
    shapes: dict[str, KnownShape] = {}
    for table in document["shape"]:
        base = shapes.get(table.get("follows", ""))
        shapes[table["name"]] = KnownShape(
            table["name"],
            table.get("number"),
            _joined(base.columns if base else {}, table.get("columns", {})),
            _joined(base.indexes if base else {}, table.get("indexes", {})),
        )
    return Facts(
        tuple(shapes.values()),
        MappingProxyType({name: frozenset(key) for name, key in document["keys"].items()}),
        MappingProxyType(document["rekeyed"]),
        MappingProxyType(document["defaults"]),
    )


@cache
def numbers() -> tuple[int, ...]:
    """The numbers of known shapes, lowest first."""
    return tuple(sorted({shape.number for shape in facts().shapes if shape.number is not None}))


@cache
def columns() -> Names:
    """Columns that some known shape has, by table."""
    found: Names = {}
    for shape in facts().shapes:
        found = _joined(found, shape.columns)
    return MappingProxyType(dict(found))


@cache
def expected(number: int) -> Expected | None:
    """What every shape of the highest known number up to this one has; None below the lowest, where nothing is known."""
    known = max((one for one in numbers() if one <= number), default=None)
    if known is None:
        return None
    return Expected(known, _common([shape.columns for shape in facts().shapes if shape.number == known]))


def indexes_of(number: int, found: Names) -> Names:
    """The indexes of every known shape up to a number of which a file has all columns: what made them makes these too."""
    indexes: Names = {}
    for shape in facts().shapes:
        if (shape.number or 0) <= number and all(
            names <= found.get(table, frozenset()) for table, names in shape.columns.items()
        ):
            indexes = _joined(indexes, shape.indexes)
    return indexes


def steps(number: int) -> Iterator[Expected]:
    """What each known number up to this one brought: the columns that the number before it did not ask for."""
    before: Names = {}
    for known in numbers():
        now = expected(known)
        if known > number or now is None:
            return
        yield Expected(known, _less(now.columns, before))
        before = now.columns


def _joined(one: Names, other: Mapping[str, Any]) -> Names:
    return {
        table: one.get(table, frozenset()) | frozenset(other.get(table, ())) for table in {**one, **other}
    }


def _common(all_of: list[Names]) -> Names:
    first, *rest = all_of
    found = {
        table: names.intersection(*(other.get(table, frozenset()) for other in rest))
        for table, names in sorted(first.items())
    }
    return {table: names for table, names in found.items() if names}


def _less(one: Names, other: Names) -> Names:
    found = {table: names - other.get(table, frozenset()) for table, names in one.items()}
    return {table: names for table, names in found.items() if names}
