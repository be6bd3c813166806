"""Routes, goals, prompts and leases that released stores leave behind: removed, their release works on as before."""

from __future__ import annotations

from pathlib import Path

import pytest

from hermes_dbtools.model import Severity
from tests.real.damages import shell
from tests.real.judge import assert_clean, assert_usable, listing, texts
from tests.real.looks import all_findings, look, run
from tests.real.store import Store
from tests.real.wheels import ASYNC_RELEASES, RELEASES

ROUTED = ("0.18.2", "0.19.0")
"""Releases that keep routes in the database and leave them when they delete."""
LOCKED = tuple(release for release in RELEASES if release != "0.13.0")
MINE = ("HDB207", "HDB208", "HDB209", "HDB305", "HDB903")
SELECT = tuple(word for code in MINE for word in ("--select", code))
KEY = "agent:main:telegram:dm:7"
DEAD = "pid=999999:tid=1:agent=a:nonce=00000000"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state.db"


def found(path: Path) -> list[tuple[str, str]]:
    """Code and key of what the classes of this file find."""
    return [(one.code, one.key) for one in all_findings(look(path, select=MINE))]


def mend(path: Path, *words: str) -> None:
    """Apply from the command line."""
    told = run("repair", path, *SELECT, "--apply", "--yes", *words)
    assert told.code == 0, told.out + told.err


def beside(path: Path, *statements: str) -> None:
    """Change the file as the `sqlite3` shell does."""
    shell(path, [(statement, ()) for statement in statements])


def chat(store: Store, session_id: str) -> None:
    """A session with two turns."""
    store.call("create", session_id=session_id, source="telegram", user_id="7")
    for turn in range(2):
        store.call("append", session_id=session_id, content=f"{session_id} asks number{turn}")
        store.call("append", session_id=session_id, role="assistant", content=f"{session_id} is told {turn}")


@pytest.mark.parametrize("release", ROUTED)
def test_the_route_of_a_deleted_session_goes_and_the_others_stay(release: str, path: Path) -> None:
    with Store(path, release) as store:
        chat(store, "kept")
        chat(store, "lost")
        store.call("route", session_key=KEY, session_id="kept")
        store.call("route", session_key=f"{KEY}1", session_id="lost")
        store.call("delete", session_id="lost")
        before, said = listing(store), texts(store, "kept")
    assert found(path) == [("HDB207", "lost")]
    mend(path, "--allow-lossy")
    assert found(path) == []
    with Store(path, release) as store:
        routes = store.call("call", method="load_gateway_routing_entries", arguments={"scope": ""})
        assert list(routes) == [KEY]
        assert_usable(store, "kept", said, before)


@pytest.mark.parametrize("release", ROUTED)
def test_a_route_under_the_key_of_another_chat_goes(release: str, path: Path) -> None:
    with Store(path, release) as store:
        chat(store, "kept")
        store.call("route", session_key=KEY, session_id="kept")
    beside(
        path,
        "INSERT INTO gateway_routing SELECT scope, session_key || '9', entry_json, updated_at FROM gateway_routing",
    )
    (finding,) = all_findings(look(path, select=MINE))
    assert (finding.code, finding.kind, finding.severity) == ("HDB207", "key-mismatch", Severity.WARNING)
    mend(path, "--allow-lossy")
    with Store(path, release) as store:
        routes = store.call("call", method="load_gateway_routing_entries", arguments={"scope": ""})
        assert list(routes) == [KEY]
        assert_clean(store)


@pytest.mark.parametrize("release", RELEASES)
def test_the_goal_of_a_deleted_session_goes_and_a_living_one_stays(release: str, path: Path) -> None:
    with Store(path, release, clock={"offset": -5 * 86400.0}) as store:
        for session_id in ("kept", "lost"):
            chat(store, session_id)
            store.call("goal", session_id=session_id)
        store.call("delete", session_id="lost")
        before, said = listing(store), texts(store, "kept")
    assert found(path) == [("HDB208", "goal:lost")]
    mend(path, "--allow-lossy")
    assert found(path) == []
    with Store(path, release) as store:
        assert store.call("call", method="get_meta", arguments={"key": "goal:lost"}) is None
        assert store.call("call", method="get_meta", arguments={"key": "goal:kept"})
        assert_usable(store, "kept", said, before)


