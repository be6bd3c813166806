"""Compare two states of one store, as before and after an upgrade; changes nothing in either."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import apsw

from .. import database, queries
from ..home import Home
from ..model import CouldNotLook, Severity
from ..shape import Shape, read_shape
from ..shown import shown
from ..sizes import path_text
from ..structure import check_structure
from .conversions import Upgrade
from .damages import Damages, looking
from .model import Comparison, OutOfView, ShapeChanges, Side, TableComparison
from .rows import FILE
from .rows_read import row_total, told
from .shapes import shape_changes
from .tables import compare_table
from .views import out_of_view

Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class CompareOptions:
    """How to compare. `damage`: also look for damage that is new. `fail_on` is about that damage; `now` is epoch seconds."""

    damage: bool = True
    fail_on: Severity | None = Severity.ERROR
    now: float = field(default_factory=time.time)


@dataclass(frozen=True, slots=True)
class _Rows:
    """What the rows and the schema of both files say."""

    before: Side
    after: Side
    tables: tuple[TableComparison, ...]
    shape: ShapeChanges
    out_of_view_count: int
    out_of_view: tuple[OutOfView, ...]
    blind: tuple[str, ...]


def compare(
    before: Home, after: Home, options: CompareOptions | None = None, progress: Progress = lambda _word: None
) -> Comparison:
    """Compare two stores. Raises CouldNotLook where one of them cannot be read or is no Hermes store."""
    options = options or CompareOptions()
    if _same_file(before, after):
        side = database.read(after.database, lambda reading: _side(reading, _opened(reading)))
        return Comparison(side, side, True, (), ShapeChanges(), 0, (), (), (), 0)

    if options.damage:
        rows, damages = _rows_and_damage(before, after, options.now, progress)
    else:
        damaged, total = _asked(before, after, progress)
        rows, damages = _rows(before, after, damaged, total, progress), Damages((), ())
    blind = (*rows.blind, *damages.blind)
    return Comparison(
        rows.before,
        rows.after,
        False,
        rows.tables,
        rows.shape,
        rows.out_of_view_count,
        rows.out_of_view,
        damages.new,
        blind,
        _exit_code(rows.tables, damages, options.fail_on, blind=bool(blind)),
    )


def _rows_and_damage(before: Home, after: Home, now: float, progress: Progress) -> tuple[_Rows, Damages]:
    with looking(before.database, after, now) as damage:
        damaged, total = _asked(before, after, progress, structure=not damage.structure)
        rows = _rows(before, after, damaged, total, progress)
        damages = damage.answer(progress)
    if damage.structure and damages.damaged != {}:
        known = _asked(before, after, progress)[0] if damages.damaged is None else damages.damaged
        rows = _rows(before, after, known, total, progress)
    return rows, damages


def _rows(before: Home, after: Home, damaged: Mapping[str, str], total: int, progress: Progress) -> _Rows:
    def look(earlier: database.Reading) -> _Rows:
        return database.read(after.database, lambda later: _look(earlier, later, damaged, total, progress))

    return database.read(before.database, look)


def _look(
    earlier: database.Reading,
    later: database.Reading,
    damaged: Mapping[str, str],
    total: int,
    progress: Progress,
) -> _Rows:
    """`damaged` names the tables with damaged pages, and in which file; `total` is how many rows there are, 0 if not known."""
    before, after = _opened(earlier), _opened(later)
    first, last = (earlier.connection, before), (later.connection, after)
    upgrade = Upgrade(before, after, later.connection)
    tables = []
    with told((earlier.connection, later.connection), total, progress) as reading:
        for name in sorted({*before.canonical_tables, *after.canonical_tables}):
            tally = reading.reading(name)
            if name in damaged:
                reason = f"its pages are damaged {damaged[name]} (HDB002)"
                tables.append(TableComparison(name, "could-not-look", reason))
            else:
                tables.append(compare_table(first, last, upgrade, name, tally))
    blind = [f"{table.table}: {table.reason}" for table in tables if table.status == "could-not-look"]
    progress("the lists of sessions")
    count = 0
    gone: tuple[OutOfView, ...] = ()
    try:
        lost = next((table.lost for table in tables if table.table == "sessions"), 0)
        count, gone = out_of_view(first, last, lost)
    except CouldNotLook as error:
        blind.append(f"the lists of sessions: {error}")
    except (apsw.Error, UnicodeDecodeError) as error:
        blind.append(f"the lists of sessions: {type(error).__name__}: {error}")
    return _Rows(
        _side(earlier, before),
        _side(later, after),
        tuple(tables),
        shape_changes(before, after),
        count,
        gone,
        tuple(blind),
    )


def _asked(
    before: Home, after: Home, progress: Progress, *, structure: bool = True
) -> tuple[dict[str, str], int]:
    """Tables with damaged pages and in which file, and how many rows both have, 0 where that is not known.

    A damaged page that is passed over would read as rows that are lost. A connection that ran into one makes no temporary table
    any more, so these are not used for rows. Rows are read without indexes, which do not count. Without `structure`, pages are
    for others to check.
    """

    def look(reading: database.Reading) -> tuple[frozenset[str], int]:
        shape = _opened(reading)
        total = row_total(reading.connection, shape)
        if not structure:
            return frozenset(), total
        gate = check_structure(reading.connection, shape, lambda table: progress(f"structure of {table}"))
        return frozenset(damage.table for damage in gate.damages if damage.kind != "index"), total

    (bad_before, one), (bad_after, other) = (database.read(home.database, look) for home in (before, after))
    damaged = {**dict.fromkeys(bad_before, "before"), **dict.fromkeys(bad_after, "after")}
    return damaged, one + other if one and other else 0


def _opened(reading: database.Reading) -> Shape:
    """The shape of an open file whose rows can be compared. Raises CouldNotLook where they cannot."""
    path = reading.state.path
    database.look_at_rows(reading)
    try:
        shape = read_shape(reading.connection)
        ((encoding,),) = reading.connection.execute(queries.statement(FILE, "encoding"))
    except CouldNotLook as error:
        raise CouldNotLook(f"{shown(path)}: {error}; name a state.db or a Hermes home") from None
    except (apsw.Error, UnicodeDecodeError) as error:
        raise CouldNotLook(
            f"{shown(path)}: the schema cannot be read ({error}); next: hermes-dbtools scan"
        ) from None
    if encoding != "UTF-8":
        raise CouldNotLook(f"{shown(path)}: its text is {encoding}; stores are UTF-8")
    return shape


def _side(reading: database.Reading, shape: Shape) -> Side:
    return Side(path_text(reading.state.path), reading.state.size, shape.summary())


def _same_file(before: Home, after: Home) -> bool:
    try:
        return before.database.samefile(after.database)
    except OSError:
        return False


def _exit_code(
    tables: tuple[TableComparison, ...], damages: Damages, fail_on: Severity | None, *, blind: bool
) -> int:
    if any(table.lost for table in tables):
        return 1
    if fail_on is not None and any(Severity[new.severity.upper()] >= fail_on for new in damages.new):
        return 1
    return 3 if blind else 0
