"""Bulk delete of sessions: against the store's own, and against both ways to keep the search indexes right."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.real.wheels import wheel

from .measure import timed

pytestmark = pytest.mark.bench

MESSAGES, SESSIONS, DELETED = 1_000_000, 5_000, 2_000

OURS = """
import json, sys
from hermes_dbtools.sessions.api import delete_sessions
done = delete_sessions(json.loads(open(sys.argv[2]).read()), sys.argv[1])
assert len(done.deleted) == int(sys.argv[3])
print(sum(receipt.lock_seconds for receipt in done.receipts))
"""
STORES_OWN = """
import json, sys, time
from pathlib import Path
sys.path.insert(0, sys.argv[4])
import hermes_state
store = hermes_state.SessionDB(Path(sys.argv[1]))
ids = json.loads(open(sys.argv[2]).read())
started = time.perf_counter()
assert store.delete_sessions(ids) == int(sys.argv[3])
print(time.perf_counter() - started)
"""
ROW_BY_ROW = """
import json, sys, time
import apsw
connection = apsw.Connection(sys.argv[1])
connection.wal_autocheckpoint(0)
ids = open(sys.argv[2]).read()
started = time.perf_counter()
connection.execute("BEGIN IMMEDIATE")
connection.execute("DELETE FROM messages WHERE session_id IN (SELECT value FROM json_each(?))", (ids,))
connection.execute("DELETE FROM sessions WHERE id IN (SELECT value FROM json_each(?))", (ids,))
assert connection.changes() == int(sys.argv[3])
connection.execute("COMMIT")
print(time.perf_counter() - started)
"""
REBUILT = """
import json, sys, time
import apsw
connection = apsw.Connection(sys.argv[1])
connection.wal_autocheckpoint(0)
ids = open(sys.argv[2]).read()
indexes = connection.execute(
    "SELECT name, sql FROM sqlite_schema WHERE name IN ('messages_fts', 'messages_fts_trigram')"
).fetchall()
triggers = connection.execute(
    "SELECT name, sql FROM sqlite_schema WHERE type = 'trigger' AND tbl_name = 'messages'"
).fetchall()
started = time.perf_counter()
connection.execute("BEGIN IMMEDIATE")
for name, _sql in triggers:
    connection.execute(f"DROP TRIGGER {name}")
for name, _sql in indexes:
    connection.execute(f"DROP TABLE {name}")
connection.execute("DELETE FROM messages WHERE session_id IN (SELECT value FROM json_each(?))", (ids,))
connection.execute("DELETE FROM sessions WHERE id IN (SELECT value FROM json_each(?))", (ids,))
assert connection.changes() == int(sys.argv[3])
for name, sql in indexes:
    connection.execute(sql)
    connection.execute(
        f"INSERT INTO {name} (rowid, content) SELECT id, coalesce(content, '') || ' ' || coalesce(tool_name, '')"
        " || ' ' || coalesce(tool_calls, '') FROM messages ORDER BY id"
    )
for _name, sql in triggers:
    connection.execute(sql)
connection.execute("COMMIT")
print(time.perf_counter() - started)
"""
CHOOSE = """
import json, sys
import apsw
connection = apsw.Connection(sys.argv[1], flags=apsw.SQLITE_OPEN_READONLY)
ids = connection.execute("SELECT id FROM sessions ORDER BY id LIMIT ?", (int(sys.argv[3]),)).fetchall()
open(sys.argv[2], "w").write(json.dumps([one for (one,) in ids]))
print(0)
"""


def test_a_bulk_delete_beats_the_store_and_takes_the_cheaper_way(
    built: Callable[..., Path], tmp_path: Path, figure: Callable[[str], None]
) -> None:
    source = built(MESSAGES, SESSIONS)
    ids = tmp_path / "ids.json"
    timed(CHOOSE, str(source), str(ids), str(DELETED))
    assert len(json.loads(ids.read_text())) == DELETED

    def seconds(snippet: str, *more: str) -> float:
        home = tmp_path / "home"
        home.mkdir()
        shutil.copy(source, home / "state.db")
        took = timed(snippet, str(home / "state.db"), str(ids), str(DELETED), *more)
        shutil.rmtree(home)
        return took

    own = seconds(STORES_OWN, str(wheel("0.19.0")))
    by_row, rebuilt, ours = seconds(ROW_BY_ROW), seconds(REBUILT), seconds(OURS)
    figure(
        f"delete of {DELETED:,} of {SESSIONS:,} sessions ({MESSAGES // SESSIONS * DELETED:,} messages): {ours:.1f} s under the"
        f" lock; the store's own delete_sessions {own:.1f} s ({own / ours:.1f} x), row by row with triggers {by_row:.1f} s,"
        f" with both indexes rebuilt {rebuilt:.1f} s"
    )
    assert own >= 1.5 * ours
    assert ours <= 1.2 * min(by_row, rebuilt)
