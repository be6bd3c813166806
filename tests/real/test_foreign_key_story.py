"""The story the tool is for: a session stops saving with FOREIGN KEY constraint failed, and saves again after a repair."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tests.real.judge import assert_clean, listing, text_of, texts
from tests.real.looks import digest, run
from tests.real.store import Store, StoreError
from tests.real.wheels import RELEASES

LOST = "20260301_101500_lost"
HOUR = 3600.0


@pytest.mark.parametrize("release", RELEASES)
def test_a_stopped_store_saves_and_lists_the_session_again(release: str, tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    with Store(path, release) as store:
        lose_a_session(store)
        assert_cannot_save(store)
    told = run("scan", path, "--verbose")
    assert told.code == 1
    assert "HDB201" in told.out
    assert "orphaned-messages" in told.out
    assert LOST in told.out
    assert run("repair", path).code == 1
    assert run("repair", path, "--apply", "--yes").code == 0
    assert run("scan", path).code == 0
    with Store(path, release) as store:
        assert_saves(store)


@pytest.mark.parametrize("release", ["0.19.0", "0.20.4.1"])
def test_a_running_store_saves_again_after_an_online_repair_of_an_idle_session(
    release: str, tmp_path: Path
) -> None:
    path = tmp_path / "state.db"
    with Store(path, release, clock={"at": time.time() - HOUR}) as store:
        lose_a_session(store)
        store.call("clock")
        assert_cannot_save(store)
        refused = run("repair", path, "--apply", "--yes")
        assert refused.code == 4
        assert f"(pid {store.pid})" in refused.err
        assert_cannot_save(store)
        told = run("repair", path, "--apply", "--yes", "--online")
        assert told.code == 0, told.out + told.err
        assert_saves(store)


@pytest.mark.parametrize("online", [(), ("--online",)])
def test_a_session_that_a_running_store_wrote_just_now_is_left_alone(
    online: tuple[str, ...], tmp_path: Path
) -> None:
    """0.19.0 cannot say who is live: its agent may write the row again itself."""
    path = tmp_path / "state.db"
    with Store(path, "0.19.0") as store:
        lose_a_session(store)
        before = digest(path)
        told = run("repair", path, "--apply", "--yes", *online)
        assert told.code == 1
        assert "1 live session left alone" in told.err
        assert LOST in told.err
        assert "is held by" not in told.err
        assert digest(path) == before
        assert_cannot_save(store)
    assert run("repair", path, "--apply", "--yes", *online).code == 0
    with Store(path, "0.19.0") as store:
        assert_saves(store)


def lose_a_session(store: Store) -> None:
    """Two sessions of two messages each; the row of one is deleted by a connection without foreign keys."""
    for session_id in (LOST, "another"):
        store.call("create", session_id=session_id, source="cli")
        store.call("append", session_id=session_id, content=f"a question of {session_id}")
        store.call("append", session_id=session_id, role="assistant", content="an answer")
    assert store.execute("DELETE FROM sessions WHERE id = ?", LOST) == 1
    assert LOST not in listing(store)


def assert_cannot_save(store: Store) -> None:
    with pytest.raises(StoreError, match="FOREIGN KEY constraint failed"):
        store.call("append", session_id=LOST, content="lost")


def assert_saves(store: Store) -> None:
    """An append works, the session is listed and whole, and the store's own checks find nothing."""
    row_id = store.call("append", session_id=LOST, content="saved again")
    last = store.call("messages", session_id=LOST)[-1]
    assert (last["id"], text_of(last["content"])) == (row_id, "saved again")
    assert texts(store, LOST) == [f"a question of {LOST}", "an answer", "saved again"]
    assert {LOST, "another"} <= set(listing(store))
    assert_clean(store)
