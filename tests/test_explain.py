"""Why one session fails or is hidden: every branch of the triage, and nothing where nothing is wrong."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import apsw
import msgspec
import pytest

from hermes_dbtools import documents
from hermes_dbtools.explain.answers import explain_session
from hermes_dbtools.explain.document import Explanation, Session
from hermes_dbtools.explain.failures import failures
from hermes_dbtools.explain.statements import SINCE
from hermes_dbtools.home import Home
from hermes_dbtools.model import UsageError
from hermes_dbtools.report import explain as report
from hermes_dbtools.visibility import Rule
from tests.hostile import NOT_UTF8
from tests.repairs import (
    BRANCH,
    CHAT,
    COMPRESSED,
    CONTINUATION,
    COUNTERS,
    DELEGATE,
    LOST_SESSION,
    NOW,
    ROOT,
    SECOND,
    THIRD,
    bytes_of,
    new_home,
)
from tests.running import environment, tool, tool_here
from tests.shapes.make import SHAPES, execute

UPSERT, DELETE = failures().statements.upsert, failures().statements.delete
GONE = "20260601_000000_0dd0ff"
TOMB = "INSERT INTO state_meta (key, value) VALUES ('gateway.retired_session.v1.{}', '{{}}')"
LEASE = "INSERT INTO session_turn_leases VALUES ('{}', 'pid=1:turn=t', 1.0, 4e9)"
EVERYONE = (ROOT, SECOND, THIRD, BRANCH, DELEGATE, COMPRESSED, CONTINUATION, CHAT)


def asked(home: Home, word: str) -> tuple[Explanation, Session]:
    answer = explain_session(home, word, lambda _what: None, NOW)
    (session,) = answer.sessions
    return answer, session


def transcript(home: Home, name: str) -> None:
    folder = home.root / "sessions"
    folder.mkdir(exist_ok=True)
    lines = [{"role": "user", "content": "a question"}, {"role": "assistant", "content": "an answer"}]
    (folder / name).write_text("".join(json.dumps(line) + "\n" for line in lines))


def codes(session: Session) -> set[str]:
    return {one.code for one in session.findings}


@pytest.mark.parametrize("shape", SHAPES)
def test_nothing_is_wrong_with_any_session_of_a_healthy_file(shape: str, tmp_path: Path) -> None:
    home = new_home(tmp_path / "home", shape)
    before = bytes_of(home.database)
    for session_id in EVERYONE:
        answer, session = asked(home, session_id)
        assert (answer.exit_code, session.failing, session.delete_blocked_by) == (0, [], [])
        assert "nothing" in session.verdict
        assert answer.could_not_look == []
        if not session.hidden:
            assert [one.command for one in answer.next] == [f"hermes-dbtools scan {home.database}"]
    assert bytes_of(home.database) == before


@pytest.mark.parametrize("shape", SHAPES)
def test_messages_without_a_row(shape: str, tmp_path: Path) -> None:
    home = new_home(tmp_path / "home", shape, LOST_SESSION)
    answer, session = asked(home, THIRD[:15])
    assert (session.id, session.state, answer.exit_code) == (THIRD, "missing", 1)
    assert session.failing[0].statement == "INSERT INTO messages"
    assert session.failing[0].key == "messages.session_id -> sessions(id)"
    assert session.failing[0].rows == 4
    assert THIRD in session.failing[0].because
    assert "HDB201" in codes(session)
    assert "its row is gone and 4 messages of it are left" in session.verdict
    assert answer.next[0].command == f"hermes-dbtools repair {home.database} --select orphaned-messages"


TEXT = """\
state.db · held by nobody

{id} · missing
  why     its row is gone and 4 messages of it are left: nothing is saved in it
  fails   INSERT INTO messages: messages.session_id -> sessions(id): sessions has no row '{id}'
          INSERT INTO session_model_usage: session_model_usage.session_id -> sessions(id): sessions has no row '{id}'
  rows    messages 4, session_model_usage 2
  found   error HDB201 orphaned-messages: 4 messages of a session that has no row

