from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.shapes import make

from .measure import timed

pytestmark = pytest.mark.bench

SESSIONS, PER_SESSION, CONTENT_BYTES = 1_000, 100, 500

BY_FTS = """
import apsw, sys, time
connection = apsw.Connection(sys.argv[1])
started = time.perf_counter()
connection.execute("BEGIN IMMEDIATE")
for index in ("messages_fts", "messages_fts_trigram"):
    connection.execute(f"INSERT INTO {index} ({index}) VALUES ('rebuild')")
print(time.perf_counter() - started)
"""
OURS = """
import apsw, sys, time
from hermes_dbtools import search_remaking
from hermes_dbtools.model import SearchWork, Step
from hermes_dbtools.shape import read_shape
connection = apsw.Connection(sys.argv[1])
works = tuple(SearchWork(index, "remake") for index in ("messages_fts", "messages_fts_trigram"))
step = Step("HDB802", "search-index-damage", "", "rebuild", "", (), search=works)
started = time.perf_counter()
connection.execute("BEGIN IMMEDIATE")
remaking = search_remaking.begin(connection, read_shape(connection), (step,))
search_remaking.finish(connection, remaking)
print(time.perf_counter() - started)
"""


@pytest.mark.parametrize("shape", ["22", "25"])
def test_an_index_is_made_anew_as_fast_as_fts_rebuilds_it(
    shape: str, tmp_path: Path, figure: Callable[[str], None]
) -> None:
    """Both stop before COMMIT and leave the file as it was."""
    path = make.make(tmp_path / "state.db", shape, journal_mode="delete")
    make.fill_many(path, SESSIONS, PER_SESSION, CONTENT_BYTES)
    copy = tmp_path / "copy.db"
    shutil.copy(path, copy)
    by_fts = min(timed(BY_FTS, str(copy)) for _ in range(2))
    ours = min(timed(OURS, str(copy)) for _ in range(2))
    figure(
        f"both indexes of {SESSIONS * PER_SESSION:,} messages of {CONTENT_BYTES} bytes, shape {shape}: made anew in {ours:.1f} s,"
        f" FTS5's own rebuild {by_fts:.1f} s ({ours / by_fts:.2f} x)"
    )
    assert ours <= 1.1 * by_fts
