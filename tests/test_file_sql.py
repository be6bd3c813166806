"""A text out of a file is one statement, whatever stands behind it."""

from __future__ import annotations

from pathlib import Path

import apsw
import pytest

from hermes_dbtools.file_sql import run_one
from hermes_dbtools.structure import unopened_indexes
from tests.running import tool_here
from tests.shapes.make import execute, fill, make

HOSTILE = "; ATTACH '{path}' AS other; CREATE TABLE other.mine (x); VACUUM INTO '{path}2'"


@pytest.mark.parametrize("tail", ["", ";", "; ", " -- a word", " /* a word */;"])
def test_what_is_no_statement_may_follow(tail: str) -> None:
    connection = apsw.Connection(":memory:")
    run_one(connection, "CREATE TABLE item (x)" + tail)
    assert connection.table_exists(None, "item")


@pytest.mark.parametrize("tail", ["; SELECT 1", "; CREATE TABLE other (x)", "; no statement"])
def test_another_one_does_not_run(tail: str) -> None:
    connection = apsw.Connection(":memory:")
    with pytest.raises(apsw.SQLError):
        run_one(connection, "CREATE TABLE item (x)" + tail)
    assert not connection.table_exists(None, "other")


@pytest.mark.parametrize("kind", ["table", "index", "trigger", "view", "search", "search trigger"])
def test_no_command_runs_what_stands_behind_an_object(kind: str, tmp_path: Path) -> None:
    path = make(tmp_path / "state.db", "22")
    fill(path)
    stranger = tmp_path / "stranger"
    tail = HOSTILE.format(path=str(stranger)).replace("'", "''")
    if kind == "view":
        execute(path, "CREATE VIEW seen AS SELECT id FROM messages")
    where = {
        "table": "type = 'table' AND name = 'messages'",
        "index": "type = 'index' AND name = 'idx_messages_session'",
        "trigger": "type = 'trigger'",
        "view": "name = 'seen'",
        "search": "name = 'messages_fts'",
        "search trigger": "name = 'messages_fts_insert'",
    }[kind]
    connection = apsw.Connection(str(path))
    connection.execute("PRAGMA writable_schema = ON")
    connection.execute(f"UPDATE sqlite_schema SET sql = sql || '{tail}' WHERE {where}")
    assert connection.changes()
    connection.close()
    output = tmp_path / "new.db"
    for words in (
        ("scan", path, "--deep"),
        ("repair", path, "--apply", "--yes", "--allow-lossy"),
        ("repair", path, "--apply", "--yes", "--select", "search"),
        ("undo", path, "--apply", "--yes"),
        ("compare", path, path),
        ("salvage", path, output),
        ("backup", path),
    ):
        ran = tool_here(*words)
        assert ran.code in (0, 1, 3, 4), ran
        assert "Traceback" not in ran.err
        assert not list(tmp_path.glob("stranger*")), words
    assert tool_here("scan", output).code in (0, 1)


def test_a_condition_of_an_index_is_a_condition_and_no_more(tmp_path: Path) -> None:
    path = make(tmp_path / "state.db", "22", journal_mode="delete")
    fill(path)
    stranger = tmp_path / "stranger"
    tail = f"; ATTACH '{stranger}' AS other; CREATE TABLE other.mine (x); -- */ ) WHERE id > 0"
    execute(path, f"CREATE INDEX odd ON messages (id /* ) WHERE id > 0 LIMIT 1{tail}")
    connection = apsw.Connection(str(path))
    assert list(unopened_indexes(connection)) == []
    connection.close()
    assert not stranger.exists()
