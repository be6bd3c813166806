"""An export holds the whole lineage, and a delete follows only when the file is proved to hold it."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hermes_dbtools.home import Home
from hermes_dbtools.model import Active, RolledBack, UsageError
from hermes_dbtools.sessions import export as exporting
from hermes_dbtools.sessions.export import Exported, ExportOptions, delete_verified, export
from tests.hostile import NOT_UTF8
from tests.repairs import (
    CHAT,
    COMPRESSED,
    CONTINUATION,
    DELEGATE,
    NOW,
    ROOT,
    SECOND,
    bytes_of,
    new_home,
    state,
    take_back,
)
from tests.running import tool_here
from tests.shapes.make import SHAPES, execute


def exported(home: Home, target: Path, *words: str, **options: Any) -> Exported:
    return export(home, words, str(target), ExportOptions(now=NOW, **options))


def entries(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


@pytest.mark.parametrize("shape", SHAPES)
def test_a_line_holds_every_column_and_every_message(shape: str, tmp_path: Path) -> None:
    home = new_home(tmp_path / "home", shape)
    before = bytes_of(home.database)
    done = exported(home, tmp_path / "out.jsonl", CHAT)
    assert bytes_of(home.database) == before
    (entry,) = entries(tmp_path / "out.jsonl")
    columns = [row[1] for row in execute(home.database, "PRAGMA table_info(messages)")]
    assert [list(message) for message in entry["messages"]] == [columns] * 6
    ids = execute(home.database, "SELECT id FROM messages WHERE session_id = ? ORDER BY id", (CHAT,))
    assert [(message["id"],) for message in entry["messages"]] == ids
    assert {row[1] for row in execute(home.database, "PRAGMA table_info(sessions)")} <= set(entry)
    assert (done.sessions, done.messages, done.size) == ((CHAT,), 6, (tmp_path / "out.jsonl").stat().st_size)
    assert entry.get("system_prompt"), "a prompt that is kept apart is in the export"


def test_the_lineage_goes_whole_and_branches_stay(tmp_path: Path) -> None:
    home = new_home(tmp_path / "home", "25")
    assert exported(home, tmp_path / "a", CONTINUATION).sessions == (COMPRESSED, CONTINUATION)
    assert exported(home, tmp_path / "b", ROOT).sessions == (ROOT, DELEGATE)
    assert exported(home, tmp_path / "c", COMPRESSED, CONTINUATION, SECOND).sessions == (
        SECOND,
        COMPRESSED,
        CONTINUATION,
    )


def test_three_formats_and_content_as_it_was_said(tmp_path: Path) -> None:
    home = new_home(tmp_path / "home", "22")
    exported(home, tmp_path / "one.json", ROOT, form="json")
    document = json.loads((tmp_path / "one.json").read_text("utf-8"))
    assert (document["format"], document["format_version"]) == ("hermes-dbtools/export", 1)
    first = document["sessions"][0]["messages"]
    assert first[0]["content"] == [{"type": "text", "text": "What is on this picture?"}]
    assert first[1]["tool_calls"][0]["function"]["name"] == "search_files"
    exported(home, tmp_path / "one.md", ROOT, form="md")
    text = (tmp_path / "one.md").read_text("utf-8")
    assert text.startswith("# Plain session 0\n")
    for line in (
        "What is on this picture?",
        "## tool (search_files) · 2026-05-28 20:27:10Z",
        "Answer 0: it is so.",
    ):
        assert line in text
    exported(home, tmp_path / "one.jsonl", ROOT)
    assert entries(tmp_path / "one.jsonl") == document["sessions"]


@pytest.mark.parametrize("shape", ["11", "22", "media"])
def test_values_that_json_has_no_word_for(shape: str, tmp_path: Path) -> None:
    home = new_home(tmp_path / "home", shape)
    ids = [
        r[0]
        for r in execute(home.database, "SELECT id FROM messages WHERE session_id = ? ORDER BY id", (SECOND,))
    ]
    execute(home.database, "UPDATE messages SET content = CAST(? AS TEXT) WHERE id = ?", (NOT_UTF8, ids[1]))
    execute(
        home.database,
        "UPDATE messages SET content = ?, timestamp = ? WHERE id = ?",
        ("\0json:{", math.inf, ids[2]),
    )
    execute(home.database, "UPDATE messages SET tool_calls = ? WHERE id = ?", ("[" * 3000, ids[3]))
    execute(home.database, "UPDATE sessions SET title = CAST(? AS TEXT) WHERE id = ?", (NOT_UTF8, SECOND))
    exported(home, tmp_path / "out", SECOND)
    (entry,) = entries(tmp_path / "out")
    assert entry["title"] == {"hex": NOT_UTF8.hex()}
    told = [message["content"] for message in entry["messages"]]
    assert told[1:3] == [{"hex": NOT_UTF8.hex()}, "\0json:{"]
    assert entry["messages"][2]["timestamp"] == "inf"
    assert entry["messages"][3]["tool_calls"] == "[" * 3000
    exported(home, tmp_path / "out.md", SECOND, form="md")


def test_a_file_is_never_overwritten_unasked_and_never_half_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = new_home(tmp_path / "home", "22")
    target = tmp_path / "out.jsonl"
    target.write_text("mine")
    with pytest.raises(UsageError, match="is there already"):
        exported(home, target, ROOT)
    assert target.read_text() == "mine"
    exported(home, target, ROOT, force=True)
    assert entries(target)
    assert target.stat().st_mode & 0o777 == 0o600
    with pytest.raises(UsageError, match="part of the database"):
        exported(home, home.database, ROOT, force=True)

    def break_off(*_arguments: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(exporting, "pieces", break_off)
    before = target.read_bytes()
    with pytest.raises(UsageError, match="no space left"):
        exported(home, target, ROOT, force=True)
    assert target.read_bytes() == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["home", "out.jsonl"]


def test_it_says_how_many_messages_it_has_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = new_home(tmp_path / "home", "22")
    monkeypatch.setattr(exporting, "BLOCK", 100)
    told: list[str] = []
    done = export(home, (CHAT,), str(tmp_path / "out.jsonl"), ExportOptions(now=NOW), told.append)
    assert told[-1] == f"messages: {done.messages} of {done.messages}"
    assert len(told) > done.messages / 2


def test_stdout_takes_an_export_too(tmp_path: Path) -> None:
    home = new_home(tmp_path / "home", "22")
    told = tool_here("sessions", "export", ROOT, "-o", "-", "--home", home.root)
    assert told.code == 0
    assert [json.loads(line)["id"] for line in told.out.splitlines()] == [ROOT, DELEGATE]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("form", ["jsonl", "json"])
def test_a_verified_export_is_deleted_and_undo_brings_it_back(form: Any, shape: str, tmp_path: Path) -> None:
    home = new_home(tmp_path / "home", shape)
    before = state(home.database)
    done = exported(home, tmp_path / "out", COMPRESSED, form=form)
    receipt = delete_verified(home, done, NOW)
    assert receipt.status == "committed"
    left = {row[0] for row in execute(home.database, "SELECT id FROM sessions")}
    assert not left & {COMPRESSED, CONTINUATION}
    assert len(left) == 6
    assert Path(done.path).stat().st_size == done.size
    take_back(home)
    assert state(home.database) == before


def drift_of_a_message(home: Home, _file: Path) -> None:
    execute(
        home.database,
        "UPDATE messages SET content = 'other' WHERE session_id = ? AND role = 'user'",
        (CONTINUATION,),
    )


def drift_of_a_row(home: Home, _file: Path) -> None:
    execute(home.database, "UPDATE sessions SET title = 'Other' WHERE id = ?", (COMPRESSED,))


def one_more_message(home: Home, _file: Path) -> None:
    add = "INSERT INTO messages (session_id, role, content, timestamp) VALUES (?, 'user', 'more', 1.0)"
    execute(home.database, add, (COMPRESSED,))


def one_more_session(home: Home, _file: Path) -> None:
    add = (
        "INSERT INTO sessions (id, source, started_at, parent_session_id, model_config)"
        " VALUES ('new', 'subagent', 1.0, ?, json_object('_delegate_from', ?))"
    )
    execute(home.database, add, (COMPRESSED, COMPRESSED))


def short_file(_home: Home, file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-3])


def long_file(_home: Home, file: Path) -> None:
    file.write_bytes(file.read_bytes() + b"\n")


def altered_file(_home: Home, file: Path) -> None:
    file.write_bytes(file.read_bytes().replace(b"Answer", b"answer", 1))


def no_file(_home: Home, file: Path) -> None:
    file.unlink()


@pytest.mark.parametrize(
    "change",
    [
        *(drift_of_a_message, drift_of_a_row, one_more_message, one_more_session),
        *(short_file, long_file, altered_file, no_file),
    ],
)
def test_what_differs_is_not_deleted(change: Callable[[Home, Path], None], tmp_path: Path) -> None:
    home = new_home(tmp_path / "home", "25")
    done = exported(home, tmp_path / "out", COMPRESSED)
    change(home, tmp_path / "out")
    before = state(home.database)
    with pytest.raises(RolledBack, match="nothing was deleted"):
        delete_verified(home, done, NOW)
    assert state(home.database) == before


def test_a_live_session_is_exported_and_not_deleted(tmp_path: Path) -> None:
    home = new_home(tmp_path / "home", "30")
    execute(
        home.database, "INSERT INTO session_turn_leases VALUES (?, 'pid=1:turn=t', 1.0, 4e9)", (COMPRESSED,)
    )
    done = exported(home, tmp_path / "one", CONTINUATION)
    with pytest.raises(Active, match="Cannot delete active session"):
        delete_verified(home, done, NOW)
    told = tool_here(
        *("sessions", "export", CONTINUATION, "-o", tmp_path / "two", "--home", home.root),
        *("--delete-after-verified", "--yes"),
    )
    assert told.code == 1
    assert "Cannot delete active session" in told.err
    assert len(entries(tmp_path / "two")) == 2
    assert execute(home.database, "SELECT count(*) FROM sessions") == [(8,)]


def test_the_command_deletes_what_it_proved(tmp_path: Path) -> None:
    home = new_home(tmp_path / "home", "22")
    words = ("sessions", "export", SECOND, "--home", home.root, "--delete-after-verified")
    assert tool_here(*words, "-o", tmp_path / "out").code == 2, "without a terminal it needs --yes"
    assert tool_here(*words, "--yes", "-o", "-").code == 2
    assert tool_here(*words, "--yes", "-o", tmp_path / "out", "--format", "md").code == 2
    done = tool_here(*words, "--yes", "-o", tmp_path / "out")
    assert done.code == 0, done.err
    assert [entry["id"] for entry in entries(tmp_path / "out")] == [SECOND]
    assert execute(home.database, "SELECT count(*) FROM sessions WHERE id = ?", (SECOND,)) == [(0,)]
