from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests import damage_bytes

from .measure import run, tool

pytestmark = pytest.mark.bench

MESSAGES, SESSIONS, CONTENT = 200_000, 1_000, 1_000
"""A file of 1.4 GB, of which search indexes are the most."""

TABLE_COPY = """
import apsw, sys
source, target = sys.argv[1:]
old = apsw.Connection(source, flags=apsw.SQLITE_OPEN_READONLY)
objects = old.execute(
    "SELECT type, name, sql FROM sqlite_schema WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite%'"
    " AND name NOT LIKE 'messages_fts_%data' AND name NOT LIKE 'messages_fts%idx'"
    " AND name NOT LIKE 'messages_fts%content' AND name NOT LIKE 'messages_fts%docsize'"
    " AND name NOT LIKE 'messages_fts%config' ORDER BY rowid"
).fetchall()
old.close()
new = apsw.Connection(target)
new.execute("PRAGMA journal_mode=OFF").fetchall()
new.execute("PRAGMA synchronous=OFF")
new.execute("PRAGMA cache_size=-65536")
new.execute("ATTACH ? AS old", (source,))
new.execute("BEGIN")
tables = [(n, s) for k, n, s in objects if k == "table" and not s.startswith("CREATE VIRTUAL")]
for name, sql in tables:
    new.execute(sql)
for name, sql in tables:
    new.execute(f'INSERT INTO main."{name}" SELECT * FROM old."{name}"')
for kind, name, sql in objects:
    if kind == "index":
        new.execute(sql)
for kind, name, sql in objects:
    if sql.startswith("CREATE VIRTUAL"):
        new.execute(sql)
        new.execute(
            f"INSERT INTO {name} (rowid, content) SELECT id, coalesce(content, '') || ' ' || coalesce(tool_name, '')"
            " || ' ' || coalesce(tool_calls, '') FROM main.messages"
        )
for kind, name, sql in objects:
    if kind == "trigger":
        new.execute(sql)
new.execute("COMMIT")
"""


@pytest.mark.bench
def test_a_salvage_costs_three_table_copies_at_most(
    built: Callable[..., Path], figure: Callable[[str], None], tmp_path: Path
) -> None:
    healthy = built(MESSAGES, SESSIONS, CONTENT)
    copied = run("-c", TABLE_COPY, str(healthy), str(tmp_path / "copied.db"))
    assert copied.code == 0
    (tmp_path / "copied.db").unlink()
    damaged = tmp_path / "state.db"
    shutil.copyfile(healthy, damaged)
    pages = damaged.stat().st_size // damage_bytes.page_size(damaged)
    bad = range(101, pages, 100)
    for number in bad:
        damage_bytes.flip_page(damaged, number)
    done = tool("salvage", str(damaged), str(tmp_path / "new.db"), "--format", "json")
    assert done.code == 1
    report = json.loads(done.out)
    (messages,) = [table for table in report["tables"] if table["name"] == "messages"]
    assert messages["rows"] + messages["lost"] == MESSAGES, (
        "each index lacks entries; two of them name every row"
    )
    figure(
        f"salvage of {damaged.stat().st_size / 1e9:.2f} GB with {len(bad):,} of {pages:,} pages bad: {done.seconds:.1f} s,"
        f" {messages['lost']:,} messages lost; a copy of the healthy tables with search {copied.seconds:.1f} s"
        f" ({done.seconds / copied.seconds:.2f} x); peak memory {done.peak_bytes / 1e6:.0f} MB"
    )
    assert done.seconds <= 3 * copied.seconds
    assert done.peak_bytes < 300e6
