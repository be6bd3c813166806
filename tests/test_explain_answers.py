"""What a log means for the file: of the sessions it names, of the file where it names none, and what race it was."""

from __future__ import annotations

import json
from io import BytesIO
from pathlib import Path

import msgspec
import pytest

from hermes_dbtools import documents
from hermes_dbtools.explain.answers import explain_log
from hermes_dbtools.explain.document import Explanation
from hermes_dbtools.explain.failures import failures
from hermes_dbtools.explain.reading_log import read_log
from hermes_dbtools.home import Home
from hermes_dbtools.report import explain as report
from tests.live_writers import writer
from tests.printed import commands, typed
from tests.repairs import (
    BRANCH,
    CHAT,
    COMPRESSED,
    CONTINUATION,
    COUNTERS,
    LOST_SESSION,
    NOW,
    ROOT,
    SECOND,
    THIRD,
    bytes_of,
    new_home,
)
from tests.running import tool, tool_here
from tests.shapes.make import execute

GONE = "20260601_000000_0dd0ff"
AT = "2026-05-28 20:26:40,123"
APPEND = f"{AT} WARNING [{{}}] run_agent: Session DB append_message failed: {{}}\n"
FK = "FOREIGN KEY constraint failed"
LEASE = "INSERT INTO session_turn_leases VALUES ('{}', 'pid=1:turn=t', 1.0, 4e9)"


def asked(home: Home, log: str) -> Explanation:
    reading = read_log("-", BytesIO(log.encode()))
    return explain_log(home, reading, lambda _what: None, NOW, again="hermes-dbtools explain --log it.log")


def test_the_session_of_the_line_and_what_is_wrong_with_it(tmp_path: Path) -> None:
    home = new_home(tmp_path / "home", "22", LOST_SESSION)
    before = bytes_of(home.database)
    answer = asked(home, APPEND.format(THIRD, FK) * 3 + APPEND.format(CHAT, FK))
    assert bytes_of(home.database) == before
    assert answer.exit_code == 1
    assert answer.log is not None
    (kind,) = answer.log.kinds
    assert (kind.kind, kind.count, kind.found, kind.sessions) == ("foreign-key", 4, True, [THIRD, CHAT])
    assert {one.id: bool(one.failing) for one in answer.sessions} == {THIRD: True, CHAT: False}
    assert answer.verdict == "1 of 2 sessions of this log cannot be saved now"
    assert answer.next[0].command.endswith(" --select orphaned-messages")


def test_a_race_is_said_where_nothing_is_wrong_now(tmp_path: Path) -> None:
    home = new_home(tmp_path / "home", "22")
    answer = asked(home, APPEND.format(CHAT, FK) + APPEND.format(GONE, FK))
    assert (answer.exit_code, answer.verdict) == (0, "nothing is wrong in the file now")
    assert {one.id: one.state for one in answer.sessions} == {CHAT: "open", GONE: "missing"}
    text = report.text(answer)
    assert "now: a race" in text
    assert "that process must be restarted" in text
    assert answer.next[0].command == f"hermes-dbtools scan {home.database}"


def test_lines_without_ids_are_answered_for_the_whole_file(tmp_path: Path) -> None:
    log = f"sqlite3.IntegrityError: {FK}\n"
    assert asked(new_home(tmp_path / "healthy", "22"), log).exit_code == 0
    stale = f"UPDATE sessions SET parent_session_id = 'gone' WHERE id = '{SECOND}'"
    home = new_home(tmp_path / "home", "22", LOST_SESSION, stale, COUNTERS)
    answer = asked(home, log)
    assert (answer.exit_code, answer.sessions) == (1, [])
    assert {one.slug for one in answer.totals} == {"orphaned-messages", "missing-parent-session"}
    assert answer.verdict == "what the log complains of is still in the file"
    (command,) = answer.next
    assert command.command.endswith(" --select orphaned-messages,missing-parent-session")


def test_totals_count_all_and_examples_are_few(tmp_path: Path) -> None:
    home = new_home(tmp_path / "home", "22")
    add = "INSERT INTO messages (session_id, role, content, timestamp) VALUES (?, 'user', 'x', 1.78e9)"
    for number in range(30):
        execute(home.database, add, (f"lost_{number:03}",))
    answer = asked(home, f"{FK}\n")
    assert [(one.slug, one.count) for one in answer.totals] == [("orphaned-messages", 30)]
    assert "error HDB201 orphaned-messages: 30 in all" in report.text(answer)


