"""Take full-text indexes away in a private copy and look whether the rest of the file is sound; never touches the file.

A damaged page of an index may lie where SQLite cannot give it back, or a page may belong to an index and to a table at once:
then the drop of the index would spoil the table. Nothing short of the drop itself tells.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import apsw

from . import database
from .model import RolledBack, SearchWork, Step
from .search_remaking import take_away
from .shape import read_shape
from .structure import classify
from .verification import whole_file


def problems_after(connection: apsw.Connection, names: Iterable[str]) -> tuple[str, ...]:
    """What is wrong with the file once these indexes are gone. Raises CouldNotLook without room for the copy."""
    with database.private_copy(connection) as path:
        return problems_in(path, tuple(names))


def problems_in(path: Path, names: Sequence[str]) -> tuple[str, ...]:
    """The same for a copy that may be changed: the indexes are gone from it afterwards."""
    copy = apsw.Connection(str(path))
    try:
        copy.execute("PRAGMA journal_mode = MEMORY").fetchall()
        copy.execute(
            "BEGIN IMMEDIATE"
        )  # as `apply` does: what runs into a damaged page inside it can write no more
        for name in names:
            take_away(copy, read_shape(copy), name)
        copy.execute("COMMIT")
    except (apsw.Error, RolledBack) as error:
        return (str(error),)
    finally:
        copy.close()
    structure = database.open_private(path)
    try:
        problems, search = whole_file(structure)
    finally:
        structure.close()
    return tuple(line for line in (*problems, *search) if classify(line) != "value")


def remade(steps: Iterable[Step]) -> tuple[str, ...]:
    """The indexes that steps make anew or remove."""
    found: Iterable[SearchWork] = (work for step in steps for work in step.search)
    return tuple(sorted({work.index for work in found if work.work != "mend"}))
