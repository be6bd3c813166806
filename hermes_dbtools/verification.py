"""Check a whole database file and count its rows; never changes it and never mends anything.

Structure and search indexes are asked on two connections. One is without modules: there `quick_check` walks
every page of the file and leaves out the virtual tables, of which a single one with an unknown tokenizer or a
broken configuration would end it, even before it has begun. The other asks each virtual table by itself.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import apsw

from . import queries
from .connections import open_private
from .pages_read import CHECK_PASSES, PagesRead
from .structure import unopened_indexes

_TREE = re.compile(r"Tree (\d+)\b")
_SHARED = "2nd reference to page"
"""Said of a page that two trees have, or a tree and the free list: if one of them gives it back, the other is spoilt."""

BETWEEN_LOOKS = 10_000
"""Steps of a check between two looks at how far it has come."""

PROBLEM_LIMIT = 1_000
"""Lines of `quick_check` asked for; without a number it stops at 100."""


@dataclass(frozen=True, slots=True)
class Verification:
    """What the checks of a whole file said; `search_problems` are about virtual tables only: not damage here.

    `rows` counts each ordinary table that could be counted.
    """

    problems: tuple[str, ...]
    search_problems: tuple[str, ...]
    rows: Mapping[str, int]


def verify_copy(
    path: Path, *, search: bool = True, progress: Callable[[str], None] | None = None
) -> Verification:
    """Check a copy that no other process has open and that has no `-wal`. Damage is listed, not raised.

    Without `search` the contents of full-text indexes are not read: that costs many times the rest. `progress` is told how
    much of the structure has been looked at.
    """
    try:
        structure, contents = open_private(path), open_private(path)
    except apsw.Error as error:
        return Verification((f"{path.name}: {error}",), (), {})
    try:
        if progress is not None:
            with contextlib.suppress(apsw.Error):  # of a damaged file; the check itself says so
                structure.set_progress_handler(
                    PagesRead((structure,), "verifying", progress, CHECK_PASSES), BETWEEN_LOOKS
                )
        problems, search_pages = whole_file(structure)
        unreadable, search_problems, rows = tables(contents, search=search)
    finally:
        structure.close()
        contents.close()
    return Verification((*problems, *unreadable), (*search_pages, *search_problems), rows)


def whole_file(connection: apsw.Connection) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The problems that `quick_check` finds in the pages of the whole file, those of search indexes apart.

    The connection must not have used a virtual table yet, and can use none afterwards.
    """
    connection.drop_modules(())
    found = _lines(connection, f"PRAGMA quick_check({PROBLEM_LIMIT})")
    lines = [line for text in found for line in text.splitlines() if not line.startswith("*** in database")]
    try:
        trees = {root for (root,) in connection.execute(queries.statement("database", "search-trees"))}
    except apsw.Error:
        trees = set()
    search = tuple(
        line
        for line in lines
        if (tree := _TREE.match(line)) and int(tree.group(1)) in trees and _SHARED not in line
    )
    problems = tuple(line for line in lines if line not in search)
    if search and len(problems) == 1 and problems[0] == lines[-1]:
        # The check stopped at the damaged page, so it says nothing about the pages behind it.
        return (f"a page of a search index is damaged and ended the check ({problems[0]})",), search
    if search and len(lines) >= PROBLEM_LIMIT:
        return (*problems, f"more than {PROBLEM_LIMIT:,} problems: not all were listed"), search
    return (*problems, *_unopened(connection)), search


def _unopened(connection: apsw.Connection) -> Iterator[str]:
    try:
        for table, index, error in unopened_indexes(connection):
            yield f"index {index} of {table} cannot be opened: {error}"
    except apsw.Error:
        return  # a schema that cannot be read: the check has said so


def tables(
    connection: apsw.Connection, *, search: bool = True
) -> tuple[tuple[str, ...], tuple[str, ...], dict[str, int]]:
    """Tables that cannot be counted, problems of virtual tables (if asked), and the rows of each ordinary table."""
    problems: list[str] = []
    rows: dict[str, int] = {}
    try:
        ordinary = _names(connection, "ordinary-tables")
        virtual = _names(connection, "virtual-tables")
    except apsw.Error as error:
        return (f"schema: {error}",), (), rows
    for table in ordinary:
        try:
            ((count,),) = connection.execute(
                queries.fill(queries.statement("database", "count"), table=table)
            )
            rows[table] = int(count)
        except apsw.Error as error:
            problems.append(f"{table}: {error}")
    found = [line for table in virtual for line in _virtual_table(connection, table)] if search else []
    return tuple(problems), tuple(found), rows


def _virtual_table(connection: apsw.Connection, table: str) -> tuple[str, ...]:
    lines = _lines(connection, f"PRAGMA quick_check({queries.quote(table)})")
    return tuple(line if table in line else f"{table}: {line}" for line in lines)


def _lines(connection: apsw.Connection, pragma: str) -> tuple[str, ...]:
    """What the pragma says but `ok`. It may raise after some lines: these are kept, the error behind them."""
    found: list[str] = []
    try:
        for (line,) in connection.execute(pragma):
            found.append(str(line))
    except apsw.Error as error:
        found.append(str(error))
    return tuple(line for line in found if line != "ok")


def _names(connection: apsw.Connection, block: str) -> list[str]:
    return [str(name) for (name,) in connection.execute(queries.statement("database", block))]