next:  hermes-dbtools repair {database} --select orphaned-messages   what would be changed (nothing is written)
"""


def test_what_is_read_at_three_in_the_morning(tmp_path: Path) -> None:
    home = new_home(tmp_path / "home", "22", LOST_SESSION)
    answer, _session = asked(home, THIRD)
    assert report.text(answer) == TEXT.format(id=THIRD, database=home.database)


def upsert(home: Home, session_id: str) -> str:
    """The statement with which stores since 0.18 write a session's row again, for the columns of this file."""
    has = {row[1] for row in execute(home.database, "PRAGMA table_info(sessions)")}
    again = [name for name in ("parent_session_id", "system_prompt_hash") if name in has]
    changes = ", ".join(f"{name} = COALESCE(sessions.{name}, excluded.{name})" for name in again)
    return (
        f"INSERT INTO sessions (id, source, started_at) VALUES ('{session_id}', 'cli', 1.0)"
        f" ON CONFLICT(id) DO UPDATE SET {changes}"
    )


def statement_of(home: Home, session_id: str, statement: str) -> str:
    if statement == UPSERT:
        return upsert(home, session_id)
    if statement == DELETE:
        return f"DELETE FROM sessions WHERE id = '{session_id}'"
    if statement == "INSERT INTO messages":
        return f"INSERT INTO messages (session_id, role, content, timestamp) VALUES ('{session_id}', 'user', 'x', 1.0)"
    assert statement == "INSERT INTO session_model_usage"
    return f"INSERT INTO session_model_usage (session_id, model) VALUES ('{session_id}', 'm')"


DAMAGES: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "orphans": ("22", THIRD, (LOST_SESSION,)),
    "parent": ("22", SECOND, (f"UPDATE sessions SET parent_session_id = '{GONE}' WHERE id = '{SECOND}'",)),
    "prompt": ("25", SECOND, ("DELETE FROM system_prompts",)),
    "usage": ("22", THIRD, (f"DELETE FROM messages WHERE session_id = '{THIRD}'", LOST_SESSION)),
    "tombstone": ("runtime", GONE, (TOMB.format(GONE),)),
}


@pytest.mark.parametrize("name", DAMAGES)
def test_what_is_said_to_fail_does_fail_and_what_is_not_does_not(name: str, tmp_path: Path) -> None:
    shape, session_id, damages = DAMAGES[name]
    home = new_home(tmp_path / "home", shape, *damages)
    for one in (session_id, CHAT):
        _answer, session = asked(home, one)
        told = {failing.statement.removesuffix(SINCE) for failing in session.failing}
        assert bool(told) == (one == session_id or name == "prompt")
        every = ["INSERT INTO messages", *(["INSERT INTO session_model_usage"] if told else []), UPSERT]
        for number, statement in enumerate(dict.fromkeys([*told, *every])):
            copy = tmp_path / f"{one}{number}.db"
            shutil.copy(home.database, copy)
            sql = statement_of(home, one, statement)
            if statement in told:
                with pytest.raises(apsw.ConstraintError, match="FOREIGN KEY constraint failed"):
                    execute(copy, sql, foreign_keys=True)
            elif session.state != "missing":
                execute(copy, sql, foreign_keys=True)


def test_a_stale_parent_names_the_row_that_is_gone(tmp_path: Path) -> None:
    home = new_home(tmp_path / "home", *("22", *DAMAGES["parent"][2]))
    answer, session = asked(home, SECOND)
    (failing,) = session.failing
    assert failing.statement.startswith(UPSERT)
    assert failing.key == "sessions.parent_session_id -> sessions(id)"
    assert failing.because == f"sessions has no row '{GONE}'"
    assert session.hidden == Rule.MISSING_PARENT.sentence
    assert answer.next[0].command.endswith("--select missing-parent-session")
    parent = asked(home, GONE)[1]
    assert parent.state == "missing"
    assert [(one.table, one.rows) for one in parent.named_by] == [("sessions", 1)]
    assert codes(parent) == {"HDB202"}