WHERE_FOUND: dict[str, tuple[str, tuple[str, ...], str]] = {
    "title": (
        "sqlite3.IntegrityError: UNIQUE constraint failed: sessions.title",
        (
            "DROP INDEX idx_sessions_title_unique",
            f"UPDATE sessions SET title = 'Branch' WHERE id = '{SECOND}'",
        ),
        "duplicate-titles",
    ),
    "message-id": (
        "sqlite3.IntegrityError: UNIQUE constraint failed: messages.id",
        ("UPDATE sqlite_sequence SET seq = 1 WHERE name = 'messages'",),
        "sequence-behind-rows",
    ),
    "json": (
        "sqlite3.OperationalError: malformed JSON",
        (f"UPDATE sessions SET model_config = '{{' WHERE id = '{SECOND}'",),
        "invalid-json",
    ),
    "text": (
        "sqlite3.OperationalError: Could not decode to UTF-8 column 'title' with text 'x'",
        (f"UPDATE sessions SET title = CAST(x'ff' AS TEXT) WHERE id = '{SECOND}'",),
        "invalid-text",
    ),
    "times": (
        "ValueError: year is out of range",
        (f"UPDATE sessions SET started_at = 'not-a-timestamp' WHERE id = '{SECOND}'",),
        "invalid-timestamps",
    ),
    "compression-closed": (
        f"RuntimeError: Compression parent already ended: {COMPRESSED}",
        (
            f"DELETE FROM messages WHERE session_id = '{CONTINUATION}'",
            f"DELETE FROM session_model_usage WHERE session_id = '{CONTINUATION}'",
            f"DELETE FROM sessions WHERE id = '{CONTINUATION}'",
        ),
        "closed-without-continuation",
    ),
}


@pytest.mark.parametrize("kind", WHERE_FOUND)
def test_other_kinds_lead_to_their_class(kind: str, tmp_path: Path) -> None:
    line, damages, slug = WHERE_FOUND[kind]
    answer = asked(new_home(tmp_path / "home", "22", *damages), f"{line}\n")
    assert answer.log is not None
    assert [(one.kind, one.found) for one in answer.log.kinds] == [(kind, True)]
    assert slug in {one.slug for one in answer.totals}
    assert answer.exit_code == 1
    calm = asked(new_home(tmp_path / "healthy", "22"), f"{line}\n")
    assert calm.exit_code == 0
    assert failures().by_kind[kind].calm in report.text(calm)


def test_damage_of_the_file_comes_before_every_foreign_key(tmp_path: Path) -> None:
    home = new_home(tmp_path / "home", "22", LOST_SESSION)
    log = f"{AT} WARNING cron: Session DB creation failed: database disk image is malformed\n" * 3
    answer = asked(home, log + APPEND.format(THIRD, FK))
    assert answer.log is not None
    assert [one.follows for one in answer.log.kinds] == ["", "structure"]
    assert "structure came within the minute before" in report.text(answer)
    data = bytearray(home.database.read_bytes())
    ((root,),) = execute(home.database, "SELECT rootpage FROM sqlite_master WHERE name = 'messages'")
    data[(root - 1) * 4096 : (root - 1) * 4096 + 64] = b"\xff" * 64
    home.database.write_bytes(data)
    answer = asked(home, log + APPEND.format(THIRD, FK))
    assert answer.verdict.startswith("the file itself is damaged")
    assert [one.command for one in answer.next] == [
        "hermes-dbtools runbook structural-damage",
        f"hermes-dbtools salvage {home.database} {home.database.with_name('salvaged.db')}",
    ]


@pytest.mark.parametrize(
    "content", [b"", b"\0" * 8192, b"no database" * 900], ids=["empty", "zeroes", "other"]
)
def test_a_file_that_is_none_is_said(content: bytes, tmp_path: Path) -> None:
    home = new_home(tmp_path / "home", "22")
    home.database.write_bytes(content)
    answer = asked(home, APPEND.format(THIRD, "file is not a database"))
    assert (answer.exit_code, answer.sessions) == (1, [])
    assert [one.command for one in answer.next] == ["hermes-dbtools runbook unreadable-file"]


def test_a_delete_that_failed_names_what_blocks_it_and_the_order(tmp_path: Path) -> None:
    home = new_home(tmp_path / "home", "runtime")
    line = f"{AT} ERROR gateway: delete_session failed for {CHAT}: {FK}\n"
    answer = asked(home, line)
    (session,) = answer.sessions
    assert {one.key for one in session.delete_blocked_by} == {
        "session_admissions.target_session_id -> sessions(id)",
        "worker_executions.session_id -> sessions(id)",
    }
    command = f"hermes-dbtools sessions delete --home {home.database} {CHAT}"
    assert answer.next[0].command == command
    ran = typed(command, tmp_path)
    assert "dry run" in ran.out + ran.err


