"""The demo home is healthy before its damage, and afterwards has exactly the damage its script names."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.shapes.engines import Step, run
from tests.shapes.health import drifted
from tests.shapes.make import execute, make, script


@pytest.fixture
def home(tmp_path: Path) -> Path:
    path = make(tmp_path / "state.db", "22")
    run(path, [Step(script("demo_healthy"))], foreign_keys=True)
    return path


def test_the_healthy_home_has_nothing_wrong(home: Path) -> None:
    assert execute(home, "PRAGMA foreign_key_check") == []
    assert execute(home, "PRAGMA integrity_check") == [("ok",)]
    assert drifted(home) == []
    assert execute(home, "SELECT COUNT(*) FROM sessions") == [(13,)]
    assert execute(home, "SELECT COUNT(*) FROM messages") == [(124,)]
    overspent = """
        SELECT s.id FROM sessions AS s
        INNER JOIN session_model_usage AS u ON u.session_id = s.id AND u.task = ''
        WHERE u.input_tokens <> s.input_tokens OR u.api_call_count <> s.api_call_count
    """
    assert execute(home, overspent) == []


def test_the_damage_is_what_the_script_says(home: Path) -> None:
    run(home, [Step(script("demo_damage"))], foreign_keys=True)
    assert execute(home, "PRAGMA integrity_check") == [("ok",)]
    gone = "NOT IN (SELECT p.id FROM sessions AS p)"
    orphans = execute(home, f"SELECT session_id, COUNT(*) FROM messages WHERE session_id {gone} GROUP BY 1")
    assert sorted(count for _, count in orphans) == [6, 10, 16]
    marker = "model_config ->> '_branched_from'"
    parents = execute(
        home, f"SELECT parent_session_id, {marker} FROM sessions WHERE parent_session_id {gone}"
    )
    assert len(parents) == 3
    assert len([parent for parent, _ in parents if parent in {session for session, _ in orphans}]) == 1
    assert len([parent for parent, branched_from in parents if parent == branched_from]) == 1
    usage = execute(home, f"SELECT DISTINCT session_id FROM session_model_usage WHERE session_id {gone}")
    assert len(usage) == 5
    assert len(drifted(home)) == 2
    assert [file.name for file in home.parent.iterdir()] == ["state.db"]