@pytest.mark.parametrize("release", ASYNC_RELEASES)
def test_a_prompt_that_a_raw_delete_left_goes_and_the_others_are_read(release: str, path: Path) -> None:
    with Store(path, release) as store:
        for session_id in ("kept", "lost"):
            chat(store, session_id)
            arguments = {"session_id": session_id, "system_prompt": f"You are {session_id}."}
            store.call("call", method="update_system_prompt", arguments=arguments)
        before, said = listing(store), texts(store, "kept")
    assert found(path) == []
    beside(path, "DELETE FROM messages WHERE session_id = 'lost'", "DELETE FROM sessions WHERE id = 'lost'")
    assert [code for code, _key in found(path)] == ["HDB209"]
    mend(path, "--allow-lossy")
    assert found(path) == []
    with Store(path, release) as store:
        assert store.call("session", session_id="kept")["system_prompt"] == "You are kept."
        assert [row["prompt"] for row in store.rows("SELECT prompt FROM system_prompts")] == ["You are kept."]
        assert_usable(store, "kept", said, set(before) - {"lost"})


@pytest.mark.parametrize("release", LOCKED)
def test_a_lock_and_a_lease_of_a_killed_process_go_and_the_next_turn_takes_them(
    release: str, path: Path
) -> None:
    with Store(path, release, clock={"offset": -5 * 86400.0}) as store:
        chat(store, "chat")
        store.call("lock", session_id="chat", holder=DEAD)
        if release in ASYNC_RELEASES:
            store.call("lease", session_id="chat", holder=DEAD)
        said = texts(store, "chat")
    stale = [("HDB903", "compression_locks chat")]
    if release in ASYNC_RELEASES:
        stale.insert(0, ("HDB903", "session_turn_leases chat"))
    assert found(path) == stale
    mend(path)
    assert found(path) == []
    with Store(path, release) as store:
        assert store.call("lock", session_id="chat")
        if release in ASYNC_RELEASES:
            assert store.call("lease", session_id="chat")
        assert found(path) == [], "a lock that is held is nobody's finding"
        store.call("unlock", session_id="chat", holder=holder(store))
        assert texts(store, "chat") == said
        assert_clean(store)


def holder(store: Store) -> str:
    """Who holds the compression lock of the session `chat`."""
    ((name,),) = [tuple(row.values()) for row in store.rows("SELECT holder FROM compression_locks")]
    return str(name)


@pytest.mark.parametrize("release", LOCKED)
def test_a_stale_lock_is_left_alone_while_a_store_has_the_file_open(release: str, path: Path) -> None:
    with Store(path, release, clock={"offset": -5 * 86400.0}) as store:
        chat(store, "chat")
        store.call("lock", session_id="chat", holder=DEAD)
        assert found(path) == [("HDB903", "compression_locks chat")]
        told = run("repair", path, *SELECT, "--apply", "--yes", "--online")
        assert "others have the file open" in told.out + told.err
        assert store.rows("SELECT session_id FROM compression_locks") == [{"session_id": "chat"}]


@pytest.mark.parametrize("release", RELEASES)
def test_loops_are_found_whatever_the_release_and_their_end_makes_the_sessions_usable(
    release: str, path: Path
) -> None:
    with Store(path, release) as store:
        for session_id in ("one", "two", "three"):
            chat(store, session_id)
        said = texts(store, "one")
    beside(
        path,
        "UPDATE sessions SET parent_session_id = CASE id WHEN 'one' THEN 'two' WHEN 'two' THEN 'one' ELSE id END",
    )
    assert found(path) == [("HDB305", "one"), ("HDB305", "three")]
    told = run("repair", path, *SELECT, "--apply", "--yes")
    assert "by hand" in told.out + told.err
    beside(path, "UPDATE sessions SET parent_session_id = NULL")
    assert found(path) == []
    with Store(path, release) as store:
        assert_usable(store, "one", said, {"one", "two", "three"})
