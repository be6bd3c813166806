"""Find the text that makes a table where the file's own is lost: the order of its columns must fit what is left.

A store adds columns at the end when it upgrades a file, so the order tells its history: the shape in which it was made and each
later one that its store upgraded it to. Facts: the shapes of `sql/fixture`, and how a store upgrades a file.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass

import apsw

from .. import queries
from ..file_sql import run_one
from ..shape import Column
from .asking import rows
from .tables import form_of_columns

Types = Sequence[int]
"""The serial types of one record."""

Columns = tuple[Column, ...]


@dataclass(frozen=True, slots=True)
class Text:
    """A text that makes a table, and whether no other order of columns fits as well."""

    sql: str
    certain: bool


@dataclass(frozen=True, slots=True)
class _History:
    """The shape that made a table, by its place in their order, and the columns in the order that its upgrades left."""

    born: int
    columns: Columns


def best_text(table: str, texts: Sequence[str], samples: Sequence[Types], left: str = "") -> Text:
    """The text that fits these records and the words `left` of the old text best; the simplest history of several.

    `texts` are those of the known shapes, oldest first; at least one.
    """
    shapes = [columns_of(table, sql) for sql in texts]
    histories: dict[tuple[str, ...], _History] = {}
    for history in _histories(shapes):
        histories.setdefault(tuple(column.name for column in history.columns), history)
    told = _names_in_order(left, {column.name for columns in shapes for column in columns})

    def score(history: _History) -> tuple[bool, int, int]:
        form = form_of_columns(table, history.columns)
        fits = sum(1 for types in samples if form.looks_like(types))
        exact = sum(1 for types in samples if len(types) == len(form.columns))
        return _keeps(told, form.names), fits, exact

    scores = {names: score(history) for names, history in histories.items()}
    best = max(scores.values())
    fitting = [histories[names] for names, one in scores.items() if one == best]
    chosen = fitting[0]
    return Text(_text(table, texts[chosen.born], chosen.columns), len(fitting) == 1)


def _histories(shapes: Sequence[Columns]) -> Iterator[_History]:
    """Every history, the simplest first: made by one shape and never upgraded, newest first; then by more and more."""
    found = [_History(born, columns) for born, columns in enumerate(shapes)]
    yield from reversed(found)
    known = {tuple(column.name for column in one.columns) for one in found}
    reached = {place: [_History(place, columns)] for place, columns in enumerate(shapes)}
    for last in range(len(shapes)):
        for first in range(last):
            for history in reached[first][:]:
                longer = _History(history.born, _joined(history.columns, shapes[last]))
                names = tuple(column.name for column in longer.columns)
                if names not in known:
                    known.add(names)
                    reached[last].append(longer)
                    yield longer


def _joined(columns: Columns, later: Columns) -> Columns:
    names = {column.name for column in columns}
    return (*columns, *(column for column in later if column.name not in names))


def _names_in_order(left: str, known: set[str]) -> list[str]:
    """The names of columns in what is left of a text, each where it stands first; keys of tables behind them left out."""
    body = re.split(r"\b(?:FOREIGN|PRIMARY\s+KEY\s*\(|UNIQUE\s*\()", left, maxsplit=1, flags=re.IGNORECASE)
    added = body[1].rpartition(")")[2] if len(body) > 1 else ""
    words = re.findall(r"\w+", body[0] + " " + added)
    return [word for word in dict.fromkeys(words) if word in known]


def _keeps(told: Sequence[str], names: Sequence[str]) -> bool:
    places = [names.index(name) for name in told if name in names]
    return len(places) == len(told) and places == sorted(places)


def _text(table: str, sql: str, columns: Columns) -> str:
    with closing(apsw.Connection(":memory:")) as connection:
        run_one(connection, sql)
        names = {
            name for _cid, name, *_rest in rows(connection, f"PRAGMA table_xinfo({queries.quote(table)})")
        }
        for column in columns:
            if column.name not in names:
                connection.execute(_add_column(table, column))
        ((text,),) = rows(connection, queries.statement("salvage/schema", "text-of-table"), {"table": table})
    return str(text)


def _add_column(table: str, column: Column) -> str:
    words = [column.type, "NOT NULL" if column.not_null else ""]
    words.append("" if column.default is None else f"DEFAULT {column.default}")
    rule = " ".join(word for word in words if word)
    sql = queries.statement("salvage/schema", "add-column").replace("{rule}", rule)
    return queries.fill(sql, table=table, column=column.name)


def columns_of(table: str, sql: str) -> Columns:
    """The columns of the table that a text makes. Raises apsw errors where it makes none."""
    with closing(apsw.Connection(":memory:")) as connection:
        run_one(connection, sql)
        return tuple(
            Column(name, kind or "", bool(not_null), default, pk)
            for _cid, name, kind, not_null, default, pk, _hidden in rows(
                connection, f"PRAGMA table_xinfo({queries.quote(table)})"
            )
        )