def test_a_missing_prompt_names_the_prompt(tmp_path: Path) -> None:
    home = new_home(tmp_path / "home", *("25", *DAMAGES["prompt"][2]))
    answer, session = asked(home, SECOND)
    assert [one.key for one in session.failing] == ["sessions.system_prompt_hash -> system_prompts(hash)"]
    assert answer.exit_code == 1
    assert [one.command for one in answer.next] == ["hermes-dbtools runbook missing-system-prompt"]


def test_usage_without_a_row_is_dropped_only_by_consent(tmp_path: Path) -> None:
    home = new_home(tmp_path / "home", *("22", *DAMAGES["usage"][2]))
    answer, session = asked(home, THIRD)
    assert codes(session) == {"HDB203"}
    assert [one.command for one in answer.next] == [
        f"hermes-dbtools repair {home.database} --select orphaned-usage --allow-lossy"
    ]


def test_a_table_of_a_fork_blocks_a_delete(tmp_path: Path) -> None:
    home = new_home(
        tmp_path / "home",
        "22",
        "CREATE TABLE extra (id INTEGER PRIMARY KEY, session_id TEXT REFERENCES sessions(id) ON DELETE RESTRICT)",
        f"INSERT INTO extra VALUES (1, '{CHAT}')",
    )
    (blocked,) = asked(home, CHAT)[1].delete_blocked_by
    assert (blocked.statement, blocked.key, blocked.rows) == (DELETE, "extra.session_id -> sessions(id)", 1)
    for table in ("messages", "session_model_usage"):
        execute(home.database, f"DELETE FROM {table} WHERE session_id = '{CHAT}'")
    with pytest.raises(apsw.ConstraintError):
        execute(home.database, statement_of(home, CHAT, DELETE), foreign_keys=True)


def test_a_damaged_table_is_said_first(tmp_path: Path) -> None:
    home = new_home(tmp_path / "home", "22", LOST_SESSION)
    ((root,),) = execute(home.database, "SELECT rootpage FROM sqlite_master WHERE name = 'sessions'")
    data = bytearray(home.database.read_bytes())
    data[(root - 1) * 4096 : (root - 1) * 4096 + 64] = b"\xff" * 64
    home.database.write_bytes(data)
    answer = explain_session(home, THIRD, lambda _what: None, NOW)
    assert answer.exit_code == 1
    assert answer.verdict.startswith("the file itself is damaged")
    assert [one.command for one in answer.next] == [
        "hermes-dbtools runbook structural-damage",
        f"hermes-dbtools salvage {home.database} {home.database.with_name('salvaged.db')}",
    ]
    assert tool_here("explain", home.root, THIRD).code == 1


def test_a_session_that_its_user_deleted(tmp_path: Path) -> None:
    home = new_home(tmp_path / "home", "runtime", TOMB.format(GONE))
    answer, session = asked(home, GONE[:10])
    assert (session.id, session.deleted, session.state, answer.exit_code) == (GONE, True, "missing", 0)
    assert "its user deleted it" in session.verdict
    execute(home.database, TOMB.format(THIRD))
    answer, session = asked(home, THIRD)
    assert (codes(session), answer.exit_code) == ({"HDB905"}, 1)
    assert answer.next[0].command == "hermes-dbtools runbook resurrected-sessions"
    execute(home.database, LOST_SESSION)
    answer, session = asked(home, THIRD)
    assert "4 messages of it are left" in session.verdict
    assert "HDB201" in codes(session)
    assert "--select orphaned-messages" not in answer.next[0].command


def test_a_session_in_another_profile(tmp_path: Path) -> None:
    home = new_home(tmp_path / "home", "22")
    (home.root / "profiles").mkdir()
    rename = [f"UPDATE {t} SET {c} = '{GONE}' WHERE {c} = '{CHAT}'" for t, c in (
        ("messages", "session_id"), ("session_model_usage", "session_id"), ("sessions", "id"))]  # fmt: skip
    other = new_home(home.root / "profiles" / "work", "22", *rename)
    answer, session = asked(home, GONE[:12])
    assert (session.id, session.profiles, answer.exit_code) == (GONE, ["work"], 1)
    assert "profile work" in session.verdict
    assert [one.command for one in answer.next] == [f"hermes-dbtools explain {other.database} {GONE}"]
    other.database.write_bytes(b"no database at all" * 300)
    with pytest.raises(UsageError, match="nothing else knows it"):
        asked(home, GONE)
    answer, _session = asked(home, CHAT)
    assert any("work" in one for one in answer.could_not_look)


