"""Damage any session or message of a real file, whatever else is damaged there already; one statement list a stroke.

Unlike a harm, which knows the file it is made for, a stroke takes what the rows that are left offer: it may change nothing.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.real.damages import Facts

_SHELL = """
import json, sqlite3, sys
path, strokes = json.load(sys.stdin)
connection = sqlite3.connect(path, isolation_level=None)
connection.execute("PRAGMA foreign_keys = OFF")
connection.text_factory = lambda value: value.decode(errors="surrogateescape")

def picked(sql, place):
    rows = connection.execute(sql).fetchall()
    return rows[place % len(rows)][0] if rows else None

for statements, places in strokes:
    bindings = {
        "h": path[: -len("/state.db")],
        "a": picked("SELECT id FROM sessions ORDER BY id", places[0]),
        "b": picked("SELECT id FROM sessions ORDER BY id", places[1]),
        "m": picked("SELECT id FROM messages ORDER BY id", places[2]),
        "t": picked("SELECT id FROM messages WHERE role = 'tool' ORDER BY id", places[2]),
        "c": picked("SELECT id FROM messages WHERE tool_calls IS NOT NULL ORDER BY id", places[2]),
    }
    for sql in statements:
        connection.execute(sql, {name: value for name, value in bindings.items() if ":" + name in sql})
