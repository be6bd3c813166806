"""Say what was lost of a table: which rows its indexes and its sequence prove that the new file lacks; changes no row."""

from __future__ import annotations

import re
from array import array
from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import apsw

from .. import queries
from ..damage._declare import printable
from .asking import number, rows
from .foreign import PARTIAL
from .indexes import read_index
from .pages import Pages
from .records import decode
from .schema import SchemaObject
from .tables import TableForm
from .trees import Tree

SQL = "salvage/losses"
BATCH = 100_000
RANGES = 1_000
SESSIONS = 1_000

_BY_SESSION = re.compile(r"\(\s*[\"`\[]?session_id\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Losses:
    """What is known of lost rows. `lost` is exact where `proof` is `index`: an index was read whole and names every row.

    With `proof` `partly` indexes gave some of their entries: at least `lost` rows are gone. `at_most` bounds the loss by the ids
    that are missing on unreadable pages, None where nothing bounds it. `ranges` are ids (first, last) of lost rows.
    """

    lost: int = 0
    proof: str = ""
    at_most: int | None = 0
    ranges: tuple[tuple[int, int], ...] = ()
    sessions: tuple[tuple[str, int], ...] = ()


def find(
    connection: apsw.Connection,
    pages: Pages,
    objects: Sequence[SchemaObject],
    form: TableForm,
    tree: Tree,
    sequence: int | None,
) -> Losses:
    """What was lost of a table that could not be read whole; `sequence` is the highest id the file had given away."""
    indexes = [one for one in objects if one.kind == "index" and one.table == form.name and one.root]
    connection.execute(queries.statement(SQL, "make-known"))
    connection.execute(queries.statement(SQL, "forget-known"))
    proof = "" if form.without_rowid else _known(connection, pages, indexes)
    connection.execute(_sql("keep-lost", form))
    lost = number(connection, queries.statement(SQL, "lost"))
    ranges = rows(connection, queries.statement(SQL, "ranges"), {"limit": RANGES})
    at_most = lost if proof == "index" else _bound(connection, form, tree, sequence)
    sessions = _by_session(connection, pages, indexes) if lost and form.name == "messages" else ()
    return Losses(lost, proof, at_most, tuple((low, high) for low, high in ranges), sessions)


def _known(connection: apsw.Connection, pages: Pages, indexes: Sequence[SchemaObject]) -> str:
    """Gather the ids that indexes name until one was read whole, those that name every row first."""
    partly = ""
    for one in sorted(indexes, key=lambda one: PARTIAL.search(one.sql) is not None):
        ids = _Ids(connection)
        whole = read_index(pages, one.root, ids.take)
        ids.know()
        if whole and not PARTIAL.search(one.sql):
            return "index"
        partly = "partly"
    return partly


class _Ids:
    """Ids on their way into the list of proved rows. State: those not yet written there."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection
        self._ids = array("q")

    def take(self, rowid: int, _record: bytes) -> None:
        """Add one."""
        self._ids.append(rowid)
        if len(self._ids) >= BATCH:
            self.know()

    def know(self) -> None:
        """Write them."""
        if self._ids:
            self._connection.execute(queries.statement(SQL, "know"), {"ids": apsw.carray(self._ids)})
            self._ids = array("q")


def _bound(connection: apsw.Connection, form: TableForm, tree: Tree, sequence: int | None) -> int | None:
    """How many ids are missing where pages could not be read; None where ids are no measure or have no end."""
    if form.alias < 0 or sequence is None:
        return None
    missing = 0
    for low, high in _spans(tree):
        low, high = max(low, 0), min(high, sequence)
        if low < high:
            missing += (
                high - low - number(connection, _sql("found-between", form), {"low": low, "high": high})
            )
    return missing


def _spans(tree: Tree) -> list[tuple[int, int]]:
    spans = sorted((*tree.gaps, *((low, high) for _page, low, high in tree.partial)))
    merged: list[tuple[int, int]] = []
    for low, high in spans:
        if merged and low <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(merged[-1][1], high))
        else:
            merged.append((low, high))
    return merged


def _by_session(
    connection: apsw.Connection, pages: Pages, indexes: Sequence[SchemaObject]
) -> tuple[tuple[str, int], ...]:
    """The sessions of lost messages, the most first, as far as indexes that begin with the session name them."""
    lost = array("q", (id_ for (id_,) in rows(connection, queries.statement(SQL, "lost-ids"))))
    counted = bytearray(len(lost))
    sessions: Counter[str] = Counter()

    def take(rowid: int, record: bytes) -> None:
        place = bisect_left(lost, rowid)
        if place < len(lost) and lost[place] == rowid and not counted[place]:
            counted[place] = 1
            sessions[printable(decode(record)[0])] += 1

    for one in indexes:
        if _BY_SESSION.search(one.sql):
            read_index(pages, one.root, take)
    ordered = sorted(sessions.items(), key=lambda item: (-item[1], item[0]))
    return tuple(ordered[:SESSIONS])


def _sql(block: str, form: TableForm) -> str:
    return queries.fill(queries.statement(SQL, block), table=form.name, key=form.key)
