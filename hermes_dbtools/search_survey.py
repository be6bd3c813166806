"""What the search family asks of a file, asked once: each index, its parts, marks, missing and left rows; writes nothing."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import apsw

from . import known
from .connections import connect
from .queries import quote
from .search_decision import NO_MARK
from .search_definition import SearchIndex, definitions
from .search_layouts import Wanted, lost_parts, parts, wanted
from .search_segments import misfit
from .search_sql import names, rows, run
from .shape import Shape

if TYPE_CHECKING:
    from .damage._declare import ScanContext

MARKS = (
    "fts_stale",
    "fts_rebuild_high_water",
    "fts_rebuild_progress",
    "fts_rebuild_deferral",
    "fts_cjk_stale",
    "fts_cjk_rebuild_high_water",
    "fts_cjk_rebuild_progress",
)
"""Keys of `state_meta` that say an index is not whole. `fts_optimize_available` only offers another layout."""

RANGES = 20
"""Ranges of missing ids that are listed; all are counted."""

_LEFTOVER = re.compile(
    rf"(?P<index>{known.DEMOTED_INDEX}|messages_fts(?:_\w+)?)_(?:{'|'.join(known.SHADOW_TAILS)})"
)
"""Tables of an index, also those that the store demoted: it renames them before it takes them away by pieces."""

Gap = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class Place:
    """One index that is there, or of which something is left.

    `trouble` is the first thing that is wrong with its tables, or what a deep check said; '' where nothing is.
    """

    name: str
    index: SearchIndex | None
    wanted: Wanted
    parts: tuple[str, ...]
    lost: tuple[str, ...]
    tokenizer_missing: bool
    trouble: str

    @property
    def usable(self) -> bool:
        """Whether its rows can be counted: all of it is there and nothing is wrong with its tables."""
        return self.index is not None and not self.lost and not self.trouble and not self.index.unknown


@dataclass(frozen=True, slots=True)
class Content:
    """The rows of one index: how many should be in and are, which ranges of ids are missing, which entries are left."""

    expected: int
    indexed: int
    missing: int
    left: int
    gaps: tuple[Gap, ...]
    left_gaps: tuple[Gap, ...]
    waiting: int


@dataclass(slots=True)
class Survey:
    """State: what was asked and answered of one file. `after`: it was changed by the very connection that asks."""

    after: bool = False
    _places: tuple[Place, ...] | None = None
    _contents: dict[str, Content] = field(default_factory=dict)
    _marks: dict[str, int] | None = None
    damaged: dict[str, str] = field(default_factory=dict)
    """What a deep check said of an index, by name."""

    @property
    def begun(self) -> bool:
        """Whether anything was asked."""
        return self._places is not None

    def places(self, context: ScanContext) -> tuple[Place, ...]:
        """Every known index that is there or of which something is left, in name order."""
        if self._places is None:
            with beside(context.connection, after=self.after) as looking:
                self._places = tuple(_places(looking, context.shape))
        return self._places

    def marks(self, context: ScanContext) -> Mapping[str, int]:
        """The marks that are set."""
        if self._marks is None:
            found = run(context.connection, "marks", {"keys": json.dumps(MARKS)})
            self._marks = {str(key): int(number or 0) for key, number in found}
        return self._marks

    def content(self, context: ScanContext, place: Place) -> Content:
        """The rows of an index that is usable."""
        if place.name not in self._contents:
            assert place.index is not None
            self._contents[place.name] = _content(
                context.connection, place.index, self.marks(context), trust_indexes=context.trust_indexes
            )
        return self._contents[place.name]

    def counted(self, place: Place) -> Content | None:
        """The rows of an index, where they were asked for."""
        return self._contents.get(place.name)


def leftovers(shape: Shape) -> dict[str, tuple[str, ...]]:
    """The tables of indexes that no release has under that name, by that name: what a migration left."""
    indexes = {index.name for index in definitions(shape)}
    found: dict[str, list[str]] = {}
    for name, table in sorted(shape.tables.items()):
        match = _LEFTOVER.fullmatch(name)
        if match is not None and match["index"] not in known.SEARCH_TABLES and match["index"] not in indexes:
            if match["index"] in shape.tables:
                found.setdefault(match["index"], [match["index"]])
            elif table.kind != "virtual":
                found.setdefault(match["index"], []).append(name)
    return {name: tuple(tables) for name, tables in found.items()}


def gap_of(index: SearchIndex, marks: Mapping[str, int]) -> tuple[int, int]:
    """The ids (above, up to) that a refill in progress will bring, as the triggers of the index read its marks."""
    high, progress = index.gap_marks
    if not high or high not in marks:
        return (0, 0)
    return (marks.get(progress, NO_MARK), marks[high])


def table_bytes(connection: apsw.Connection, tables: Iterable[str]) -> int:
    """Bytes of the pages of some tables, 0 where they cannot be walked."""
    try:
        return int(run(connection, "table_bytes", {"tables": json.dumps(list(tables))})[0][0])
    except apsw.Error:
        return 0


@contextmanager
def beside(connection: apsw.Connection, *, after: bool = False) -> Iterator[apsw.Connection]:
    """A connection that may run into a damaged page: a transaction of one that did cannot write any more (SQLite 3.54.1)."""
    if after or connection.readonly("main"):
        yield connection
        return
    looking = connect(Path(connection.filename), "mode=ro")
    try:
        yield looking
    finally:
        looking.close()


def _places(connection: apsw.Connection, shape: Shape) -> Iterator[Place]:
    indexes = {index.name: index for index in definitions(shape)}
    for name in sorted({*indexes, *known.SEARCH_TABLES}):
        index, tables = indexes.get(name), parts(shape, name)
        if index is None and not tables:
            continue
        lost = () if index is None else lost_parts(shape, index)
        missing = index is not None and not connection.fts5_tokenizer_available(index.tokenizer)
        trouble = _trouble(connection, tables)
        if index is not None and not trouble and not lost and not missing:
            trouble = _unreadable(connection, index)
        yield Place(name, index, wanted(shape, name), tables, lost, missing, trouble)


def _trouble(connection: apsw.Connection, tables: Iterable[str]) -> str:
    """The first line that `quick_check` says against the pages of some tables, or ''."""
    for table in tables:
        try:
            for (said,) in connection.execute(f"PRAGMA quick_check({quote(table)})"):
                lines = [
                    line for line in str(said).splitlines() if line != "ok" and not line.startswith("***")
                ]
                if lines:
                    return f"{table}: {lines[0]}"
        except apsw.Error as error:
            return f"{table}: {error}"
    return ""


def _unreadable(connection: apsw.Connection, index: SearchIndex) -> str:
    """Why the index cannot be opened, asked or written, or ''."""
    try:
        run(connection, "probe", parts=names(index))
        if index.inline and run(connection, "lost_texts", parts=names(index))[0][0]:
            return f"{index.name}_content: texts of entries are not there"
        return misfit(connection, index)
    except apsw.Error as error:
        return f"{index.name}: {error}"


def _content(
    connection: apsw.Connection, index: SearchIndex, marks: Mapping[str, int], *, trust_indexes: bool
) -> Content:
    progress, high_water = gap_of(index, marks)
    bindings = {"progress": progress, "high_water": high_water}
    filled, view = names(index), index.reads_view
    missing = 0
    gaps: tuple[Gap, ...] = ()
    if run(connection, "absent" if trust_indexes else "absent_unindexed", bindings, filled)[0][0]:
        block = "missing_rows" if view else "missing_messages"
        missing, gaps = _ranges(rows(connection, block, bindings, filled))
    indexed = int(run(connection, "entry_total", parts=filled)[0][0])
    left = 0
    left_gaps: tuple[Gap, ...] = ()
    if view or high_water or indexed != int(run(connection, "message_total")[0][0]) - missing:
        left, left_gaps = _ranges(_adjoining(rows(connection, "left", bindings, filled)))
    waiting = 0
    if high_water:
        waiting = int(run(connection, "waiting_rows" if view else "waiting", bindings, filled)[0][0])
    return Content(indexed - left + missing + waiting, indexed, missing, left, gaps, left_gaps, waiting)


def _adjoining(found: Iterable[tuple[Any, ...]]) -> Iterator[tuple[int, bool]]:
    """Ids, and whether each begins a new range of ids without a hole."""
    before: int | None = None
    for (id_,) in found:
        yield id_, before is None or id_ != before + 1
        before = id_


def _ranges(found: Iterable[tuple[Any, ...]]) -> tuple[int, tuple[Gap, ...]]:
    """How many ids there are, and the first ranges of them."""
    count = 0
    ranges: list[list[int]] = []
    for id_, begins in found:
        count += 1
        if begins and len(ranges) <= RANGES:
            ranges.append([id_, id_, 0])
        if len(ranges) <= RANGES:
            ranges[-1][1], ranges[-1][2] = id_, ranges[-1][2] + 1
    return count, tuple((first, last, rows_) for first, last, rows_ in ranges[:RANGES])
