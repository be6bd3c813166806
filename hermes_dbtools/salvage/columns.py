"""Find the text that makes a table where the file's own is lost: the order of its columns must fit the records that are left.

A store adds columns at the end when it upgrades a file, so the order tells its history: the release that made it and the one
that used it last, in one jump or through all between. Facts: the shapes of `sql/fixture`, and how a store upgrades a file.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass

import apsw

from .. import queries
from ..shape import Column
from .asking import rows
from .tables import TableForm, form_of_columns

Types = Sequence[int]
"""The serial types of one record."""


@dataclass(frozen=True, slots=True)
class Text:
    """A text that makes a table, what its rows look like, and whether no other order of columns fits as well."""

    sql: str
    form: TableForm
    certain: bool = True


def best_text(table: str, texts: Sequence[str], samples: Sequence[Types]) -> Text | None:
    """The text that fits the most of these records; the first of several. `texts` are those of the shapes, oldest first.

    None where the shapes have no such table.
    """
    found: dict[tuple[str, ...], Text] = {}
    for sql in (*reversed(texts), *_upgraded(table, texts)):
        form = _form(table, sql)
        found.setdefault(form.names, Text(sql, form))
    if not found:
        return None
    scores = {names: _score(text.form, samples) for names, text in found.items()}
    best = max(scores.values())
    fitting = [found[names] for names, score in scores.items() if score == best]
    return Text(fitting[0].sql, fitting[0].form, certain=len(fitting) == 1 or not samples)


def _score(form: TableForm, samples: Sequence[Types]) -> tuple[int, int]:
    fits = sum(1 for types in samples if form.looks_like(types))
    return fits, sum(1 for types in samples if len(types) == len(form.columns))


def _upgraded(table: str, texts: Sequence[str]) -> Iterator[str]:
    """The table as an upgrade leaves it: made by one shape, and given the columns of later ones."""
    forms = [_form(table, sql) for sql in texts]
    for first, sql in enumerate(texts):
        for last in range(first + 1, len(texts)):
            yield _added(table, sql, [forms[last]])
            yield _added(table, sql, forms[first + 1 : last + 1])


def _added(table: str, sql: str, later: Sequence[TableForm]) -> str:
    with closing(apsw.Connection(":memory:")) as connection:
        connection.execute(sql)
        names = {column.name for column in _columns(connection, table)}
        for form in later:
            for column in form.columns:
                if column.name not in names:
                    names.add(column.name)
                    connection.execute(_add_column(table, column))
        ((text,),) = rows(connection, queries.statement("salvage/schema", "text-of-table"), {"table": table})
    return str(text)


def _add_column(table: str, column: Column) -> str:
    words = [column.type, "NOT NULL" if column.not_null else ""]
    words.append("" if column.default is None else f"DEFAULT {column.default}")
    rule = " ".join(word for word in words if word)
    sql = queries.statement("salvage/schema", "add-column").replace("{rule}", rule)
    return queries.fill(sql, table=table, column=column.name)


def _form(table: str, sql: str) -> TableForm:
    with closing(apsw.Connection(":memory:")) as connection:
        connection.execute(sql)
        return form_of_columns(table, _columns(connection, table))


def _columns(connection: apsw.Connection, table: str) -> tuple[Column, ...]:
    pragma = f"PRAGMA table_xinfo({queries.quote(table)})"
    return tuple(
        Column(name, kind or "", bool(not_null), default, pk)
        for _cid, name, kind, not_null, default, pk, _hidden in rows(connection, pragma)
    )


def texts_by_table(objects: Sequence[Mapping[str, str]]) -> dict[str, list[str]]:
    """The texts of each table in several shapes, in their order, each text once."""
    found: dict[str, list[str]] = {}
    for tables in objects:
        for name, sql in tables.items():
            if sql not in found.setdefault(name, []):
                found[name].append(sql)
    return found
