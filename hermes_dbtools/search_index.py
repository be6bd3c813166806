"""Keep the full-text indexes right while rows of messages change; never changes a message.

The store's own triggers stand aside while our engine works: they would hand a trigram index text that
SQLite 3.40.1 cut at a NUL byte and 3.54.1 does not (see `nul_tokenizer`). Entries leave before the change
by the very text they came in with and come in afterwards by the file's own definition, or, where that is
cheaper, the whole index is made anew. The order is

    upkeep = decide(connection, shape)          # temp.touched_messages(id INTEGER PRIMARY KEY) is filled
    register_tokenizer(connection, upkeep)      # for the rest of the connection's life
    begin_change(connection, upkeep)
    …                                           # the rows of messages change
    end_change(connection, upkeep)

all inside one transaction of the caller; a ROLLBACK at any place leaves everything as it was.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress

import apsw

from . import nul_tokenizer
from .file_sql import run_one
from .queries import quote
from .search_decision import IndexUpkeep, Upkeep, decide, rebuilt_anew, with_rule_of_new_rows
from .search_definition import SearchIndex, definitions, watched_columns
from .search_entries import KnownRule, find_left
from .search_sql import names, run, texts
from .shape import Shape

__all__ = [
    "IndexUpkeep",
    "SearchIndex",
    "Upkeep",
    "begin_change",
    "decide",
    "end_change",
    "read_indexes",
    "refill",
    "register_tokenizer",
    "unavailable_tokenizers",
    "watched_columns",
]

LOWEST, HIGHEST = -(2**63), 2**63 - 1

ROOM, USUAL_ROOM = 64 * 1024 * 1024, 1024 * 1024
"""Bytes that FTS5 gathers in memory before it writes a segment, for many entries and as it does by itself.
400,000 entries of 200 bytes left in 16.5 s with the first and in 26.7 s with the second (SQLite 3.54.1)."""

MANY_ENTRIES = 20_000


def read_indexes(connection: apsw.Connection, shape: Shape) -> tuple[SearchIndex, ...]:  # noqa: ARG001
    """Every full-text index of messages, in name order; opens none of them."""
    return definitions(shape)


def unavailable_tokenizers(connection: apsw.Connection, shape: Shape) -> tuple[tuple[str, str], ...]:
    """The (index, tokenizer) pairs this connection has no tokenizer for: rows can be read, none written."""
    return tuple(
        (index.name, index.tokenizer)
        for index in definitions(shape)
        if not connection.fts5_tokenizer_available(index.tokenizer)
    )


def register_tokenizer(connection: apsw.Connection, upkeep: Upkeep) -> None:
    """Give the connection the tokenizer a removal needs, if one does; before `begin_change`."""
    if upkeep.needs_tokenizer:
        nul_tokenizer.register(connection)


def begin_change(connection: apsw.Connection, upkeep: Upkeep) -> None:
    """Put the triggers aside and take the touched entries out, or drop the index; in a transaction.

    Raises RuntimeError when `register_tokenizer` was forgotten.
    """
    if upkeep.needs_tokenizer and not nul_tokenizer.stops_at_nul(connection):
        raise RuntimeError("register_tokenizer must run before begin_change")
    for name in _trigger_texts(upkeep):
        run(connection, "drop_trigger", parts={"trigger": quote(name)})
    for item in upkeep.indexes:
        if item.mode == "rebuild":
            run(connection, "drop_index", parts=names(item.index))
        elif item.mode == "touch":
            many = run(connection, "entry_count", {"index": item.index.name})[0][0] > MANY_ENTRIES
            with _room(connection, item.index, many=many):
                _remove(connection, item)


def end_change(connection: apsw.Connection, upkeep: Upkeep) -> None:
    """Bring the entries of the changed messages in and the triggers back, byte for byte as they were."""
    for item in upkeep.indexes:
        if item.mode == "rebuild":
            refill(connection, item)
        elif item.mode == "touch":
            _mend(connection, item, upkeep.default_rule)
    for text in _trigger_texts(upkeep).values():
        run_one(connection, text)


def refill(connection: apsw.Connection, item: IndexUpkeep) -> None:
    """Make an index that is not there, by its own text and settings, and bring in every row of its source."""
    run_one(connection, item.index.create_sql)
    for name, value in item.settings:
        with suppress(apsw.SQLError):  # what FTS5 does not take was never set: that page is another's
            run(connection, "restore_setting", {"name": name, "value": value}, names(item.index))
    with _room(connection, item.index, many=True):
        _add(connection, item, "add_all")


def _mend(connection: apsw.Connection, item: IndexUpkeep, default_rule: KnownRule) -> None:
    """Bring in what belongs in now; take out what a change of its session has put out of the view."""
    if item.index.reads_view:
        if not find_left(connection, item.index):
            item = rebuilt_anew(connection, item, "an entry of unknown text", default_rule)
            run(connection, "drop_index", parts=names(item.index))
            refill(connection, item)
            return
        _remove(connection, item)
    many = run(connection, "touched_count")[0][0] > MANY_ENTRIES
    with _room(connection, item.index, many=many):
        _add(connection, with_rule_of_new_rows(connection, item, default_rule), "add_touched")


def _remove(connection: apsw.Connection, item: IndexUpkeep) -> None:
    index = item.index
    if index.inline:
        run(connection, "remove_inline", {"index": index.name}, names(index))
        return
    for (form,) in run(connection, "forms", {"index": index.name}):
        origin, _, stopped = form.partition(" ")
        mark = {"cut": LOWEST, "whole": HIGHEST}.get(origin, item.head_mark)
        parts = {**names(index), "texts": texts(index, stopped=bool(stopped))}
        if origin == "messages":
            parts |= {"source": quote("messages"), "rowid": quote("id")}
        bindings = {"index": index.name, "form": form, "limit": index.head_limit, "mark": mark}
        run(connection, "remove_external", bindings, parts)


def _add(connection: apsw.Connection, item: IndexUpkeep, block: str) -> None:
    index = item.index
    progress, high_water = item.gap
    bindings = {
        "progress": progress,
        "high_water": high_water,
        "limit": index.head_limit,
        "mark": item.head_mark,
    }
    run(connection, block, bindings, {**names(index), "texts": texts(index, stopped=item.stopped)})


@contextmanager
def _room(connection: apsw.Connection, index: SearchIndex, *, many: bool) -> Iterator[None]:
    """Give FTS5 more memory while many entries change. The usual amount is set again; a ROLLBACK does the same."""
    if not many:
        yield
        return
    settings = dict(run(connection, "settings", parts=names(index)))
    run(connection, "restore_setting", {"name": "hashsize", "value": ROOM}, names(index))
    yield
    before = settings.get("hashsize", USUAL_ROOM)
    run(connection, "restore_setting", {"name": "hashsize", "value": before}, names(index))


def _trigger_texts(upkeep: Upkeep) -> dict[str, str]:
    """Each trigger once, though one may feed two indexes."""
    return {
        name: sql
        for item in upkeep.indexes
        for name, sql in (*item.index.triggers, *item.index.wrong_triggers)
    }