connection.close()
"""


@dataclass(frozen=True)
class Stroke:
    """Statements on `:a` and `:b` (sessions), `:m` (a message), `:t` (a tool row), `:c` (a row with calls), `:h` (the home).

    `code` is the class that an otherwise healthy file shows; `needs` are tables and columns of the file.
    """

    code: str
    statements: tuple[str, ...]
    needs: tuple[str, ...] = ()


def _config(*members: str) -> str:
    """Set members of the configuration of `:a`, one that is broken apart."""
    sets = ", ".join(members)
    return (
        "UPDATE sessions SET model_config = json_set(CASE WHEN json_valid(model_config) THEN model_config"
        f" ELSE '{{}}' END, {sets}) WHERE id = :a"
    )


STROKES: dict[str, Stroke] = {
    "row gone": Stroke("HDB201", ("DELETE FROM sessions WHERE id = :a",)),
    "row gone, tombstone left": Stroke(
        "HDB201",
        (
            "DELETE FROM sessions WHERE id = :a",
            "INSERT OR REPLACE INTO state_meta (key, value) VALUES ('gateway.retired_session.v1.' || :a, '1')",
        ),
    ),
    "row and messages gone": Stroke(
        "",
        ("DELETE FROM messages WHERE session_id = :a", "DELETE FROM sessions WHERE id = :a"),
    ),
    "messages gone": Stroke("HDB501", ("DELETE FROM messages WHERE session_id = :a",)),
    "parent never was": Stroke(
        "HDB202", ("UPDATE sessions SET parent_session_id = 'never-was' WHERE id = :a",)
    ),
    "another parent": Stroke("", ("UPDATE sessions SET parent_session_id = :b WHERE id = :a",)),
    "its own parent": Stroke("HDB305", ("UPDATE sessions SET parent_session_id = :a WHERE id = :a",)),
    "prompts gone": Stroke("HDB204", ("DELETE FROM system_prompts",), ("system_prompts.hash",)),
    "prompt of nobody": Stroke(
        "HDB209",
        (
            (
                "INSERT OR IGNORE INTO system_prompts (hash, prompt)"
                " VALUES ('b5d4045c3f466fa91fe2cc6abe79232a1a57cdf104f7a26e716e0a1e2789df78', 'ABC')"
            ),
        ),
        ("system_prompts.hash",),
    ),
    "route to nobody": Stroke(
        "HDB207",
        (
            (
                "INSERT OR REPLACE INTO gateway_routing (scope, session_key, entry_json, updated_at)"
                """ VALUES ('', 'a-key', '{"session_key": "a-key", "session_id": "never-was"}', 1)"""
            ),
        ),
        ("gateway_routing.entry_json",),
    ),
    "goal of nobody": Stroke(
        "HDB208",
        (
            (
                "INSERT OR REPLACE INTO state_meta (key, value)"
                """ VALUES ('goal:never-was', '{"goal": "x", "status": "active"}')"""
            ),
        ),
    ),
    "branched without branch, and used": Stroke(
        "",
        (
            "UPDATE sessions SET ended_at = started_at + 1, end_reason = 'branched' WHERE id = :a",
            "UPDATE messages SET timestamp = timestamp + 200 WHERE session_id = :a",
        ),
    ),
    "compressed without continuation": Stroke(
        "",
        ("UPDATE sessions SET ended_at = started_at + 1, end_reason = 'compression' WHERE id = :a",),
    ),
    "branch marker to nobody": Stroke("", (_config("'$._branched_from'", "'never-was'"),)),
    "delegate marker to nobody": Stroke("", (_config("'$._delegate_from'", "'never-was'"),)),
    "orphaned by an upgrade": Stroke("", (_config("'$._delegate_from'", "'__orphaned__'"),)),
    "two markers": Stroke("", (_config("'$._delegate_from'", ":b", "'$._branched_from'", ":b"),)),
    "marker to another": Stroke("", (_config("'$._branched_from'", ":b"),)),
    "no configuration": Stroke("", ("UPDATE sessions SET model_config = NULL WHERE id = :a",)),
    "end without reason": Stroke(
        "HDB310", ("UPDATE sessions SET ended_at = started_at + 9, end_reason = NULL WHERE id = :a",)
    ),
    "reason without end": Stroke(
        "HDB310", ("UPDATE sessions SET ended_at = NULL, end_reason = 'cli_close' WHERE id = :a",)
    ),
    "end before start": Stroke(
        "HDB310", ("UPDATE sessions SET ended_at = started_at - 60, end_reason = 'cli_close' WHERE id = :a",)
    ),
    "used after its end": Stroke(
        "",
        (
            "UPDATE sessions SET ended_at = started_at, end_reason = 'cli_close' WHERE id = :a",
            "UPDATE messages SET timestamp = timestamp + 200 WHERE session_id = :a",
        ),
    ),
    "source unknown": Stroke("", ("UPDATE sessions SET source = 'unknown' WHERE id = :a",)),
    "no user": Stroke("", ("UPDATE sessions SET user_id = NULL WHERE id = :a",)),
    "broken configuration": Stroke(
        "HDB401", ("""UPDATE sessions SET model_config = '{"a":' WHERE id = :a""",)
    ),
    "broken calls": Stroke("HDB401", ("UPDATE messages SET tool_calls = '[{' WHERE id = :c",)),
    "broken multimodal content": Stroke(
        "HDB401", ("UPDATE messages SET content = char(0) || 'json:[{' WHERE id = :m",)
    ),
    "milliseconds": Stroke("HDB402", ("UPDATE messages SET timestamp = timestamp * 1000 WHERE id = :m",)),
    "text for a time": Stroke("HDB402", ("UPDATE messages SET timestamp = 'soon' WHERE id = :m",)),
    "huge start": Stroke("HDB402", ("UPDATE sessions SET started_at = 8.4e252 WHERE id = :a",)),
    "bytes in text": Stroke(
        "HDB403", ("UPDATE messages SET content = CAST(x'6869ff' AS TEXT) WHERE id = :m",)
    ),
    "bytes in a title": Stroke(
        "HDB403", ("UPDATE sessions SET title = CAST(x'ff' || :a AS TEXT) WHERE id = :a",)
    ),
    "role of none": Stroke("HDB405", ("UPDATE messages SET role = 'usr' WHERE id = :m",)),
    "absurd cost": Stroke("HDB405", ("UPDATE sessions SET estimated_cost_usd = 1.33e179 WHERE id = :a",)),
    "equal titles": Stroke(
        "HDB406",
        (
            "DROP INDEX IF EXISTS idx_sessions_title_unique",
            "UPDATE sessions SET title = 'Same' WHERE id IN (:a, :b)",
        ),
    ),
    "blank title": Stroke(
        "HDB406",
        ("DROP INDEX IF EXISTS idx_sessions_title_unique", "UPDATE sessions SET title = ' ' WHERE id = :a"),
    ),
    "counts too much": Stroke(
        "HDB501", ("UPDATE sessions SET message_count = 99, tool_call_count = 7 WHERE id = :a",)
    ),
    "counts none": Stroke("", ("UPDATE sessions SET message_count = 0, tool_call_count = 0 WHERE id = :a",)),
    "sequence behind": Stroke("HDB502", ("UPDATE sqlite_sequence SET seq = 1 WHERE name = 'messages'",)),
    "usage too high": Stroke(
        "",
        ("UPDATE session_model_usage SET input_tokens = 900000, output_tokens = 900000",),
        ("session_model_usage.task",),
    ),
    "usage of nobody": Stroke(
        "HDB203",
        (
            (
                "INSERT OR IGNORE INTO session_model_usage (session_id, model)"
                " SELECT 'never-was', model FROM session_model_usage LIMIT 1"
            ),
        ),
        ("session_model_usage.task",),
    ),
    "topic of nobody": Stroke(
        "HDB205",
        (
            (
                "UPDATE OR IGNORE telegram_dm_topic_bindings SET session_id = 'never-was' WHERE rowid ="
                " (SELECT MIN(rowid) FROM telegram_dm_topic_bindings)"
            ),
        ),
        ("telegram_dm_topic_bindings.session_id",),
    ),
    "result gone": Stroke("HDB601", ("DELETE FROM messages WHERE id = :t",)),
    "call gone": Stroke("HDB602", ("DELETE FROM messages WHERE id = :c",)),
    "arguments that are no JSON": Stroke(
        "HDB603",
        (
            (
                "UPDATE messages SET tool_calls = json_set(tool_calls, '$[0].function.arguments', '[terminal]')"
                " WHERE id = :c AND json_valid(tool_calls)"
            ),
        ),
    ),
    "time runs backwards": Stroke("", ("UPDATE messages SET timestamp = timestamp - 5000 WHERE id = :m",)),
    "archived copies": Stroke(
        "",
        (
            (
                "INSERT INTO messages (session_id, role, content, timestamp, active, compacted)"
                " SELECT session_id, role, content, timestamp, 0, 1 FROM messages WHERE id = :m AND tool_calls IS NULL"
            ),
            (
                "INSERT INTO messages (session_id, role, content, timestamp, active, compacted)"
                " SELECT session_id, role, content, timestamp, 0, 1 FROM messages WHERE id = :m AND tool_calls IS NULL"
            ),
        ),
        ("messages.compacted",),
    ),
    "a message twice": Stroke(
        "",
        (
            (
                "INSERT INTO messages (session_id, role, content, timestamp)"
                " SELECT session_id, role, content, timestamp FROM messages WHERE id = :m AND tool_calls IS NULL"
            ),
        ),
    ),
    "empty message": Stroke("", ("UPDATE messages SET content = '' WHERE id = :m AND tool_calls IS NULL",)),
    "sentinel": Stroke("", ("UPDATE messages SET content = '(empty)' WHERE id = :m AND tool_calls IS NULL",)),
    "no tool name": Stroke("HDB607", ("UPDATE messages SET tool_name = NULL WHERE id = :t",)),
    "picture gone": Stroke(
        "HDB701",
        (
            "UPDATE messages SET content = 'see [Image attached at: ' || :h || '/cache/images/a.png]' WHERE id = :m",
        ),
    ),
    "lock of nobody": Stroke(
        "HDB903",
        (
            (
                "INSERT OR REPLACE INTO compression_locks (session_id, holder, acquired_at, expires_at)"
                " VALUES ('never-was', 'pid=999999:tid=1:agent=a:nonce=0', 1, 2)"
            ),
        ),
        ("compression_locks.session_id",),
    ),
    "tombstone of a living": Stroke(
        "HDB905",
        ("INSERT OR REPLACE INTO state_meta (key, value) VALUES ('gateway.retired_session.v1.' || :a, '1')",),
    ),
    "broken goal": Stroke(
        "HDB401", ("INSERT OR REPLACE INTO state_meta (key, value) VALUES ('goal:' || :a, '{')",)
    ),
}
"""Every stroke by what it leaves."""


def strokes_of(facts: Facts) -> tuple[str, ...]:
    """The strokes that a file of these tables and columns can hold."""
    return tuple(name for name, stroke in STROKES.items() if facts.columns.issuperset(stroke.needs))


def strike(path: Path, dealt: Iterable[tuple[str, Sequence[int]]]) -> None:
    """Deal strokes in order; the three numbers choose two sessions and a message among those that are left."""
    document = json.dumps([str(path), [[STROKES[name].statements, list(places)] for name, places in dealt]])
    done = subprocess.run(
        [sys.executable, "-c", _SHELL],
        input=document,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
