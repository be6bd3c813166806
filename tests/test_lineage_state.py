"""Sessions whose end, place or list is wrong: what cases cannot say of them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hermes_dbtools.damage._declare import Damage
from hermes_dbtools.damage.lineage import (
    activity_after_end,
    empty_sessions,
    hidden_by_upgrade,
    hidden_sessions,
    inconsistent_end_state,
    missing_identity,
    never_ended_sessions,
    placeholder_sessions,
)
from hermes_dbtools.plan import PlanOptions, make_plan
from hermes_dbtools.report.plans import plan_text
from tests.looking import brief, findings
from tests.repairs import look, new_home
from tests.running import tool_here
from tests.shapes.make import SHAPES, execute, fill, make

CLASSES = tuple(
    module.DAMAGE
    for module in (
        inconsistent_end_state,
        activity_after_end,
        never_ended_sessions,
        empty_sessions,
        placeholder_sessions,
        hidden_by_upgrade,
        hidden_sessions,
        missing_identity,
    )
)
OLD = 40 * 86400

BAD_ROWS = """
INSERT INTO sessions (id, source, started_at, ended_at, end_reason, parent_session_id, model_config, title, message_count) VALUES
  ('text-times', 'cli', 'then', 'now', 'cli_close', NULL, '{"a":', 'bad 1', 0),
  ('huge-times', 'cli', 8.4e252, 1e300, 'cli_close', '20260528_202640_5feceb', '[1]', 'bad 2', 0),
  ('infinite', 'cli', 9e999, -9e999, 'compression', 'infinite', '"x"', 'bad 3', 0),
  ('blob-reason', 'cli', 1780000000.0, 1780000001.0, x'ff', x'ff41', x'7b7d', 'bad 4', 0),
  ('millis', 'cli', 1780000000000, 1780000000001, 'cli_close', 'gone', 'null', 'bad 5', 0),
  (CAST(x'ff41' AS TEXT), CAST(x'fe' AS TEXT), 1780000000.0, NULL, NULL, NULL, CAST(x'7bff' AS TEXT), x'fd', 'many'),
  (x'00ff', 'unknown', 1780000000.0, NULL, NULL, NULL, NULL, NULL, 0),
  (NULL, 'unknown', 1780000000.0, NULL, NULL, NULL, NULL, NULL, 0)
"""
BAD_MESSAGES = """
INSERT INTO messages (session_id, role, content, timestamp, tool_calls, tool_name) VALUES
  ('text-times', CAST(x'ff' AS TEXT), x'00ff', 'late', '{"a":', 'delegate_task'),
  ('huge-times', 'user', NULL, 1e300, '[{"function": 7}, 3, null]', 'delegate_task'),
  ('infinite', 'user', 'hello', 9e999, '"delegate_task"', NULL),
  ('blob-reason', 'tool', CAST(x'ff' AS TEXT), -5, NULL, 'delegate_task')