def test_a_session_that_is_only_a_transcript(tmp_path: Path) -> None:
    home = new_home(tmp_path / "home", "22")
    transcript(home, f"{GONE}.jsonl")
    answer, session = asked(home, GONE[:12])
    assert (session.id, session.transcripts, answer.exit_code) == (GONE, [f"{GONE}.jsonl"], 1)
    assert [one.command for one in answer.next] == [
        f"hermes-dbtools sessions rebuild --home {home.database} {GONE}"
    ]


def test_a_chat_is_routed_to_a_session_without_a_row(tmp_path: Path) -> None:
    home = new_home(tmp_path / "home", "runtime")
    entry = json.dumps({"session_id": GONE})
    execute(
        home.database,
        f"INSERT INTO gateway_routing (scope, session_key, entry_json, updated_at) VALUES ('s', 'k', '{entry}', 1)",
    )
    answer, session = asked(home, GONE[:12])
    assert (session.id, answer.exit_code) == (GONE, 1)
    assert [(one.table, one.rows) for one in session.named_by] == [("gateway_routing", 1)]
    assert codes(session) == {"HDB207"}


@pytest.mark.parametrize(
    ("table", "sql"),
    [
        ("state_meta", f"INSERT INTO state_meta (key, value) VALUES ('goal:{GONE}', 'x')"),
        ("compression_locks", f"INSERT INTO compression_locks VALUES ('{GONE}', 'pid=1', 1.0, 2.0)"),
        ("session_turn_leases", f"INSERT INTO session_turn_leases VALUES ('{GONE}', 'pid=1', 1.0, 2.0)"),
        (
            "session_admissions",
            f"UPDATE session_admissions SET target_session_id = '{GONE}', status = 'terminal'",
        ),
        ("worker_executions", f"UPDATE worker_executions SET session_id = '{GONE}', status = 'terminal'"),
    ],
)
def test_whatever_names_an_id_is_found(table: str, sql: str, tmp_path: Path) -> None:
    home = new_home(tmp_path / "home", "runtime", sql)
    _answer, session = asked(home, GONE[:12])
    assert (session.id, session.state) == (GONE, "missing")
    assert [one.table for one in session.named_by] == [table]


def test_who_holds_it_and_that_it_waits_for_that(tmp_path: Path) -> None:
    home = new_home(tmp_path / "home", "runtime", LOST_SESSION, LEASE.format(THIRD))
    answer, session = asked(home, THIRD)
    assert session.live is not None
    assert (session.live.reason, session.live.holder, session.live.expires_at) == ("turn lease", "pid 1", 4e9)
    assert [one.command for one in answer.next] == [f"hermes-dbtools explain {home.database} {THIRD}"]
    assert "held    turn lease, pid 1, until 2096-10-02" in report.text(answer)
    execute(home.database, LEASE.format(SECOND))
    answer, session = asked(home, SECOND)
    assert (session.state, answer.exit_code) == ("live", 0)
    assert session.verdict == "nothing is wrong with it now; it is in use"


DEEP = """
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 160)
INSERT INTO sessions (id, source, started_at, ended_at, end_reason, parent_session_id)
SELECT 'c' || i, 'cli', 1.7e9 + i, 1.7e9 + i, 'compression', CASE WHEN i > 1 THEN 'c' || (i - 1) END FROM n
"""