def test_a_live_session_is_asked_about_again_later(tmp_path: Path) -> None:
    home = new_home(tmp_path / "home", "runtime", LOST_SESSION, LEASE.format(THIRD))
    answer = asked(home, APPEND.format(THIRD, FK))
    assert answer.sessions[0].live is not None
    assert [one.command for one in answer.next] == ["hermes-dbtools explain --log it.log"]


def test_a_live_session_of_a_log_that_is_gone_is_asked_about_by_its_id(tmp_path: Path) -> None:
    home = new_home(tmp_path / "home", "runtime", LOST_SESSION, LEASE.format(THIRD))
    answer = explain_log(
        home, read_log("-", BytesIO(APPEND.format(THIRD, FK).encode())), lambda _what: None, NOW
    )
    assert [one.command for one in answer.next] == [f"hermes-dbtools explain {home.database} {THIRD}"]


def test_a_line_of_a_log_may_stand_for_a_session(tmp_path: Path) -> None:
    home = new_home(tmp_path / "home", "22", LOST_SESSION)
    line = APPEND.format(THIRD, FK).strip()
    for word in (line, f"/var/log/hermes/errors.log:{line}"):
        for where in ([home.database], ["--home", home.root]):
            ran = tool_here("explain", *where, word)
            assert (ran.code, ran.err) == (1, "")
            assert f"{THIRD} · missing" in ran.out
    assert tool_here("explain", "--home", home.root, "no such session").code == 2


def test_all_files_of_a_log_are_read_as_a_shell_gives_them(tmp_path: Path) -> None:
    home = new_home(tmp_path / "home", "22", LOST_SESSION)
    logs = [tmp_path / name for name in ("errors.log", "errors.log.1", "errors.log-20260527", "gateway.log")]
    for log in logs:
        log.write_text(APPEND.format(THIRD, FK))
    for where in ([home.database], ["--home", home.root]):
        ran = tool_here("explain", *where, "--log", *logs)
        assert (ran.code, ran.err) == (1, "")
        assert "errors.log and 3 more: 4 lines about the store" in ran.out


SEGMENT = "DELETE FROM messages_fts_trigram_data WHERE id = (SELECT max(id) FROM messages_fts_trigram_data)"
"""Its pages are whole and it opens: only a comparison with the messages finds it."""


@pytest.mark.parametrize("line", ["fts5: corruption found reading blob", "database disk image is malformed"])
def test_a_search_index_that_a_log_complains_of_is_looked_at_as_a_whole(line: str, tmp_path: Path) -> None:
    home = new_home(tmp_path / "home", "22", SEGMENT)
    answer = asked(home, f"{AT} WARNING hermes_state: {line}\n")
    assert (answer.exit_code, [one.slug for one in answer.totals]) == (1, ["search-index-damage"])
    second = typed(answer.next[0].command, tmp_path)
    third = typed(commands(second)[0], tmp_path)
    assert third.code == 0, third.out + third.err
    assert asked(home, f"{AT} WARNING hermes_state: {line}\n").exit_code == 0


@pytest.mark.parametrize(
    ("slug", "answer"),
    [("unmarked-branches", "mark"), ("hidden-by-upgrade", "strip"), ("conflicting-markers", "keep")],
)
def test_from_a_hidden_session_to_a_listed_one_in_three_commands(
    slug: str, answer: str, tmp_path: Path
) -> None:
    path = tmp_path / "state.db"
    assert tool_here("fixture", path, "--damage", slug).code == 0
    found = json.loads(tool_here("scan", path, "--select", slug, "--format", "json").out)["databases"][0][
        "results"
    ]
    (session_id,) = [finding["key"] for result in found for finding in result["findings"]]
    first = tool_here("explain", path, session_id)
    assert "listed  no: " in first.out
    assert commands(first) == [
        f"hermes-dbtools repair {path} --select {slug} --choose {slug}={answer}",
        f"hermes-dbtools runbook {slug}",
    ]
    third = typed(commands(typed(commands(first)[0], tmp_path))[0], tmp_path)
    assert third.code == 0, third.out + third.err
    assert "listed  no: " not in tool_here("explain", path, session_id).out


def test_a_note_about_the_session_itself_is_said_and_led_on(tmp_path: Path) -> None:
    gone = ("messages", "session_model_usage", "sessions")
    damages = [
        f"DELETE FROM {table} WHERE {'id' if table == 'sessions' else 'session_id'} = '{CONTINUATION}'"
        for table in gone
    ]
    home = new_home(tmp_path / "home", "22", *damages)
    ran = tool_here("explain", home.database, COMPRESSED)
    assert "nothing is wrong with it now" not in ran.out
    assert "--choose closed-without-continuation=reopen" in commands(ran)[0]


