"""The guard beside released stores that hold real leases and locks in processes of their own."""

from __future__ import annotations

import time
from pathlib import Path

import apsw

from hermes_dbtools.guard import LiveSessions, live_sessions
from hermes_dbtools.home import Home
from hermes_dbtools.processes import Processes
from hermes_dbtools.shape import read_shape
from tests.real.store import Store

LEASED = "0.20.4.1"
"""The release whose stores have turn leases."""


def look(store: Store, *, held: bool = True, doubt: str = "") -> LiveSessions:
    connection = apsw.Connection(
        f"file:{store.path}?mode=ro", flags=apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
    )
    try:
        return live_sessions(
            connection,
            read_shape(connection),
            home=Home(store.path.parent, store.path, "default"),
            now=time.time(),
            held=held,
            processes=Processes(doubt),
        )
    finally:
        connection.close()


def release(store: Store, session_id: str) -> None:
    holder = f"pid={store.pid}:turn=t1"
    store.call(
        "call",
        method="release_session_turn_lease",
        arguments={"session_id": session_id, "holder": holder},
    )


def conversation(store: Store) -> None:
    """A root with its continuation, a branch of it, and a delegate of the continuation."""
    for session_id in ("root", "idle"):
        store.call("create", session_id=session_id)
        store.call("append", session_id=session_id, role="user", content="hello")
        store.call("append", session_id=session_id, role="assistant", content="good day")
    store.call("compress", session_id="root", child="tip")
    store.call("branch", parent="tip", child="branch", form="tui")
    store.call("delegate", parent="tip", child="child", end=False)


def test_a_real_turn_lease_on_a_continuation_guards_root_and_tip(tmp_path: Path) -> None:
    with Store(tmp_path / "state.db", LEASED) as store:
        conversation(store)
        assert dict(look(store)) == {}
        assert store.call("lease", session_id="tip")
        live = look(store)
        assert list(live) == ["root", "tip"]
        assert live["root"].reason == "turn lease"
        assert live["tip"].reason == "compression chain of root: turn lease"
        assert {one.holder for one in live.values()} == {f"pid {store.pid}"}
        release(store, "tip")
        assert dict(look(store)) == {}


def test_a_real_lease_of_a_delegate_guards_the_whole_conversation(tmp_path: Path) -> None:
    with Store(tmp_path / "state.db", LEASED) as store:
        conversation(store)
        assert store.call("lease", session_id="child")
        assert list(look(store)) == ["child", "root", "tip"]
        release(store, "child")
        assert store.call("lease", session_id="branch")
        assert list(look(store)) == ["branch"]


def test_a_lease_outlives_a_killed_process_only_where_its_pid_proves_nothing(tmp_path: Path) -> None:
    store = Store(tmp_path / "state.db", LEASED).start()
    conversation(store)
    assert store.call("lease", session_id="tip")
    assert store.call("lock", session_id="idle")
    store.kill()
    assert dict(look(store)) == {}
    assert list(look(store, doubt="another host")) == ["idle", "root", "tip"]


def test_a_real_lock_guards_and_so_does_writing_where_there_are_no_leases(tmp_path: Path) -> None:
    with Store(tmp_path / "state.db", "0.19.0") as store:
        conversation(store)
        held = look(store)
        assert list(held) == ["branch", "child", "idle", "root", "tip"]
        assert held["root"].reason == "compression chain of tip: open and written to just now"
        assert dict(look(store, held=False)) == {}
        store.call("end", session_id="idle", end_reason="user_exit")
        assert "idle" not in look(store)
        assert store.call("lock", session_id="tip")
        assert list(look(store, held=False)) == ["root", "tip"]