HIDING: dict[str, tuple[str, str, str]] = {
    "archived": (Rule.ARCHIVED.sentence, SECOND, f"UPDATE sessions SET archived = 1 WHERE id = '{SECOND}'"),
    "hidden": (Rule.HIDDEN.sentence, SECOND, f"UPDATE sessions SET hidden = 1 WHERE id = '{SECOND}'"),
    "unreadable-flag": (
        Rule.UNREADABLE_FLAG.sentence,
        SECOND,
        f"UPDATE sessions SET archived = 'perhaps' WHERE id = '{SECOND}'",
    ),
    "delegate-marker": (Rule.DELEGATE_MARKER.sentence, DELEGATE, "SELECT 1"),
    "missing-parent": (
        Rule.MISSING_PARENT.sentence,
        SECOND,
        f"UPDATE sessions SET parent_session_id = '{GONE}' WHERE id = '{SECOND}'",
    ),
    "branched-later": (
        Rule.BRANCHED_LATER.sentence,
        SECOND,
        f"UPDATE sessions SET parent_session_id = '{ROOT}', started_at = 1.0 WHERE id = '{SECOND}'",
    ),
    "unmarked-child": (
        Rule.UNMARKED_CHILD.sentence,
        SECOND,
        f"UPDATE sessions SET parent_session_id = '{CHAT}' WHERE id = '{SECOND}'",
    ),
    "other-continuation": (
        Rule.OTHER_CONTINUATION.sentence,
        SECOND,
        f"UPDATE sessions SET parent_session_id = '{COMPRESSED}', started_at = 1.0 WHERE id = '{SECOND}'",
    ),
    "too-deep": (
        Rule.TOO_DEEP.sentence,
        "c150",
        DEEP,
    ),
    "helper": (
        "lists leave out sessions of source kanban",
        SECOND,
        f"UPDATE sessions SET source = 'kanban' WHERE id = '{SECOND}'",
    ),
}


def test_every_rule_has_a_case() -> None:
    assert set(HIDING) == {*Rule, "helper"}


@pytest.mark.parametrize("name", HIDING)
def test_why_a_session_is_hidden(name: str, tmp_path: Path) -> None:
    sentence, session_id, sql = HIDING[name]
    home = new_home(tmp_path / "home", "30", sql)
    answer, session = asked(home, session_id)
    assert sentence in session.hidden
    assert f"listed  no: {session.hidden}" in report.text(answer)
    if answer.exit_code == 0:
        assert session.verdict == f"nothing fails; lists leave it out: {session.hidden}"
        assert answer.next[0].command == f"hermes-dbtools sessions show --home {home.database} {session_id}"


def test_a_compressed_session_is_listed_as_its_continuation(tmp_path: Path) -> None:
    answer, session = asked(new_home(tmp_path / "home", "30"), COMPRESSED)
    assert (session.hidden, session.shown_as) == ("", CONTINUATION)
    assert f"listed  as {CONTINUATION}" in report.text(answer)


def test_what_is_wrong_elsewhere_is_not_said_of_it(tmp_path: Path) -> None:
    home = new_home(tmp_path / "home", "22", COUNTERS)
    assert asked(home, CHAT)[0].exit_code == 0
    answer, session = asked(home, SECOND)
    assert (answer.exit_code, codes(session)) == (1, {"HDB501"})
    execute(home.database, f"UPDATE sessions SET message_count = 77 WHERE id = '{BRANCH}'")
    answer, session = asked(home, ROOT)
    assert [(one.code, one.relation) for one in session.findings] == [("HDB501", "lineage")]
    assert "with its family" in session.verdict


@pytest.mark.parametrize(
    ("word", "told"),
    [
        (GONE, "nothing else knows it"),
        ("2026", "several"),
        ("", "no session"),
        ("x" * 5000, "5,000 letters"),
        ("a\nb", "no session"),
        ("Plain session", "nothing else knows it"),
    ],
)
def test_a_word_that_means_no_session_is_one_clear_line(word: str, told: str, tmp_path: Path) -> None:
    home = new_home(tmp_path / "home", "22")
    with pytest.raises(UsageError, match=told):
        asked(home, word)


