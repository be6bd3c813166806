"""Say what takes how much room in and beside a store, and what would free some; changes nothing.

Costs: every page is read once for the trees, every row once for sessions and sources, and a scan for the repairs.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

import apsw

from . import database
from .home import Home
from .model import CouldNotLook
from .pages_read import told
from .shape import Shape, read_shape
from .shown import shown
from .sizes import path_text
from .space_files import KEPT, beside
from .space_gains import Gains, gains
from .space_model import FileGroup, FileSpace, Images, Space
from .space_rows import RowSpace, row_space
from .space_trees import file_space

Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class SpaceOptions:
    """`top`: how many sessions are named; `repairs`: also ask what each repair would free. `now` is epoch seconds."""

    top: int = 10
    repairs: bool = True
    now: float = field(default_factory=time.time)


@dataclass(frozen=True, slots=True)
class _Inside:
    path: str
    shape: Shape
    file: FileSpace
    rows: RowSpace


def space(home: Home, options: SpaceOptions | None = None, progress: Progress = lambda _word: None) -> Space:
    """What takes room. Raises CouldNotLook where the file cannot be read or its pages are damaged."""
    options = options or SpaceOptions()
    files = beside(home)
    inside = database.read(home.database, lambda reading: _inside(reading, options.top, progress))
    found = (
        gains(home, options.now, progress) if options.repairs else Gains(unknown="not asked (--no-repairs)")
    )
    return Space(
        inside.path,
        inside.shape.summary(),
        inside.file,
        inside.rows.sources,
        inside.rows.sessions,
        inside.rows.total,
        inside.rows.orphans,
        _images(files, found),
        files,
        found.gains,
        found.unknown,
    )


def _inside(reading: database.Reading, top: int, progress: Progress) -> _Inside:
    path = reading.state.path
    database.look_at_rows(reading)
    try:
        shape = read_shape(reading.connection)
        with told((reading.connection,), "pages", progress):
            file = file_space(reading.connection, shape)
        tables = sum(tree.pages for tree in file.trees if tree.kind == "table")
        with told((reading.connection,), "rows", progress, tables):
            rows = row_space(reading.connection, shape, top)
    except CouldNotLook as error:
        raise CouldNotLook(f"{shown(path)}: {error}; name a state.db or a Hermes home") from None
    except (apsw.Error, UnicodeDecodeError) as error:
        raise CouldNotLook(
            f"{shown(path)}: {error}; next: hermes-dbtools runbook structural-damage"
        ) from None
    return _Inside(path_text(path), shape, file, rows)


def _images(files: tuple[FileGroup, ...], found: Gains) -> Images:
    media = [group for group in files if group.group == "media"]
    kept = [group.bytes for group in media if group.name.rpartition("/")[2] in KEPT]
    cached = sum(group.bytes for group in media) - sum(kept)
    on_disk = sum(kept) if kept else None
    free = found.unreferenced
    return Images(
        on_disk,
        on_disk - free if on_disk is not None and free is not None else None,
        free,
        cached if media else None,
        found.inline,
        found.inline_count,
    )
