"""Conversations of released stores, damaged and mended from the command line: their own release reads them rightly."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.real.damages import rows, shell
from tests.real.judge import assert_appends, assert_clean, assert_found, listing, text_of
from tests.real.looks import all_findings, digest, look, run, wrong
from tests.real.store import Store
from tests.real.wheels import RELEASES

FLAGGED = RELEASES[1:]
"""Releases that can set a message aside."""
COMPACTING = RELEASES[2:]
"""Releases that compress in place."""
TALK = "talk"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "home" / "state.db"


def talk(path: Path, release: str, turns: int = 2) -> list[dict[str, Any]]:
    """A conversation with calls; returns its rows."""
    with Store(path, release) as store:
        store.call("create", session_id=TALK)
        for turn in range(turns):
            store.call("append", session_id=TALK, content=f"wordquestion{turn} please")
            store.call(
                "tool_turn", session_id=TALK, call_ids=[f"call_{turn}"], result=f"wordresult{turn} done"
            )
            store.call("append", session_id=TALK, role="assistant", content=f"wordanswer{turn} it is so")
        return list(store.call("messages", session_id=TALK))


def damage(path: Path, *statements: tuple[str, tuple[Any, ...]]) -> str:
    """Damage the rows, keep the counters right, and return the digest."""
    changed = shell(path, statements)
    assert 0 not in changed
    ((active,),) = rows(path, "SELECT count(*) FROM pragma_table_info('messages') WHERE name = 'active'")
    live = "AND active = 1" if active else ""
    count = (
        f"UPDATE sessions SET message_count = (SELECT count(*) FROM messages WHERE session_id = sessions.id {live}),"
        " tool_call_count = (SELECT coalesce(sum(json_array_length(tool_calls)), 0) FROM messages"
        f" WHERE session_id = sessions.id AND json_valid(tool_calls) {live})"
    )
    shell(path, [(count, ())])
    return digest(path)


def codes(path: Path) -> set[str]:
    """The codes of all that a deep scan finds."""
    return {finding.code for finding in all_findings(look(path, select=(), deep=True))}


def mend(path: Path, code: str, *options: str) -> None:
    """The finding is there alone; the repair takes it away."""
    assert code in codes(path)
    told = run("repair", path, "--apply", "--yes", *options)
    assert told.code == 0, told.err
    assert code not in codes(path)
    assert wrong(look(path, select=())) == ()


@pytest.fixture(params=RELEASES)
def release(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(params=FLAGGED)
def flagged(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(params=COMPACTING)
def compacting(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def undone(path: Path) -> Iterator[list[str]]:
    """After the test the repair is taken back: the digest that the test put in the list must come back."""
    before: list[str] = []
    yield before
    told = run("undo", path, "--apply", "--yes")
    assert told.code == 0, told.err
    assert [digest(path)] == before


def conversation(store: Store) -> list[dict[str, Any]]:
    """What a resume gives to the model."""
    return list(store.call("resume", session_id=TALK)["messages"])


def test_a_lost_result_is_answered_at_the_end_of_its_turn(path: Path, release: str) -> None:
    said = talk(path, release)
    before = damage(path, ("DELETE FROM messages WHERE id IN (?, ?)", (said[-1]["id"], said[-2]["id"])))
    mend(path, "HDB601", "--choose", "unanswered-tool-calls=answer")
    told = run("undo", path, "--apply", "--yes")
    assert (told.code, digest(path)) == (0, before), told.err
    mend(path, "HDB601", "--choose", "unanswered-tool-calls=answer")
    with Store(path, release) as store:
        *_, call, result = conversation(store)
        assert call["tool_calls"][0]["id"] == result["tool_call_id"] == "call_1"
        assert (result["role"], result["tool_name"]) == ("tool", "terminal")
        assert_found(store, TALK, "lost")
        assert_appends(store, TALK)
        assert store.call("session", session_id=TALK)["message_count"] == len(said)
        assert_clean(store)


def test_results_get_their_names_back_and_are_found_by_them(path: Path, release: str) -> None:
    talk(path, release)
    before = damage(path, ("UPDATE messages SET tool_name = NULL WHERE role = 'tool'", ()))
    mend(path, "HDB607")
    copy = path.with_name("copy.db")
    copy.write_bytes(path.read_bytes())
    with Store(copy, release) as store:
        names = [row["tool_name"] for row in conversation(store) if row["role"] == "tool"]
        assert names == ["terminal", "terminal"]
        assert_clean(store)
    told = run("undo", path, "--apply", "--yes")
    assert (told.code, digest(path)) == (0, before), told.err


def test_results_without_a_call_are_no_longer_sent(path: Path, flagged: str, undone: list[str]) -> None:
    said = talk(path, flagged)
    undone.append(damage(path, ("DELETE FROM messages WHERE id = ?", (said[1]["id"],))))
    mend(path, "HDB602", "--choose", "orphaned-tool-results=set-aside")
    check_set_aside(path, flagged, said, gone={said[1]["id"], said[2]["id"]}, word="wordresult0")


def test_a_call_with_broken_arguments_goes_with_its_result(
    path: Path, flagged: str, undone: list[str]
) -> None:
    said = talk(path, flagged)
    broken = "UPDATE messages SET tool_calls = json_set(tool_calls, '$[0].function.arguments', '{\"a') WHERE id = ?"
    undone.append(damage(path, (broken, (said[1]["id"],))))
    mend(path, "HDB603", "--choose", "invalid-tool-arguments=set-aside")
    check_set_aside(path, flagged, said, gone={said[1]["id"], said[2]["id"]}, word="wordresult0")


def test_placeholders_are_no_longer_sent(path: Path, flagged: str, undone: list[str]) -> None:
    said = talk(path, flagged)
    undone.append(damage(path, ("UPDATE messages SET content = '(empty)' WHERE id = ?", (said[3]["id"],))))
    mend(path, "HDB606", "--choose", "sentinel-messages=set-aside")
    check_set_aside(path, flagged, said, gone={said[3]["id"]}, word="empty")


def check_set_aside(path: Path, release: str, said: list[dict[str, Any]], gone: set[int], word: str) -> None:
    """The release reads the others, counts them, does not find what was set aside, and uses the session on."""
    copy = path.with_name("copy.db")
    copy.write_bytes(path.read_bytes())
    with Store(copy, release) as store:
        kept = [row["id"] for row in said if row["id"] not in gone]
        assert [row["id"] for row in store.call("messages", session_id=TALK)] == kept
        assert len(conversation(store)) == len(kept)
        assert store.call("session", session_id=TALK)["message_count"] == len(kept)
        assert TALK in listing(store)
        assert not [row for row in store.call("search", query=word) if row["session_id"] == TALK]
        assert_appends(store, TALK)
        assert_clean(store)


def test_copies_that_compressions_left_go_and_every_text_is_still_found(
    path: Path, compacting: str, undone: list[str]
) -> None:
    said = talk(path, compacting)
    with Store(path, compacting) as store:
        store.call("compress", session_id=TALK)
        active = [text_of(row["content"]) for row in store.call("messages", session_id=TALK)]
    columns = "session_id, role, content, tool_calls, tool_call_id, tool_name, timestamp, active, compacted"
    copies = (
        f"INSERT INTO messages ({columns}) SELECT {columns} FROM messages"
        " WHERE session_id = ? AND active = 0 AND id <= ? ORDER BY id"
    )
    times = 3
    undone.append(damage(path, *[(copies, (TALK, said[-1]["id"]))] * times))
    mend(path, "HDB605", "--allow-lossy", "--max-rows", "100")
    copy = path.with_name("copy.db")
    copy.write_bytes(path.read_bytes())
    with Store(copy, compacting) as store:
        assert [text_of(row["content"]) for row in store.call("messages", session_id=TALK)] == active
        every = [row["id"] for row in store.call("messages", session_id=TALK, include_inactive=True)]
        assert len(every) == len(said) + len(active)
        assert set(every) >= {row["id"] for row in said}
        for word in ("wordquestion0", "wordresult1", "wordanswer1"):
            assert_found(store, TALK, word)
        assert_appends(store, TALK)
        assert_clean(store)


@pytest.mark.parametrize(
    ("code", "options"),
    [
        ("HDB705", ("--select", "undecodable-images", "--choose", "undecodable-images=placeholder")),
        ("HDB706", ("--choose", "inline-images=placeholder", "--allow-lossy")),
    ],
)
def test_a_line_stands_for_an_image_and_the_text_beside_it_is_kept(
    path: Path, release: str, code: str, options: tuple[str, ...]
) -> None:
    with Store(path, release) as store:
        store.call("create", session_id=TALK)
        url = "data:image/png;base64," + "QUJD" * 1000
        store.call("image", session_id=TALK, text="wordpicture of a lighthouse", url=url)
        store.call("append", session_id=TALK, role="assistant", content="a lighthouse")
    before = digest(path)
    told = run("repair", path, "--apply", "--yes", *options)
    assert told.code == 0, told.err
    content = rows(path, "SELECT CAST(content AS BLOB) FROM messages WHERE role = 'user'")[0][0]
    assert json.loads(content.removeprefix(b"\0json:"))[0] == {
        "type": "text",
        "text": "wordpicture of a lighthouse",
    }
    told = run("undo", path, "--apply", "--yes")
    assert (told.code, digest(path)) == (0, before), told.err
    assert code in codes(path)
    run("repair", path, "--apply", "--yes", *options)
    assert code not in codes(path)
    with Store(path, release) as store:
        text, line = conversation(store)[0]["content"]
        assert text["text"] == "wordpicture of a lighthouse"
        assert line["type"] == "text"
        assert line["text"].startswith("[Image removed by hermes-dbtools: image/png, 3,000 bytes")
        assert_found(store, TALK, "wordpicture")
        assert_appends(store, TALK)
        assert_clean(store)
