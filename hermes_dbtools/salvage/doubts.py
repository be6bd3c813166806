"""Ask SQLite whether the pages of a copy add up, where our own map finds every tree whole; reads the copy and changes nothing.

A chain of overflow pages that was bent to pages of somebody else has the right length, and one row holds what is not its own.
What tells is that a page belongs to two, or that pages belong to nobody.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path

import apsw

from ..connections import open_private
from ..structure import classify
from ..verification import whole_file
from .schema import SchemaObject

_TREE = re.compile(r"^Tree (\d+)\b")
_TWICE = re.compile(r"2nd reference to page")
_NOBODY = re.compile(r"never used")

MOST = 20
"""Lines that are kept."""


def find_doubts(copy: Path, objects: Iterable[SchemaObject]) -> tuple[str, ...]:
    """What SQLite says of the pages of tables, and of pages of nobody where no damaged index or search index explains them."""
    tables = {one.root for one in objects if one.kind == "table" and not one.name.startswith("sqlite_")}
    try:
        with closing(open_private(copy)) as connection:
            problems, search = whole_file(connection)
    except apsw.Error:
        return ()  # a schema that SQLite cannot read: nothing is asked of it, and the report says so
    lines = [line for line in problems if classify(line) == "structure"]
    found = [line for line in (*lines, *search) if _TWICE.search(line)]
    found += [
        line for line in lines if (tree := _TREE.match(line)) and int(tree[1]) in tables and line not in found
    ]
    alone = [line for line in lines if _NOBODY.search(line)]
    if len(alone) == len(lines) - len([line for line in found if line in lines]) and not set(search) - set(
        found
    ):
        found += alone
    return tuple(found[:MOST])
