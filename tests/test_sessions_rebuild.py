"""A lost session comes back with its whole history under the same id, or nothing is changed."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from hermes_dbtools.home import Home
from hermes_dbtools.model import Active, Refused, StalePlan, ToolError, UsageError
from hermes_dbtools.sessions.rebuild import RebuildOptions, carry_out, prepare
from hermes_dbtools.transcript_merge import merge
from hermes_dbtools.transcript_messages import Message, message_of
from hermes_dbtools.transcripts import candidates, names_of, read_transcript, safe_component
from tests.repairs import (
    BRANCH,
    COMPRESSED,
    CONTINUATION,
    NOW,
    ROOT,
    THIRD,
    look,
    new_home,
    search_is_sound,
    state,
    take_back,
)
from tests.running import tool_here
from tests.shapes.make import SHAPES, execute

OPTIONS = RebuildOptions(now=NOW)
GONE = f"DELETE FROM sessions WHERE id = '{THIRD}'"
ALL_GONE = (f"DELETE FROM messages WHERE session_id = '{THIRD}'", GONE)


def said(home: Home, session_id: str = THIRD) -> list[tuple[Any, ...]]:
    return execute(
        home.database,
        "SELECT role, coalesce(content, ''), tool_call_id, tool_calls FROM messages WHERE session_id = ? ORDER BY id",
        (session_id,),
    )


def told(home: Home, session_id: str = THIRD) -> list[dict[str, Any]]:
    """The transcript that an agent would have written of a session."""
    rows = execute(
        home.database,
        "SELECT role, content, tool_call_id, tool_calls, tool_name, timestamp FROM messages"
        " WHERE session_id = ? ORDER BY id",
        (session_id,),
    )
    names = ("role", "content", "tool_call_id", "tool_calls", "tool_name", "timestamp")
    entries = []
    for row in rows:
        entry = {name: value for name, value in zip(names, row, strict=True) if value is not None}
        if "tool_calls" in entry:
            entry["tool_calls"] = json.loads(entry["tool_calls"])
        entries.append(entry)
    return entries


def lines(home: Home, entries: list[dict[str, Any]], session_id: str = THIRD) -> Path:
    home.sessions_dir.mkdir(exist_ok=True)
    path = home.sessions_dir / f"{session_id}.jsonl"
    path.write_text("".join(json.dumps(entry) + "\n" for entry in entries), "utf-8")
    return path


def rebuild(home: Home, session_id: str = THIRD) -> None:
    assert carry_out(home, prepare(home, session_id, OPTIONS), OPTIONS).status == "committed"


def counters(home: Home, session_id: str = THIRD) -> tuple[Any, ...]:
    return execute(
        home.database,
        "SELECT message_count, tool_call_count, started_at, ended_at, parent_session_id FROM sessions WHERE id = ?",
        (session_id,),
    )[0]


@pytest.mark.parametrize("shape", SHAPES)
def test_row_and_messages_gone_all_come_back_from_the_file(shape: str, tmp_path: Path) -> None:
    home = new_home(tmp_path / "home", shape)
    whole, entries = said(home), told(home)
    lines(home, entries)
    for statement in ALL_GONE:
        execute(home.database, statement)
    before = state(home.database)
    rebuild(home)
    assert said(home) == whole
    assert counters(home) == (4, 1, entries[0]["timestamp"], None, None)
    search_is_sound(home.database, tmp_path / "search", writer="ours")
    assert not [f for r in look(home).results for f in r.findings if f.key == THIRD]
    take_back(home)
    assert state(home.database) == before


@pytest.mark.parametrize("shape", SHAPES)
def test_row_gone_and_messages_there_are_kept_as_they_are(shape: str, tmp_path: Path) -> None:
    home = new_home(tmp_path / "home", shape)
    columns = "SELECT * FROM messages WHERE session_id = ? ORDER BY id"
    before = execute(home.database, columns, (THIRD,))
    lines(home, told(home))
    execute(home.database, GONE)
    rebuild(home)
    assert execute(home.database, columns, (THIRD,)) == before
    assert counters(home)[:2] == (4, 1)


@pytest.mark.parametrize("lost", [(0,), (3,), (1, 2), (0, 1, 2), (1, 3), (0, 3)])
def test_what_rows_and_file_lack_of_each_other_is_put_in_its_place(
    lost: tuple[int, ...], tmp_path: Path
) -> None:
    home = new_home(tmp_path / "home", "25")
    whole = said(home)
    lines(home, told(home))
    ids = [
        row[0]
        for row in execute(
            home.database, "SELECT id FROM messages WHERE session_id = ? ORDER BY id", (THIRD,)
        )
    ]
    for place in lost:
        execute(home.database, "DELETE FROM messages WHERE id = ?", (ids[place],))
    execute(home.database, GONE)
    before = state(home.database)
    rebuild(home)
    assert said(home) == whole
    moments = [
        r[0]
        for r in execute(
            home.database, "SELECT timestamp FROM messages WHERE session_id = ? ORDER BY id", (THIRD,)
        )
    ]
    assert moments == sorted(moments)
    take_back(home)
    assert state(home.database) == before


@pytest.mark.parametrize("shape", ["11", "22", "25", "media"])
def test_rows_longer_than_the_file_lose_nothing(shape: str, tmp_path: Path) -> None:
    home = new_home(tmp_path / "home", shape)
    whole = said(home)
    lines(home, told(home)[1:3])
    execute(home.database, GONE)
    rebuild(home)
    assert said(home) == whole


@pytest.mark.parametrize("shape", SHAPES)
def test_without_room_before_them_the_messages_that_are_left_move_with_all_they_hold(
    shape: str, tmp_path: Path
) -> None:
    home = new_home(tmp_path / "home", shape)
    whole = said(home)
    earlier = [
        {"role": "user", "content": f"before number{n}", "timestamp": 1_780_000_000 + n} for n in range(3)
    ]
    lines(home, earlier + told(home))
    execute(home.database, GONE)
    kept = "SELECT content, tool_calls, timestamp, token_count, finish_reason FROM messages WHERE session_id = ? ORDER BY id"
    rows = execute(home.database, kept, (THIRD,))
    before = state(home.database)
    rebuild(home)
    assert [row[1] for row in said(home)] == [entry["content"] for entry in earlier] + [
        row[1] for row in whole
    ]
    assert execute(home.database, kept, (THIRD,))[3:] == rows
    search_is_sound(home.database, tmp_path / "search", writer="ours")
    take_back(home)
    assert state(home.database) == before


def test_a_file_cut_in_the_middle_gives_what_is_whole(tmp_path: Path) -> None:
    home = new_home(tmp_path / "home", "22")
    whole = said(home)
    path = lines(home, told(home))
    path.write_bytes(path.read_bytes()[:-20])
    for statement in ALL_GONE:
        execute(home.database, statement)
    prepared = prepare(home, THIRD, OPTIONS)
    assert [(file.cut, file.skipped) for file in prepared.files] == [(True, 1)]
    carry_out(home, prepared, OPTIONS)
    assert said(home) == whole[:3]


def test_a_snapshot_cut_in_the_middle_gives_what_is_whole(tmp_path: Path) -> None:
    home = new_home(tmp_path / "home", "22", *ALL_GONE)
    home.sessions_dir.mkdir()
    entries = [{"role": "user", "content": "one"}, {"role": "assistant", "content": "two"}, {"role": "user"}]
    text = json.dumps({"session_id": THIRD, "platform": "telegram", "messages": entries}, indent=2)
    (home.sessions_dir / f"session_{THIRD}.json").write_text(text[: text.rindex("role")], "utf-8")
    rebuild(home)
    assert [row[1] for row in said(home)] == ["one", "two"]
    assert execute(home.database, "SELECT source FROM sessions WHERE id = ?", (THIRD,)) == [("telegram",)]


def test_two_files_of_one_id_say_each_message_once(tmp_path: Path) -> None:
    home = new_home(tmp_path / "home", "22")
    whole, entries = said(home), told(home)
    lines(home, entries[:3])
    snapshot = {
        "session_id": THIRD,
        "platform": "cli",
        "messages": [e for e in entries if e.pop("timestamp")],
    }
    (home.sessions_dir / f"session_{THIRD}.json").write_text(json.dumps(snapshot, indent=2), "utf-8")
    for statement in ALL_GONE:
        execute(home.database, statement)
    rebuild(home)
    assert said(home) == whole


def test_a_file_of_another_id_is_not_used(tmp_path: Path) -> None:
    home = new_home(tmp_path / "home", "22", *ALL_GONE)
    home.sessions_dir.mkdir()
    other = {"session_id": ROOT, "messages": [{"role": "user", "content": "not yours"}]}
    (home.sessions_dir / f"{THIRD}.json").write_text(json.dumps(other), "utf-8")
    before = state(home.database)
    with pytest.raises(UsageError, match="no message and no transcript"):
        prepare(home, THIRD, OPTIONS)
    assert state(home.database) == before


def test_a_parent_that_is_gone_or_that_would_hide_it_is_left_out(tmp_path: Path) -> None:
    home = new_home(tmp_path / "home", "22", *ALL_GONE)
    home.sessions_dir.mkdir()
    for parent in ("gone", BRANCH):
        entry = {"role": "user", "content": "x", "timestamp": NOW - 100}
        export = {"id": THIRD, "source": "cli", "parent_session_id": parent, "messages": [entry]}
        (home.sessions_dir / f"{THIRD}.json").write_text(json.dumps(export), "utf-8")
        rebuild(home)
        assert counters(home)[4] is None
        take_back(home)


def test_a_session_that_compression_closed_is_closed_so_again(tmp_path: Path) -> None:
    home = new_home(tmp_path / "home", "25")
    lines(home, told(home, COMPRESSED), COMPRESSED)
    execute(home.database, f"DELETE FROM sessions WHERE id = '{COMPRESSED}'")
    execute(home.database, f"DELETE FROM messages WHERE session_id = '{COMPRESSED}'")
    rebuild(home, COMPRESSED)
    sql = "SELECT p.end_reason, p.ended_at = c.started_at FROM sessions p, sessions c WHERE p.id = ? AND c.id = ?"
    assert execute(home.database, sql, (COMPRESSED, CONTINUATION)) == [("compression", 1)]


def test_what_is_not_confirmed_to_be_lost_is_refused(tmp_path: Path) -> None:
    home = new_home(tmp_path / "home", "runtime", *ALL_GONE)
    lines(home, [{"role": "user", "content": "x", "timestamp": NOW - 9000}])
    before = state(home.database)
    with pytest.raises(Refused, match="its session row is there"):
        prepare(home, ROOT, OPTIONS)
    lease = "INSERT INTO session_turn_leases VALUES (?, 'pid=1:turn=t', ?, ?)"
    execute(home.database, lease, (THIRD, NOW - 5, NOW + 300))
    with pytest.raises(Active, match="Cannot rebuild active session"):
        prepare(home, THIRD, OPTIONS)
    execute(home.database, "DELETE FROM session_turn_leases")
    assert state(home.database) == before
    mark = "INSERT INTO state_meta (key, value) VALUES (?, '{}')"
    execute(home.database, mark, (f"gateway.retired_session.v1.{THIRD}",))
    with pytest.raises(Refused, match="its user deleted it"):
        prepare(home, THIRD, OPTIONS)


def test_a_lease_or_a_row_that_comes_between_look_and_lock_is_seen(tmp_path: Path) -> None:
    home = new_home(tmp_path / "home", "30", *ALL_GONE)
    path = lines(home, [{"role": "user", "content": "x", "timestamp": NOW - 9000}])
    prepared = prepare(home, THIRD, OPTIONS)
    lease = "INSERT INTO session_turn_leases VALUES (?, 'pid=1:turn=t', ?, ?)"
    execute(home.database, lease, (THIRD, NOW - 5, NOW + 300))
    with pytest.raises(ToolError, match="became live"):
        carry_out(home, prepared, OPTIONS)
    execute(home.database, "DELETE FROM session_turn_leases")
    path.write_text(path.read_text("utf-8").replace('"x"', '"y"'), "utf-8")
    with pytest.raises(StalePlan):
        carry_out(home, prepared, OPTIONS)
    execute(home.database, "INSERT INTO sessions (id, source, started_at) VALUES (?, 'cli', 1.0)", (THIRD,))
    with pytest.raises(StalePlan):
        carry_out(home, prepared, OPTIONS)
    assert said(home) == []


BAD_WORDS = {
    "unknown": "no-such-session",
    "empty": "",
    "statement": "x'; DROP TABLE sessions; --",
    "path": "../../etc/passwd",
    "wildcard": "%",
    "long": "x" * 100_000,
    "lines": "a\nb",
}


@pytest.mark.parametrize("word", BAD_WORDS.values(), ids=BAD_WORDS)
def test_a_bad_id_is_one_clear_line_and_changes_nothing(word: str, tmp_path: Path) -> None:
    home = new_home(tmp_path / "home", "22", *ALL_GONE)
    lines(home, [{"role": "user", "content": "x"}])
    before = state(home.database)
    told = tool_here("sessions", "rebuild", "--home", home.root, "--apply", "--yes", "--", word)
    assert told.code == 2
    assert len(told.err.splitlines()) == 1
    assert len(told.err) < 400
    assert state(home.database) == before


def test_ten_million_letters_are_no_id(tmp_path: Path) -> None:
    home = new_home(tmp_path / "home", "22")
    with pytest.raises(UsageError) as refused:
        prepare(home, "x" * 10_000_000, OPTIONS)
    assert len(str(refused.value)) < 400


def test_a_beginning_means_the_one_lost_session_that_has_it(tmp_path: Path) -> None:
    home = new_home(tmp_path / "home", "22", *ALL_GONE)
    lines(home, [{"role": "user", "content": "x"}])
    assert prepare(home, THIRD[:12], OPTIONS).session_id == THIRD
    lines(home, [{"role": "user", "content": "y"}], THIRD + "2")
    with pytest.raises(UsageError, match="several lost sessions"):
        prepare(home, THIRD[:12], OPTIONS)
    assert prepare(home, THIRD, OPTIONS).session_id == THIRD


def test_the_command_shows_then_rebuilds_and_prints_no_content(tmp_path: Path) -> None:
    home = new_home(tmp_path / "home", "22", *ALL_GONE)
    lines(home, [{"role": "user", "content": "a secret word", "timestamp": NOW - 9000}])
    before = state(home.database)
    dry = tool_here("sessions", "rebuild", THIRD, "--home", home.root)
    assert dry.code == 0
    assert "1 message from its transcript" in dry.out
    assert state(home.database) == before
    done = tool_here("sessions", "rebuild", THIRD, "--home", home.root, "--apply", "--yes")
    assert done.code == 0, done.err
    assert [row[1] for row in said(home)] == ["a secret word"]
    plans = "".join(path.read_text("utf-8") for path in home.dbtools_dir.rglob("*.json"))
    for text in (dry.out, dry.err, done.out, done.err, plans):
        assert "secret" not in text


@pytest.mark.skipif(os.name != "posix", reason="file names are bytes there")
def test_the_folder_may_hold_anything(tmp_path: Path) -> None:
    folder = tmp_path / "sessions"
    folder.mkdir()
    os.mkfifo(folder / "pipe.jsonl")
    (folder / "link.jsonl").symlink_to(folder / "pipe.jsonl")
    (folder / "folder.json").mkdir()
    (folder / "deep.json").write_text("[" * 100_000, "utf-8")
    (folder / "deep.jsonl").write_text("[" * 100_000 + "\n", "utf-8")
    (folder / "odd.jsonl").write_bytes(b'\xff\xfe\n{"role": 5}\n{"role": "user", "content": "\xff"}\n[]\n')
    (folder / ".json").write_text("{}", "utf-8")
    with open(os.fsencode(folder) + b"/\xff.jsonl", "wb") as file:  # noqa: PTH123 - a name that is no text
        file.write(b"{}")
    found = candidates(folder)
    assert "deep" in found
    assert "\udcff" not in found
    read = {name: read_transcript(folder, name) for name in found}
    assert read["odd"] is not None
    assert [message.content for message in read["odd"].messages] == ["�"]
    assert [name for name, one in read.items() if one is not None] == ["odd"]
    assert candidates(tmp_path / "missing") == {}


def test_names_of_ids_that_are_no_names() -> None:
    assert names_of("../x") == ()
    assert safe_component("a:b c") == "a_b_c_" + safe_component("a:b c")[-12:]
    assert safe_component("20260528_202640_5feceb") == "20260528_202640_5feceb"


def message(text: str, role: str = "user") -> Message:
    found = message_of({"role": role, "content": text})
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("first", "second", "both"),
    [
        ("abc", "abc", "abc"),
        ("abc", "abcd", "abcd"),
        ("cd", "abcd", "abcd"),
        ("ad", "abcd", "abcd"),
        ("", "abc", "abc"),
        ("abc", "", "abc"),
        ("abc", "b", "abc"),
        ("abac", "abac", "abac"),
        ("aab", "aaab", "aaab"),
        ("ab", "ba", "ab"),
        ("abxd", "abyd", "abxd"),
    ],
)
def test_two_tellings_say_nothing_twice(first: str, second: str, both: str) -> None:
    left, right = [message(letter) for letter in first], [message(letter) for letter in second]
    order = merge(left, right)
    assert "".join(((left, right)[side][place].content or "") for side, place in order) == both


def test_very_long_tellings_are_put_together_in_time() -> None:
    left = [message(f"{n}") for n in range(0, 30_000, 2)]
    right = [message(f"{n}") for n in range(30_000)]
    order = merge(left, right)
    assert len(order) == 30_000
    assert len({((left, right)[side][place].content) for side, place in order}) == 30_000


def test_half_surrogates_and_lists_become_what_the_store_keeps() -> None:
    broken = message_of({"role": "user", "content": "a\ud83d", "timestamp": "not a time"})
    parts = message_of({"role": "user", "content": [{"type": "text", "text": "x"}]})
    assert broken is not None
    assert parts is not None
    assert (broken.content, broken.timestamp) == ("a�", None)
    assert parts.content == '\0json:[{"type": "text", "text": "x"}]'
    assert message_of({"role": "session_meta"}) is None
    assert message_of({"role": ["user"]}) is None
