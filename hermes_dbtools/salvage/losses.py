"""Say what was lost of a table: which rows its indexes and its sequence prove that the new file lacks; changes no row."""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from dataclasses import dataclass

import apsw

from .. import queries
from ..damage._declare import printable, text
from .asking import number, rows
from .tables import TableForm
from .trees import HIGHEST, LOWEST, Tree

SQL = "salvage/losses"
BATCH = 100_000
RANGES = 1_000
SESSIONS = 1_000


@dataclass(frozen=True, slots=True)
class Losses:
    """What is known of lost rows. `lost` is exact where `proof` is `index`: an index was read whole and names every row.

    With `proof` `partly` an index gave some of its entries: at least `lost` rows are gone. `at_most` bounds the loss by the ids
    that are missing on unreadable pages, None where nothing bounds it. `ranges` are ids (first, last) of lost rows.
    """

    lost: int = 0
    proof: str = ""
    at_most: int | None = 0
    ranges: tuple[tuple[int, int], ...] = ()
    sessions: tuple[tuple[str, int], ...] = ()


def find(
    connection: apsw.Connection,
    reader: apsw.Connection | None,
    form: TableForm,
    tree: Tree,
    sequence: int | None,
) -> Losses:
    """What was lost of a table that could not be read whole; `reader` reads the copy, where SQLite can.

    `sequence` is the highest id the file had given away.
    """
    connection.execute(queries.statement(SQL, "make-known"))
    connection.execute(queries.statement(SQL, "forget-known"))
    proof = _known(connection, reader, form) if reader is not None else ""
    connection.execute(_sql("keep-lost", form))
    lost = number(connection, queries.statement(SQL, "lost"))
    ranges = rows(connection, queries.statement(SQL, "ranges"), {"limit": RANGES})
    at_most = lost if proof == "index" else _bound(connection, form, tree, sequence)
    sessions = (
        _by_session(connection, reader) if lost and reader is not None and form.name == "messages" else ()
    )
    return Losses(lost, proof, at_most, tuple((low, high) for low, high in ranges), sessions)


def _known(connection: apsw.Connection, reader: apsw.Connection, form: TableForm) -> str:
    """Gather ids from the indexes until one was read whole."""
    partly = ""
    for (index,) in rows(reader, queries.statement(SQL, "indexes"), {"table": form.name}):
        if _entries(connection, reader, form, str(index), "ASC"):
            return "index"
        _entries(connection, reader, form, str(index), "DESC")
        partly = "partly"
    return partly


def _entries(
    connection: apsw.Connection, reader: apsw.Connection, form: TableForm, index: str, order: str
) -> bool:
    columns = [
        name for _seq, _cid, name in reader.execute(f"PRAGMA index_info({queries.quote(index)})") if name
    ]
    sorting = ", ".join(f"{queries.quote(str(name))} {order}" for name in columns) or "1"
    sql = queries.statement(SQL, "entries").replace("{order}", sorting)
    ids = array("q")
    whole = True
    try:
        for (rowid,) in reader.execute(queries.fill(sql, key=form.key, table=form.name, index=index)):
            ids.append(rowid)
            if len(ids) >= BATCH:
                _know(connection, ids)
                ids = array("q")
    except apsw.Error:  # whatever it says, it says of the copy
        whole = False
    _know(connection, ids)
    return whole


def _know(connection: apsw.Connection, ids: array[int]) -> None:
    if ids:
        connection.execute(queries.statement(SQL, "know"), {"ids": apsw.carray(ids)})


def _bound(connection: apsw.Connection, form: TableForm, tree: Tree, sequence: int | None) -> int | None:
    """How many ids are missing where pages could not be read; None where ids are no measure or have no end."""
    if form.alias < 0 or sequence is None:
        return None
    missing = 0
    for low, high in _spans(tree):
        low, high = max(low, 0), min(high, sequence)
        if low < high:
            found = number(connection, _sql("found-between", form), {"low": low, "high": high})
            missing += high - low - found
    return missing


def _spans(tree: Tree) -> Iterable[tuple[int, int]]:
    spans = sorted((*tree.gaps, *((low, high) for _page, low, high in tree.partial)))
    merged: list[tuple[int, int]] = []
    for low, high in spans:
        if merged and low <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(merged[-1][1], high))
        else:
            merged.append((low, high))
    return [(max(low, LOWEST), min(high, HIGHEST)) for low, high in merged]


def _by_session(connection: apsw.Connection, reader: apsw.Connection) -> tuple[tuple[str, int], ...]:
    ids = array("q", (id_ for (id_,) in rows(connection, queries.statement(SQL, "lost-ids"))))
    bindings = {"limit": SESSIONS, "ids": apsw.carray(ids)}
    try:
        found = rows(reader, queries.statement(SQL, "lost-by-session"), bindings)
    except apsw.Error:  # as above
        return ()
    return tuple((printable(text(session)), count) for session, count in found)


def _sql(block: str, form: TableForm) -> str:
    return queries.fill(queries.statement(SQL, block), table=form.name, key=form.key)
