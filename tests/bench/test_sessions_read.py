"""List and export of large stores: against the bare query, against json.dumps, and in memory."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from .measure import run, timed

pytestmark = pytest.mark.bench

ID = """
import sys
import apsw
print(*next(apsw.Connection(sys.argv[1]).execute("SELECT id FROM sessions")))
"""
LIST = """
import sys, time
from hermes_dbtools.home import resolve
from hermes_dbtools.sessions.listing import list_sessions
home = resolve(sys.argv[1])
limit = int(sys.argv[2])
list_sessions(home, limit=limit)
started = time.perf_counter()
found = list_sessions(home, limit=limit)
print(found.total, time.perf_counter() - started)
"""
BARE = """
import sys, time
import apsw
from hermes_dbtools import queries
from hermes_dbtools.shape import read_shape
connection = apsw.Connection(sys.argv[1], flags=apsw.SQLITE_OPEN_READONLY)
sql = queries.choose("sessions/list", "sessions", read_shape(connection).has).sql
connection.execute(sql, {"limit": -1}).fetchall()
started = time.perf_counter()
found = connection.execute(sql, {"limit": -1}).fetchall()
print(len(found), time.perf_counter() - started)
"""
EXPORT = """
import sys, time
from pathlib import Path
from hermes_dbtools.home import resolve
from hermes_dbtools.sessions.export import export
home = resolve(sys.argv[1])
started = time.perf_counter()
done = export(home, (sys.argv[2],), sys.argv[3])
seconds = time.perf_counter() - started
peak = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
print(done.messages, int(peak.split()[1]) * 1024, seconds)
"""
DUMPS = """
import json, sys, time
import apsw
connection = apsw.Connection(sys.argv[1], flags=apsw.SQLITE_OPEN_READONLY)
started = time.perf_counter()
cursor = connection.execute("SELECT * FROM messages WHERE session_id = ? ORDER BY id", (sys.argv[2],))
names = [column[0] for column in cursor.description]
with open(sys.argv[3], "w") as file:
    for row in cursor:
        file.write(json.dumps(dict(zip(names, row))) + "\\n")
print(time.perf_counter() - started)
"""


def test_the_list_of_50_000_sessions_against_the_bare_query(
    built: Callable[..., Path], figure: Callable[[str], None]
) -> None:
    path = built(100_000, 50_000)
    bare = min(timed(BARE, str(path)) for _ in range(3))
    ours = min(timed(LIST, str(path), "50") for _ in range(3))
    every = min(timed(LIST, str(path), "0") for _ in range(3))
    figure(
        f"sessions list, 50,000 sessions: {ours:.2f} s; all of them {every:.2f} s; "
        f"the bare query that reads all rows {bare:.2f} s"
    )
    assert ours < 1.5 * bare


@pytest.mark.skipif(sys.platform != "linux", reason="peak memory is read from /proc")
def test_an_export_of_190_000_messages_against_json_and_in_memory(
    built: Callable[..., Path], figure: Callable[[str], None], tmp_path: Path
) -> None:
    path = built(190_000, 1, 600)
    session_id = run("-c", ID, str(path)).out.strip()
    dumps = min(timed(DUMPS, str(path), session_id, str(tmp_path / f"d{n}")) for n in range(3))
    ran = [run("-c", EXPORT, str(path), session_id, str(tmp_path / f"e{n}")) for n in range(3)]
    told = [done.out.split() for done in ran]
    ours, peak = min(float(words[2]) for words in told), max(int(words[1]) for words in told)
    figure(f"sessions export, 190,000 messages: {ours:.1f} s, {peak / 1e6:.0f} MB; json.dumps {dumps:.1f} s")
    assert told[0][0] == "190000"
    assert peak < 120e6
    assert ours < 2 * dumps