def test_a_damaged_file_is_in_place_again_in_three_commands(tmp_path: Path) -> None:
    made = tool_here("fixture", tmp_path / "state.db", "--damage", "structural-damage:table")
    assert made.code == 0
    log = tmp_path / "errors.log"
    log.write_text(APPEND.format(THIRD, "database disk image is malformed"))
    first = tool_here("explain", tmp_path / "state.db", "--log", log)
    assert commands(first)[0] == "hermes-dbtools runbook structural-damage"
    second = typed(commands(first)[1], tmp_path)
    (restore,) = [one for one in commands(second) if one.startswith("hermes-dbtools restore ")]
    third = typed(restore, tmp_path)
    assert third.code == 0, third.out + third.err
    assert tool_here("scan", tmp_path / "state.db").code == 0


def test_who_holds_the_file_is_said_of_a_lock(tmp_path: Path) -> None:
    home = new_home(tmp_path / "home", "runtime")
    with writer(home.database, "UPDATE sessions SET archived = 0") as held:
        answer = asked(home, APPEND.format(ROOT, "database is locked"))
    assert [one.pid for one in answer.holders] == [held.pid]
    assert f"(pid {held.pid})" in report.text(answer).splitlines()[0]
    assert answer.exit_code == 0


def test_a_session_of_the_log_that_is_in_another_profile(tmp_path: Path) -> None:
    home = new_home(
        tmp_path / "home", "22", f"DELETE FROM messages WHERE session_id = '{THIRD}'", LOST_SESSION
    )
    execute(home.database, f"DELETE FROM session_model_usage WHERE session_id = '{THIRD}'")
    (home.root / "profiles").mkdir()
    other = new_home(home.root / "profiles" / "work", "22")
    answer = asked(home, APPEND.format(THIRD, FK))
    assert answer.sessions[0].profiles == ["work"]
    assert [one.command for one in answer.next] == [f"hermes-dbtools explain {other.database} {THIRD}"]
    assert answer.exit_code == 1


def test_a_log_without_a_failure_says_so(tmp_path: Path) -> None:
    answer = asked(new_home(tmp_path / "home", "22"), f"{AT} INFO x: all is well\n")
    assert (answer.exit_code, answer.verdict) == (0, "the log holds no failure of the store")


def test_nothing_of_the_text_of_a_log_is_told(tmp_path: Path) -> None:
    home = new_home(tmp_path / "home", "22", LOST_SESSION)
    private = (
        "swordfish9",
        "agent:main:telegram:dm:100177",
        "/data/someone/secret.txt",
        "https://x.example/k",
    )
    log = "".join(
        f"{AT} WARNING [{THIRD}] run_agent: Session DB append_message failed: {FK} {word} '{word}' \"{word}\"\n"
        for word in private
    )
    answer = asked(home, log)
    told = report.text(answer) + documents.encode(answer).decode()
    assert [word for word in private if word in told] == []
    assert THIRD in told


def test_many_sessions_are_told_worst_first(tmp_path: Path) -> None:
    home = new_home(tmp_path / "home", "22", LOST_SESSION)
    ids = [f"20260601_{number:06d}_0dd0ff" for number in range(9)]
    answer = asked(home, "".join(APPEND.format(one, FK) for one in (*ids, CHAT, BRANCH, THIRD)))
    text = report.text(answer)
    assert len(answer.sessions) == 12
    assert "… and 7 more sessions: --format json" in text
    assert text.index(THIRD) < text.index(ids[0])


def test_a_log_on_standard_input_and_as_a_document(tmp_path: Path) -> None:
    home = new_home(tmp_path / "home", "22", LOST_SESSION)
    log = tmp_path / "errors.log"
    log.write_text(APPEND.format(THIRD, FK))
    with log.open("rb") as stdin:
        piped = tool("explain", home.database, "--format", "json", stdin=stdin)
    document = msgspec.json.decode(piped.out, type=Explanation)
    named = msgspec.json.decode(tool_here("explain", home.database, "--log", log, "--format", "json").out)
    assert (piped.code, document.exit_code) == (1, 1)
    assert document.log is not None
    assert document.log.name == "stdin"
    assert json.loads(piped.out)["sessions"] == named["sessions"]


def test_each_printed_command_can_be_run(tmp_path: Path) -> None:
    """What is in the text is what is in the document, and a shell takes it."""
    home = new_home(tmp_path / "it's $HOME", "22", LOST_SESSION)
    ran = tool_here("explain", home.database, THIRD)
    (command,) = commands(ran)
    second = typed(command, tmp_path)
    assert second.code == 1
    third = typed(commands(second)[0], tmp_path)
    assert third.code == 0, third.err
    assert tool_here("explain", home.database, THIRD).code == 0
