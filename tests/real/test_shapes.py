"""The fixture shapes have what the released stores have, object by object."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from hermes_dbtools.fixtures.names import PARTS, SHAPES
from hermes_dbtools.fixtures.shapes import script
from tests.real.wheels import wheel
from tests.shapes.describe import describe
from tests.shapes.engines import Step, run
from tests.shapes.facts import FOREIGN_KEYS, LACKING, NEWEST
from tests.shapes.make import execute, make

RELEASE_OF = {
    "11": "0.13.0", "13": "0.15.0", "14": "0.16.0", "16": "0.17.0", "17": "0.18.0", "19": "0.18.2",
    "22": "0.19.0", "25": "0.20.4.1",
}  # fmt: skip

CHANGES = (
    "DELETE FROM messages",
    "INSERT OR IGNORE INTO sessions (id, source, started_at) VALUES ('b', 'cli', 1)",
    """
    INSERT INTO messages (id, session_id, role, content, tool_name, tool_calls, timestamp) VALUES
        (11, 'b', 'user', 'the first question', NULL, NULL, 1),
        (12, 'b', 'assistant', char(0) || 'json:["behind"]', NULL, '[{"name": "search"}]', 2),
        (13, 'b', 'tool', 'an answer of a tool', 'search', NULL, 3),
        (14, 'b', 'assistant', NULL, NULL, NULL, 4),
        (15, 'b', 'user', 'one more question', NULL, NULL, 5)
    """,
    "UPDATE messages SET content = 'the second question' WHERE id = 11",
    "UPDATE messages SET tool_name = 'search_files' WHERE id = 13",
    "UPDATE messages SET timestamp = 6 WHERE id = 14",
    "DELETE FROM messages WHERE id = 15",
)

# in a process of its own: the released code opens the file with the standard library's SQLite
DESCRIBE_RELEASE = """
import asyncio, inspect, json, pathlib, sys
sys.path[:0] = [sys.argv[1], sys.argv[3]]
import hermes_state
from tests.shapes.describe import describe
async def opened():
    for _ in range(2):  # the mark of the search layout appears at the second open
        db = hermes_state.SessionDB(pathlib.Path(sys.argv[2]))
        for call in (lambda: db.create_session("a", "cli"), db.close):
            answer = call()
            if inspect.isawaitable(answer):
                await answer
asyncio.run(opened())
import sqlite3
connection = sqlite3.connect(sys.argv[2])
json.dump(describe(lambda sql, *bindings: connection.execute(sql, bindings).fetchall()), sys.stdout)
"""


def released(folder: Path, release: str) -> Any:
    """What the wheel of this release makes, described."""
    root = Path(__file__).resolve().parents[2]
    command = [
        sys.executable,
        "-c",
        DESCRIBE_RELEASE,
        str(wheel(release)),
        str(folder / "real.db"),
        str(root),
    ]
    environment = os.environ | {"HERMES_HOME": str(folder), "HOME": str(folder)}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def ours(path: Path) -> Any:
    """The same description of one of our files."""
    return json.loads(json.dumps(describe(lambda sql, *bindings: execute(path, sql, bindings))))


@pytest.mark.parametrize("shape", RELEASE_OF)
def test_a_shape_is_what_its_release_makes(tmp_path: Path, shape: str) -> None:
    path = make(tmp_path / "state.db", shape)
    real, made = released(tmp_path, RELEASE_OF[shape]), ours(path)
    assert made.keys() == real.keys()
    for aspect in made:
        assert made[aspect] == real[aspect], aspect


@pytest.mark.parametrize("shape", RELEASE_OF)
def test_the_triggers_of_a_shape_index_what_those_of_its_release_do(tmp_path: Path, shape: str) -> None:
    released(tmp_path, RELEASE_OF[shape])
    made = make(tmp_path / "state.db", shape, engine="stdlib")
    for index in ("messages_fts", "messages_fts_trigram"):
        indexed = [
            *(Step(sql, [()]) for sql in CHANGES),
            Step(f"CREATE VIRTUAL TABLE temp.terms USING fts5vocab (main, {index}, instance)", [()]),
            Step("SELECT term, doc, col, offset FROM temp.terms ORDER BY 1, 2, 3, 4", [()]),
        ]
        real = run(tmp_path / "real.db", indexed, "stdlib")
        assert real
        assert run(made, indexed, "stdlib") == real


@pytest.mark.parametrize("shape", LACKING)
def test_a_newer_shape_has_the_columns_of_the_facts(tmp_path: Path, shape: str) -> None:
    path = make(tmp_path / "state.db", shape)
    absent = LACKING[shape]
    expected = {
        f"{table}.{column}": fact
        for table, columns in NEWEST.items()
        if table not in absent and not table.startswith(("telegram_", "delivery_"))
        for column, fact in columns.items()
        if f"{table}.{column}" not in absent
    }
    made = {
        name: " ".join(map(str, fact))
        for name, fact in ours(path)["columns"].items()
        if not name.startswith(("messages_fts", "sqlite_"))
    }
    assert made == expected


def test_the_newest_shape_has_the_foreign_keys_of_the_facts(tmp_path: Path) -> None:
    path = make(tmp_path / "state.db", "media", parts=["telegram", "deliveries"])
    assert {tuple(key) for key in ours(path)["foreign_keys"]} == FOREIGN_KEYS


def test_the_parts_have_the_columns_of_the_facts(tmp_path: Path) -> None:
    path = make(tmp_path / "state.db", "22", parts=["telegram", "deliveries"])
    made = ours(path)["columns"]
    for table in ("telegram_dm_topic_mode", "telegram_dm_topic_bindings", "delivery_obligations"):
        found = {
            name.split(".")[1]: " ".join(map(str, fact))
            for name, fact in made.items()
            if name.startswith(f"{table}.")
        }
        assert found == NEWEST[table]


def test_only_the_first_form_of_a_topic_binding_stops_the_delete_of_its_session(tmp_path: Path) -> None:
    actions = {}
    for part in ("telegram_v1", "telegram"):
        path = make(tmp_path / f"{part}.db", "22", parts=[part])
        keys = execute(path, "SELECT on_delete FROM pragma_foreign_key_list('telegram_dm_topic_bindings')")
        actions[part] = keys[0][0]
    assert actions == {"telegram_v1": "NO ACTION", "telegram": "CASCADE"}


def test_the_application_id_follows_from_the_generation_of_the_file(tmp_path: Path) -> None:
    path = make(tmp_path / "state.db", "31")
    generation = execute(path, "SELECT value FROM state_meta WHERE key = 'db_file_generation'")[0][0]
    assert execute(path, "PRAGMA application_id") == [(int(generation[:8], 16) & 0x7FFFFFFF,)]


@pytest.mark.parametrize("name", [*(f"shape_{shape}" for shape in SHAPES), *PARTS])
def test_every_statement_of_a_script_has_a_comment_above_it(name: str) -> None:
    blocks = script(name).strip().split("\n\n")
    assert all(block.startswith("-- ") for block in blocks)
    assert all(block.endswith(";") for block in blocks[1:])
