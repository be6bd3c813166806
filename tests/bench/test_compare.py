"""Compare two large files: against reading both once, and in memory."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import apsw
import pytest

from .measure import run, timed, tool

pytestmark = pytest.mark.bench

READ = """
import sys, time
import apsw
started = time.perf_counter()
for path in sys.argv[1:]:
    connection = apsw.Connection(path, flags=apsw.SQLITE_OPEN_READONLY)
    tables = [name for (name,) in connection.execute(
        "SELECT name FROM pragma_table_list WHERE schema = 'main' AND type = 'table' AND name NOT LIKE 'sqlite%'"
    )]
    for table in tables:
        for row in connection.execute(f'SELECT * FROM "{table}"'):
            pass
print(time.perf_counter() - started)
"""
"""Every row of every table of both files, once."""

BYTES = """
import sys, time
started = time.perf_counter()
for path in sys.argv[1:]:
    with open(path, "rb", buffering=0) as file:
        while file.read(1 << 20):
            pass
print(time.perf_counter() - started)
"""
MILLION = 1_000_000


@pytest.mark.skipif(sys.platform != "linux", reason="peak memory is read from the kernel")
def test_a_comparison_against_reading_both_files_once(
    built: Callable[..., Path], figure: Callable[[str], None], tmp_path: Path
) -> None:
    before = built(MILLION, 5_000)
    after = tmp_path / "after.db"
    shutil.copyfile(before, after)
    connection = apsw.Connection(str(after))
    connection.execute("DELETE FROM messages WHERE id % 100000 = 7")
    connection.execute("UPDATE messages SET finish_reason = 'other' WHERE id % 100000 = 9")
    connection.close()
    files = (str(before), str(after))
    lines = min(timed(BYTES, *files) for _ in range(2))
    read = min(timed(READ, *files) for _ in range(2))
    rows = [tool("compare", *files, "--no-damage") for _ in range(2)]
    ran = [tool("compare", *files) for _ in range(2)]
    bare, whole = (min(one.seconds for one in group) for group in (rows, ran))
    peak = max(one.peak_bytes for one in (*ran, *rows))
    figure(
        f"compare, 2 x {MILLION:,} messages: {bare:.1f} s, {peak / 1e6:.0f} MB; every row of both read once {read:.1f} s"
        f" ({bare / read:.1f} x); with new damage {whole:.1f} s ({whole / read:.1f} x); their bytes {lines:.1f} s"
    )
    assert {one.code for one in (*ran, *rows)} == {1}
    assert "10 rows lost · 0 gained · 10 changed" in rows[0].out
    assert peak < 150e6
    assert bare <= 4 * read
    assert whole <= 4 * read


def test_a_small_file_names_the_same_rows(built: Callable[..., Path], tmp_path: Path) -> None:
    before = built(MILLION // 10, 5_000)
    after = tmp_path / "after.db"
    shutil.copyfile(before, after)
    said = run("-m", "hermes_dbtools", "compare", str(before), str(after), "--no-damage")
    assert said.code == 0
    assert "no row lost · 0 gained · 0 changed" in said.out
