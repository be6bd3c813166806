"""Say how a full-text index is to be made anew: as it is, and what it lost as its layout has it; opens no store.

A layout is what the releases that have it give a new file: the store's own fixture scripts are the reference.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache

import apsw

from . import known
from .fixtures.shapes import script
from .search_definition import SearchIndex, definitions, event
from .shape import Shape, read_shape

SHAPES = {"inline": "22", "external 1": "25", "external 2": "30", "external 3": "31"}
"""The shape of a fixture whose indexes have the layout."""

NO_LAYOUT = "the layout that it had is not known"


@dataclass(frozen=True, slots=True)
class Layout:
    """The indexes of one layout with their triggers, and the text of each view that an index reads, by name."""

    indexes: Mapping[str, SearchIndex]
    views: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Wanted:
    """An index as it should be. `views` are those that the file lacks; `refused` says why it cannot be made, or is ''."""

    index: SearchIndex | None
    layout: str
    views: tuple[tuple[str, str], ...] = ()
    refused: str = ""


@cache
def layout(name: str) -> Layout:
    """The layout of this name. Raises KeyError for one that is not known."""
    connection = apsw.Connection(":memory:")
    try:
        connection.execute(script(f"shape_{SHAPES[name]}"))
        shape = read_shape(connection)
    finally:
        connection.close()
    indexes = {index.name: index for index in definitions(shape)}
    views = {index.content: shape.tables[index.content].sql for index in indexes.values() if index.reads_view}
    return Layout(indexes, views)


def wanted(shape: Shape, name: str) -> Wanted:
    """How the index of this name should be in this file, whether its virtual table is there or not."""
    present = next((index for index in definitions(shape) if index.name == name), None)
    kind = _lost_layout(shape, name) if present is None else layout_of(shape, present)
    known_as = layout(kind).indexes.get(name) if kind in SHAPES else None
    if present is None:
        return _with_view(shape, known_as, kind) if known_as else Wanted(None, kind, refused=NO_LAYOUT)
    index = _with_triggers(present, known_as)
    if index.missing_triggers:
        return Wanted(index, kind, refused=NO_LAYOUT)
    return _with_view(shape, index, kind)


def layout_of(shape: Shape, index: SearchIndex) -> str:
    """`inline`, `external 1` to `external 3`, or `external` for one of no known layout."""
    if index.inline:
        return "inline"
    fitting = [
        kind for kind in SHAPES if kind != "inline" and _alike(layout(kind).indexes.get(index.name), index)
    ]
    if shape.search_layout in fitting:
        return shape.search_layout
    return fitting[0] if fitting else "external"


def parts(shape: Shape, name: str) -> tuple[str, ...]:
    """The tables that FTS5 keeps an index in, those that are there."""
    return tuple(table for tail in known.SHADOW_TAILS if (table := f"{name}_{tail}") in shape.tables)


def lost_parts(shape: Shape, index: SearchIndex) -> tuple[str, ...]:
    """The tables of an index that are not there; an index of external text has no `_content`."""
    tails = [tail for tail in known.SHADOW_TAILS if tail != "content" or index.inline]
    return tuple(table for tail in tails if (table := f"{index.name}_{tail}") not in shape.tables)


def _alike(one: SearchIndex | None, other: SearchIndex) -> bool:
    return one is not None and (one.columns, one.content) == (other.columns, other.content)


def _lost_layout(shape: Shape, name: str) -> str:
    """The layout of an index of which only tables are left, '' where nothing tells it."""
    if f"{name}_content" in shape.tables:
        return "inline"
    version = shape.meta.get("fts_storage_version", "")
    if f"external {version}" in SHAPES:
        return f"external {version}"
    return next((layout_of(shape, index) for index in definitions(shape) if index.name != name), "")


def _with_triggers(index: SearchIndex, known_as: SearchIndex | None) -> SearchIndex:
    """The index with triggers for every event, where its layout has them."""
    if known_as is None or not index.missing_triggers:
        return index
    missing = index.missing_triggers
    added = tuple((name, sql) for name, sql in known_as.triggers if event(name, sql) in missing)
    index = replace(index, triggers=tuple(sorted((*index.triggers, *added))), missing_triggers=())
    if "INSERT" in missing:
        index = replace(
            index,
            gap_marks=known_as.gap_marks,
            head_limit=known_as.head_limit,
            head_mark=known_as.head_mark,
        )
    return index


def _with_view(shape: Shape, index: SearchIndex, kind: str) -> Wanted:
    if not index.content or index.content in shape.tables:
        return Wanted(index, kind, refused=index.unknown)
    view = layout(kind).views.get(index.content) if kind in SHAPES else None
    if view is None:
        return Wanted(index, kind, refused=index.unknown or NO_LAYOUT)
    index = replace(index, unknown="", head_limit=None, head_mark="")  # the view itself cuts what is cut
    return Wanted(index, kind, ((index.content, view),))