def test_an_id_that_begins_like_an_option_is_one(tmp_path: Path) -> None:
    home = new_home(tmp_path / "home", "22", TOMB.format("-v1.2"))
    ran = tool_here("explain", home.database, "--", "-v1.2")
    assert (ran.code, ran.err) == (0, "")
    ran = tool_here("explain", home.database, "--", "-v1.3")
    assert (ran.code, len(ran.err.splitlines()), ran.out) == (2, 1, "")


def test_a_title_means_its_session_and_two_traces_mean_none(tmp_path: Path) -> None:
    home = new_home(tmp_path / "home", "22", TOMB.format(GONE), TOMB.format(GONE + "2"))
    assert asked(home, "Plain session 0")[1].id == ROOT
    assert asked(home, GONE)[1].id == GONE
    with pytest.raises(UsageError, match="several"):
        asked(home, GONE[:12])


def test_values_of_any_kind_are_no_obstacle(tmp_path: Path) -> None:
    home = new_home(tmp_path / "home", "runtime")
    for column in ("end_reason", "ended_at", "model_config", "source"):
        odd = f"UPDATE sessions SET {column} = CAST(? AS TEXT) WHERE id = ?"
        execute(home.database, odd, (NOT_UTF8, SECOND))
    execute(
        home.database,
        "UPDATE sessions SET parent_session_id = CAST(? AS TEXT) WHERE id = ?",
        (NOT_UTF8, THIRD),
    )
    execute(home.database, "UPDATE gateway_routing SET entry_json = CAST(? AS TEXT)", (NOT_UTF8,))
    for word in (SECOND, THIRD, CHAT):
        answer, _session = asked(home, word)
        assert all(line.isprintable() for line in report.text(answer).splitlines())
        assert msgspec.json.decode(documents.encode(answer), type=Explanation) == answer
    assert "hex:" in asked(home, THIRD)[1].failing[0].because


def test_the_document_fits_its_schema_and_says_the_same(tmp_path: Path) -> None:
    home = new_home(tmp_path / "home", "runtime", LOST_SESSION, LEASE.format(THIRD))
    ran = tool_here("explain", home.root, THIRD, "--format", "json")
    document = msgspec.json.decode(ran.out, type=Explanation)
    assert (ran.code, document.exit_code, document.sessions[0].id) == (1, 1, THIRD)
    assert ran.out == tool_here("explain", home.root, THIRD, "--format", "json").out


@pytest.fixture
def beside(tmp_path: Path) -> tuple[Home, dict[str, str]]:
    home = new_home(tmp_path / "a home", "22", LOST_SESSION)
    return home, environment(HERMES_HOME=str(home.root))


def test_the_default_home_is_left_out_of_commands_and_others_are_quoted(
    beside: tuple[Home, dict[str, str]],
) -> None:
    home, env = beside
    ran = tool("explain", THIRD, env=env)
    assert "next:  hermes-dbtools repair --select orphaned-messages " in ran.out
    ran = tool_here("explain", "--home", home.root, THIRD, env=environment(HERMES_HOME="/nowhere"))
    assert f"next:  hermes-dbtools repair '{home.database}' --select orphaned-messages " in ran.out


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (("no/such/state.db",), 3, "no such file"),
        (("a", "b", "c"), 2, "too many words"),
        (("DB", "x", "--log", "y"), 2, "not both"),
        (("--log", "gone.log"), 2, "gone.log"),
        (("DB", "--log", "."), 2, "a folder"),
        (("DB", "--log", "pipe"), 2, "no regular file"),
        (("DB",), 2, "empty"),
        (("DB", "x", "--home", "y"), 2, "not both"),
    ],
)
def test_a_wrong_call_is_one_clear_line(
    words: tuple[str, ...], code: int, told: str, beside: tuple[Home, dict[str, str]], tmp_path: Path
) -> None:
    home, env = beside
    os.mkfifo(tmp_path / "pipe")
    ran = tool(
        "explain", *(str(home.database) if word == "DB" else word for word in words), env=env, cwd=tmp_path
    )
    assert (ran.code, ran.out, len(ran.err.splitlines())) == (code, "", 1)
    assert told in ran.err
