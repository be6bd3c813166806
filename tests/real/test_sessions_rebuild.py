"""Sessions that were lost and rebuilt: the released store lists, resumes, appends to and searches them as before."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.real.damages import shell
from tests.real.judge import assert_clean, assert_usable, listing, texts
from tests.real.looks import look, run, wrong
from tests.real.store import Store
from tests.real.wheels import RELEASES


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state.db"


def conversation(store: Store, session_id: str) -> None:
    """A session with a picture, a call of a tool and plain turns."""
    store.call("create", session_id=session_id, source="telegram")
    store.call("append", session_id=session_id, content=f"{session_id} asks for zeppelins")
    store.call("tool_turn", session_id=session_id, call_ids=["call_1"])
    store.call("append", session_id=session_id, role="assistant", content=f"{session_id} is told")
    store.call("image", session_id=session_id, text=f"{session_id} shows one")


def transcript(store: Store, path: Path, session_id: str) -> None:
    """The lines that the gateway of 0.13 writes beside the store: what the agent has in memory."""
    folder = path.parent / "sessions"
    folder.mkdir(exist_ok=True)
    names = ("role", "content", "tool_calls", "tool_call_id", "tool_name", "timestamp")
    rows = store.call("messages", session_id=session_id)
    entries = [{name: row[name] for name in names if row.get(name) is not None} for row in rows]
    text = "".join(json.dumps(entry) + "\n" for entry in entries)
    (folder / f"{session_id}.jsonl").write_text(text, "utf-8")


def lose(path: Path, session_id: str, messages: str) -> None:
    """What happens through a connection without foreign keys: the row and some of its messages are gone."""
    shell(
        path,
        [
            (f"DELETE FROM messages WHERE session_id = ? AND {messages}", (session_id,)),
            ("DELETE FROM sessions WHERE id = ?", (session_id,)),
        ],
    )


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize(
    "messages", ["1", "0", "id % 2", "role = 'user'"], ids=["all", "none", "half", "asked"]
)
def test_a_lost_session_is_rebuilt_and_the_store_goes_on(release: str, messages: str, path: Path) -> None:
    with Store(path, release) as store:
        conversation(store, "kept")
        conversation(store, "lost")
        transcript(store, path, "lost")
        before, said, resumed = listing(store), texts(store, "lost"), store.call("resume", session_id="lost")
        counted = store.call("session", session_id="lost")
    lose(path, "lost", messages)
    told = run("sessions", "rebuild", "lost", "--home", path, "--apply", "--yes")
    assert told.code == 0, told.out + told.err
    assert wrong(look(path)) == ()
    with Store(path, release) as store:
        assert_clean(store)
        assert sorted(listing(store)) == sorted(before)
        again = store.call("resume", session_id="lost")
        assert [m["role"] for m in again["messages"]] == [m["role"] for m in resumed["messages"]]
        assert [m.get("content") for m in again["messages"]] == [
            m.get("content") for m in resumed["messages"]
        ]
        row = store.call("session", session_id="lost")
        for column in ("message_count", "tool_call_count"):
            assert row[column] == counted[column]
        assert {hit["session_id"] for hit in store.call("search", query="zeppelins")} == {"kept", "lost"}
        assert_usable(store, "lost", said, before)


@pytest.mark.parametrize("release", RELEASES)
def test_an_export_is_what_the_store_imports(release: str, path: Path, tmp_path: Path) -> None:
    with Store(path, release) as store:
        conversation(store, "one")
        said = texts(store, "one")
        imports = "import_sessions" in store.call("ping")["methods"]
    told = run("sessions", "export", "one", "--home", path, "-o", tmp_path / "one.jsonl")
    assert told.code == 0, told.err
    entry = json.loads((tmp_path / "one.jsonl").read_text("utf-8"))
    assert [m["role"] for m in entry["messages"]] == ["user", "assistant", "tool", "assistant", "user"]
    if not imports:
        return
    with Store(tmp_path / "other" / "state.db", release) as store:
        done = store.call("import_sessions", sessions=[entry])
        assert (done["ok"], done["imported"]) == (True, 1)
        assert texts(store, "one") == said
        assert_clean(store)


@pytest.mark.parametrize("release", RELEASES)
def test_a_verified_export_is_deleted_and_the_rest_works_on(release: str, path: Path, tmp_path: Path) -> None:
    with Store(path, release) as store:
        conversation(store, "kept")
        conversation(store, "gone")
        said = texts(store, "kept")
    words = ("sessions", "export", "gone", "--home", path, "-o", tmp_path / "gone.jsonl")
    told = run(*words, "--delete-after-verified", "--yes")
    assert told.code == 0, told.err
    with Store(path, release) as store:
        assert listing(store) == ["kept"]
        assert_clean(store)
        assert_usable(store, "kept", said, ["kept"])
