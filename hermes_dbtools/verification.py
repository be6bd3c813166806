"""Check a whole database file and count its rows; never changes it and never mends anything."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import apsw

from . import queries
from .connections import open_private

PROBLEM_LIMIT = 1_000
"""Lines of `quick_check` asked for; without a number it stops at 100."""

_SEARCH = re.compile(
    r"malformed inverted index for FTS5 table"
    r"|unable to validate the inverted index for FTS5 table"
    r"|^fts5: |no such tokenizer"
)


@dataclass(frozen=True, slots=True)
class Verification:
    """What `quick_check` says of a whole file. `search_problems` are about search indexes only: not damage.

    `rows` counts each ordinary table that could be counted.
    """

    problems: tuple[str, ...]
    search_problems: tuple[str, ...]
    rows: Mapping[str, int]


def verify_copy(path: Path) -> Verification:
    """Check a copy that no other process has open and that has no `-wal`. Damage is listed, not raised."""
    try:
        connection = open_private(path)
    except apsw.Error as error:
        return Verification((str(error),), (), {})
    try:
        return verify(connection)
    finally:
        connection.close()


def verify(connection: apsw.Connection) -> Verification:
    """Check the file behind an open read connection."""
    problems: list[str] = []
    search: list[str] = []
    for line in _quick_check(connection):
        (search if _SEARCH.search(line) else problems).append(line)
    rows: dict[str, int] = {}
    try:
        tables = [
            str(name) for (name,) in connection.execute(queries.statement("database", "ordinary-tables"))
        ]
    except apsw.Error as error:
        return Verification((*problems, str(error)), tuple(search), {})
    for table in tables:
        try:
            ((count,),) = connection.execute(
                queries.fill(queries.statement("database", "count"), table=table)
            )
            rows[table] = int(count)  # type: ignore[arg-type]  # count(*) is an integer
        except apsw.Error as error:
            problems.append(f"{table}: {error}")
    return Verification(tuple(problems), tuple(search), rows)


def _quick_check(connection: apsw.Connection) -> list[str]:
    """The lines of `quick_check` but `ok`; it may raise after some of them, which then are not lost."""
    lines: list[str] = []
    try:
        for (line,) in connection.execute(f"PRAGMA quick_check({PROBLEM_LIMIT})"):
            lines.append(str(line))
    except apsw.Error as error:
        lines.append(str(error))
    return [line for line in lines if line != "ok"]
