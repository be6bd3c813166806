"""Take full-text indexes away and make them anew, or mend them, inside the caller's transaction; changes no message.

The order is: `begin` before anything changes a message, `finish` after the last change. In between the indexes that are made anew
are not there, and no trigger feeds them. None of this is recorded: an index is made from messages, so an undo leaves it as it is.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

import apsw

from . import queries, search_index
from .file_sql import run_one
from .model import CouldNotLook, RolledBack, SearchWork, Step
from .queries import quote
from .search_check import check
from .search_decision import NO_MARK, IndexUpkeep, decide
from .search_definition import SearchIndex, definitions
from .search_entries import KnownRule, rule_of_new_rows
from .search_layouts import parts, wanted
from .search_sql import names, run
from .search_survey import MARKS, beside, gap_of
from .shape import Shape, read_shape

DEFAULT_RULE: KnownRule = "stops"
"""How texts with a NUL byte are indexed where no row tells: as the engines do that most stores run on."""


@dataclass(slots=True)
class Remaking:
    """What `begin` left for `finish` to do. `rebuilt` are the names of the indexes made anew, in the end."""

    items: list[IndexUpkeep] = field(default_factory=list)
    mended: tuple[str, ...] = ()
    views: list[tuple[str, str]] = field(default_factory=list)
    rebuilt: tuple[str, ...] = ()
    changed: bool = False


def works(steps: Iterable[Step]) -> tuple[SearchWork, ...]:
    """What the steps do to search indexes, in order."""
    return tuple(work for step in steps for work in step.search)


def begin(connection: apsw.Connection, shape: Shape, steps: Iterable[Step]) -> Remaking:
    """Take away what is made anew and what is left over, and the marks. Raises RolledBack where that cannot be done."""
    asked = works(steps)
    remaking = Remaking(changed=bool(asked))
    gone = {work.index for work in asked if work.work == "remove"}
    remade = {work.index for work in asked if work.work == "remake"} - gone
    for name in sorted(remade):
        _set_aside(connection, shape, name, remaking)
    for name in sorted(remade | gone):
        take_away(connection, shape, name)
    leftovers = {table for work in asked for table in work.leftovers}
    for table in sorted(leftovers & set(read_shape(connection).tables)) if leftovers else ():
        _drop(connection, table)
    if keys := sorted({key for work in asked for key in work.marks}):
        run(connection, "remove_marks", {"keys": json.dumps(keys)})
    remaking.mended = tuple(sorted({work.index for work in asked if work.work == "mend"} - remade - gone))
    return remaking


def finish(connection: apsw.Connection, remaking: Remaking) -> None:
    """Make the indexes anew from the messages as they are now, and mend the others; a mended one is checked."""
    for _name, sql in remaking.views:
        run_one(connection, sql)
    for item in remaking.items:
        _make(connection, item)
    made = [item.index.name for item in remaking.items]
    for name in remaking.mended:
        if not _mend(connection, name):
            again = Remaking()
            shape = read_shape(connection)
            _set_aside(connection, shape, name, again)
            take_away(connection, shape, name)
            finish(connection, again)
            made.append(name)
    remaking.rebuilt = tuple(sorted(made))


def _set_aside(connection: apsw.Connection, shape: Shape, name: str, remaking: Remaking) -> None:
    """Note how an index is made anew, as long as its old rows can tell."""
    found = wanted(shape, name)
    if found.index is None or found.refused:
        raise RolledBack(f"the search index {name} cannot be made anew: {found.refused}; nothing was changed")
    if not connection.fts5_tokenizer_available(found.index.tokenizer):
        raise RolledBack(
            f"the search index {name} needs the tokenizer {found.index.tokenizer}, which is not here; nothing was changed"
        )
    index = found.index
    with beside(connection) as looking:
        rule, settings = _rule(looking, index), _settings(looking, index)
    remaking.items.append(IndexUpkeep(index, "rebuild", "asked for", rule=rule, settings=settings))
    remaking.views += [view for view in found.views if view not in remaking.views]


def _rule(connection: apsw.Connection, index: SearchIndex) -> KnownRule:
    if not index.trigram:
        return ""
    try:
        return rule_of_new_rows(connection, index) or DEFAULT_RULE
    except (apsw.Error, UnicodeDecodeError):
        return DEFAULT_RULE  # of a damaged index no row can be asked


def _settings(connection: apsw.Connection, index: SearchIndex) -> tuple[tuple[str, object], ...]:
    try:
        return tuple((name, value) for name, value in run(connection, "settings", parts=names(index)))
    except (apsw.Error, UnicodeDecodeError):
        return ()  # what cannot be read is not worth more than what FTS5 does by itself


def take_away(connection: apsw.Connection, shape: Shape, name: str) -> None:
    """Drop an index with its triggers: as a whole, or table by table where FTS5 cannot open it."""
    for index in definitions(shape):
        if index.name == name:
            for trigger, _sql in (*index.triggers, *index.wrong_triggers):
                run(connection, "drop_trigger", parts={"trigger": quote(trigger)})
    if name in shape.tables and not _dropped_whole(connection, name):
        _forget(connection, name)
    for table in parts(read_shape(connection), name):
        _drop(connection, table)


def _dropped_whole(connection: apsw.Connection, name: str) -> bool:
    try:
        with connection:
            run(connection, "drop_index", parts={"index": quote(name)})
    except apsw.Error:
        return False
    return True


def _forget(connection: apsw.Connection, name: str) -> None:
    with _open_schema(connection):
        run(connection, "forget_index", {"index": name})


@contextmanager
def _open_schema(connection: apsw.Connection) -> Iterator[None]:
    """Let the schema table be written for one statement: an index that FTS5 cannot open cannot be dropped otherwise."""
    defensive = connection.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, -1)
    connection.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, 0)
    connection.execute("PRAGMA writable_schema = ON")
    try:
        yield
    finally:
        connection.execute("PRAGMA writable_schema = RESET")
        connection.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, defensive)


def _drop(connection: apsw.Connection, table: str) -> None:
    try:
        run(connection, "drop_table", parts={"table": quote(table)})
    except apsw.Error as error:
        raise RolledBack(
            f"{table}: its pages cannot be given back ({error}); nothing was changed; "
            "hermes-dbtools salvage makes a file without them"
        ) from error


def _make(connection: apsw.Connection, item: IndexUpkeep) -> None:
    """Fill an index by the marks that its triggers will obey, so by those that are still there."""
    marks = _marks(connection, *MARKS, item.index.head_mark)
    item = replace(item, gap=gap_of(item.index, marks), head_mark=marks.get(item.index.head_mark, NO_MARK))
    search_index.refill(connection, item)
    give_triggers(connection, item.index)


def give_triggers(connection: apsw.Connection, index: SearchIndex) -> None:
    """Make each trigger of an index that is not there by its very text; another one in its place goes."""
    present = read_shape(connection).triggers
    for name, sql in index.triggers:
        if name in present and present[name].sql == sql:
            continue
        if name in present:
            run(connection, "drop_trigger", parts={"trigger": quote(name)})
        run_one(connection, sql)


def _marks(connection: apsw.Connection, *keys: str) -> dict[str, int]:
    return {
        str(key): int(number or 0) for key, number in run(connection, "marks", {"keys": json.dumps(keys)})
    }


def _mend(connection: apsw.Connection, name: str) -> bool:
    """Bring in what is missing and take out what is left; False where the index is not right afterwards."""
    shape = read_shape(connection)
    index = next(index for index in definitions(shape) if index.name == name)
    progress, high_water = gap_of(index, _marks(connection, *MARKS))
    connection.execute(queries.statement("apply", "touched-table"))
    connection.execute(queries.statement("apply", "forget-touched"))
    bindings = {"progress": progress, "high_water": high_water}
    for block in ("touch_missing", "touch_left"):
        run(connection, block, bindings, names(index))
    if not run(connection, "touched_count")[0][0]:
        return True
    upkeep = decide(connection, shape, default_rule=DEFAULT_RULE)
    mine = replace(upkeep, indexes=tuple(item for item in upkeep.indexes if item.index.name == name))
    if mine.mode != "touch" or mine.needs_tokenizer:
        return False
    try:
        with connection:
            search_index.begin_change(connection, mine)
            search_index.end_change(connection, mine)
    except apsw.Error:
        return False  # what is in it stands in the way of what is missing
    try:
        return not check(connection, index).problem
    except CouldNotLook:
        return False  # without room to compare the entries, a new index is the safe answer
