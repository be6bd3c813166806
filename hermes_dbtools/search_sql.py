"""Fill and run the statements of sql/search/ for one index; decides nothing.

Beside quoted identifiers, places of a statement take expressions: blocks of the same file that are one
SELECT without FROM, which SQLite reads as a scalar inside parentheses. An index has one to three columns,
so their texts are lists.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

import apsw

from . import queries
from .queries import quote
from .search_definition import SearchIndex


def rows(
    connection: apsw.Connection,
    block: str,
    bindings: Mapping[str, Any] | None = None,
    parts: Mapping[str, str] | None = None,
) -> Iterator[tuple[Any, ...]]:
    """The rows of a block, one at a time."""
    return iter(connection.execute(filled(block, parts or {}), bindings))


def run(
    connection: apsw.Connection,
    block: str,
    bindings: Mapping[str, Any] | None = None,
    parts: Mapping[str, str] | None = None,
) -> list[tuple[Any, ...]]:
    """Run a block to its end and return its rows."""
    return list(rows(connection, block, bindings, parts))


def filled(block: str, parts: Mapping[str, str]) -> str:
    """The text of a block with its places filled. Raises KeyError for a place that `parts` lacks."""
    sql = queries.statement(file_of(block), block)
    return re.sub(r"\{(\w+)\}", lambda place: parts[place[1]], sql)


@cache
def file_of(block: str) -> str:
    """The SQL file that a block stands in; their names differ. Raises KeyError for a block that is in none."""
    for file in ("search/upkeep", "search/survey", "search/checking", "search/remaking"):
        if any(query.name == block for query in queries.load(file)):
            return file
    raise KeyError(block)


def names(index: SearchIndex) -> dict[str, str]:
    """What the statements call the tables and columns of one index; `s` is a row of its source."""
    return {
        "index": quote(index.name),
        "docsize": quote(f"{index.name}_docsize"),
        "config": quote(f"{index.name}_config"),
        "data": quote(f"{index.name}_data"),
        "segment_pages": quote(f"{index.name}_idx"),
        "stored": quote(f"{index.name}_content"),
        "source": quote(index.content or "messages"),
        "rowid": quote("id" if index.inline else index.content_rowid),
        "columns": ", ".join(quote(column) for column in index.columns),
        "blobs": ", ".join(_of_columns("blob", index)),
        "nuls": " + ".join(_of_columns("nul_place", index)),
    }


def texts(index: SearchIndex, *, stopped: bool) -> str:
    """The text of each column of an index, made from a row `s` of its source; `stopped` at the first NUL
    byte."""
    found = [f"s.{quote(column)}" for column in index.columns]
    if index.head_limit is not None:
        column = index.columns.index("content")
        found[column] = expression("head", text=found[column])
    if index.inline and index.joined:
        found = [expression("joined", text=found[0])]
    return ", ".join(expression("until_nul", text=text) if stopped else text for text in found)


def expression(block: str, **parts: str) -> str:
    """A block that is one SELECT without FROM, as SQLite takes it for a value."""
    return f"({filled(block, parts).removesuffix(';')})"


def _of_columns(block: str, index: SearchIndex) -> list[str]:
    return [expression(block, text=f"s.{quote(column)}") for column in index.columns]