"""


@pytest.mark.parametrize("trust_indexes", [True, False])
@pytest.mark.parametrize("shape", SHAPES)
def test_bad_values_stop_no_class_and_accuse_no_healthy_row(
    shape: str, trust_indexes: bool, tmp_path: Path
) -> None:
    path = make(tmp_path / "state.db", shape)
    healthy = {*fill(path).all}
    for statement in (BAD_ROWS, BAD_MESSAGES):
        execute(path, statement)
    for damage in CLASSES:
        found = findings(damage, path, trust_indexes=trust_indexes)
        assert not {one.key.rpartition(":")[2] for one in found} & healthy, damage.slug


@pytest.mark.parametrize("damage", CLASSES, ids=[damage.slug for damage in CLASSES])
@pytest.mark.parametrize("shape", SHAPES)
def test_a_look_without_indexes_says_the_same(damage: Damage, shape: str, tmp_path: Path) -> None:
    path = make(tmp_path / "state.db", shape)
    ids = fill(path)
    for statement, session_id in (
        (f"UPDATE sessions SET started_at = started_at - {OLD} WHERE id = ?", ids.plain[2]),
        (f"UPDATE messages SET timestamp = timestamp - {OLD} WHERE session_id = ?", ids.plain[2]),
        ("UPDATE messages SET timestamp = timestamp + 4000 WHERE session_id = ?", ids.plain[1]),
        ("UPDATE sessions SET user_id = '7', ended_at = NULL WHERE id = ?", ids.compressed),
        (f"UPDATE sessions SET parent_session_id = '{ids.plain[1]}' WHERE id = ?", ids.gateway),
        ("INSERT INTO sessions (id, source, started_at, ended_at, end_reason) VALUES (?, 'tui', 1e9, 1e9, 'x')", "shell"),
        ("INSERT INTO sessions (id, source, started_at, input_tokens) VALUES (?, 'unknown', 1780000000, 3)", "ghost"),
        ("UPDATE sessions SET title = NULL, model_config = '{\"_delegate_from\": \"__orphaned__\"}' WHERE id = ?", ids.branch),
        ("UPDATE sessions SET parent_session_id = NULL WHERE id = ?", ids.branch),
    ):  # fmt: skip
        execute(path, statement, (session_id,))
    if "last_activity_at" in columns(path):
        execute(path, "UPDATE sessions SET last_activity_at = NULL")
    found = findings(damage, path)
    assert found
    assert findings(damage, path, trust_indexes=False) == found


def columns(path: Path) -> set[str]:
    """The columns of sessions."""
    return {str(row[1]) for row in execute(path, "PRAGMA table_info(sessions)")}


def test_the_dry_run_of_many_closes_says_what_a_prune_does(tmp_path: Path) -> None:
    home = new_home(
        tmp_path / "home",
        "22",
        f"UPDATE sessions SET started_at = started_at - {OLD} WHERE ended_at IS NULL AND session_key IS NULL",
        f"UPDATE messages SET timestamp = timestamp - {OLD} WHERE session_id IN (SELECT id FROM sessions WHERE ended_at IS NULL)",
    )
    report = look(home, select=("never-ended-sessions",))
    plan = make_plan(report, PlanOptions({"never-ended-sessions": "close"}))
    assert len(plan.steps) > 1
    (line,) = [line for line in plan_text(plan, report, seconds=0.0).splitlines() if " close " in line]
    assert (
        f"close {len(plan.steps)} sessions (upstream's auto-prune may later delete what is closed, with its messages)"
        in line
    )


def test_a_session_is_idle_by_the_files_own_clock(tmp_path: Path) -> None:
    path = make(tmp_path / "state.db", "22")
    ids = fill(path)
    assert findings(never_ended_sessions.DAMAGE, path) == []
    execute(path, f"UPDATE sessions SET started_at = started_at + {OLD} WHERE id = ?", (ids.gateway,))
    found = {key for _kind, key, _severity in brief(findings(never_ended_sessions.DAMAGE, path))}
    assert found == {ids.plain[2], ids.branch, ids.continuation}


def test_no_evidence_holds_what_identifies_a_person(tmp_path: Path) -> None:
    path = make(tmp_path / "state.db", "media")
    ids = fill(path)
    secrets = ("user-4711", "chat-4712", "/srv/private-4714", "agent:main:telegram:dm:4713")
    execute(
        path,
        "UPDATE sessions SET user_id = ?, chat_id = ?, cwd = ?, session_key = ? WHERE id = ?",
        (*secrets, ids.compressed),
    )
    execute(
        path,
        "UPDATE sessions SET source = 'cli', session_key = ?, user_id = NULL, chat_id = NULL WHERE id = ?",
        (secrets[3], ids.gateway),
    )
    found = findings(missing_identity.DAMAGE, path)
    assert {one.kind for one in found} == {"continuation", "chat"}
    steps = [remedy.step for one in found for remedy in one.remedies if remedy.step is not None]
    told = json.dumps([[one.key, one.message, dict(one.evidence)] for one in found]) + repr(steps)
    assert steps
    assert not [secret for secret in secrets if secret in told]


def test_the_operator_says_how_long_idle_is(tmp_path: Path) -> None:
    path = make(tmp_path / "state.db", "22")
    fill(path)
    open_one, day = "20260528_222640_d4735e", 86_400
    for table, column, key in (("sessions", "started_at", "id"), ("messages", "timestamp", "session_id")):
        execute(path, f"UPDATE {table} SET {column} = {column} - {10 * day} WHERE {key} = '{open_one}'")
    select = ("scan", path, "--select", "never-ended-sessions", "--format", "json")

    def found(*more: str) -> list[tuple[str, int]]:
        (database,) = json.loads(tool_here(*select, *more).out)["databases"]
        findings = [finding for result in database["results"] for finding in result["findings"]]
        return [(finding["key"], finding["evidence"]["idle_days"]) for finding in findings]

    assert found() == []
    assert found("--idle", "30") == []
    assert found("--idle", "9") == [(open_one, 10)]
    close = ("repair", path, "--select", "never-ended-sessions", "--choose", "never-ended-sessions=close")
    saved = tmp_path / "plan.json"
    assert tool_here(*close, "--idle", "9", "--save-plan", str(saved)).code == 0
    assert tool_here("repair", path, "--plan", str(saved), "--idle", "9").code == 2
    applied = tool_here("repair", path, "--plan", str(saved), "--apply", "--yes")
    assert applied.code == 0, applied.err
    assert found("--idle", "9") == []
