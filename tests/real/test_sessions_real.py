"""Sessions of released stores deleted by the store and by us: the same rows go, and the store goes on."""

from __future__ import annotations

import json
import shutil
import time
from pathlib import Path
from typing import Any

import pytest

from hermes_dbtools.home import resolve
from hermes_dbtools.model import Refused
from hermes_dbtools.sessions.api import SessionActive, delete_sessions
from hermes_dbtools.undoing import UndoOptions, choose_receipt, undo
from tests.real.judge import assert_clean, assert_usable, listing, texts
from tests.real.looks import run
from tests.real.store import Store

COMPARED = ("0.18.2", "0.19.0", "0.20.4.1")
LEASED = "0.20.4.1"
LATER = 3600.0
"""Seconds after its last message at which a session of a store without leases is no longer taken for live."""

ASIDE = ("state_meta:hermes_dbtools.repair.", "sqlite_sequence")

FORGOTTEN = {
    "state_meta:goal:root": "the goal of the deleted session: no release removes it, and nothing reads it again",
    "compression_locks:root": "the lock of the deleted session, which has run out",
    "session_turn_leases:root": "the lease of the deleted conversation, which has run out",
    "gateway_routing::key-of-root": "the chat route of the deleted session: the next message would look for it",
}
"""What we remove and the store does not, with the reason; everything else must be the same, value by value."""


def grown(path: Path, release: str) -> None:
    """A root with delegates of delegates, a branch, a continuation, and all that names it; others beside it."""
    with Store(path, release) as store:
        for session_id in ("root", "other"):
            store.call(
                "create", session_id=session_id, title=f"title of {session_id}", system_prompt="You are one."
            )
            for turn in range(3):
                store.call("append", session_id=session_id, content=f"{session_id} asks pineapple {turn}")
                store.call(
                    "append", session_id=session_id, role="assistant", content=f"{session_id} told {turn}"
                )
            store.call("goal", session_id=session_id)
            if release != LEASED:
                store.call("route", session_key=f"key-of-{session_id}", session_id=session_id)
        store.call("image", session_id="root", text="a picture")
        store.call("tool_turn", session_id="root", call_ids=["c1"])
        store.call("delegate", parent="root", child="child")
        store.call("delegate", parent="child", child="grandchild")
        store.call("branch", parent="root", child="branch", form="tui")
        store.call("lock", session_id="root", ttl=-5.0)
        store.call("compress", session_id="other", child="tip")
        if release == LEASED:
            store.call("lease", session_id="root", ttl=-5.0)


def contents(path: Path, release: str) -> dict[str, dict[str, Any]]:
    """Every row of every table of the store's own, by its key; marks of ours left out."""
    found: dict[str, dict[str, Any]] = {}
    with Store(path, release) as store:
        tables = [
            row["name"]
            for row in store.rows(
                "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'messages_fts%'"
            )
        ]
        for table in tables:
            keys = [
                row["name"]
                for row in store.rows(f"SELECT name FROM pragma_table_info('{table}') WHERE pk > 0")
            ]
            for row in store.rows(f"SELECT * FROM {table}"):
                key = ":".join([table, *(str(row[name]) for name in keys or row)])
                if not key.startswith(ASIDE):
                    found[key] = row
    return found


@pytest.mark.parametrize("release", COMPARED)
def test_we_delete_what_the_store_deletes_and_what_it_forgets(release: str, tmp_path: Path) -> None:
    theirs, ours = tmp_path / "theirs" / "state.db", tmp_path / "ours" / "state.db"
    grown(theirs, release)
    shutil.copytree(theirs.parent, ours.parent)
    before = contents(ours, release)
    with Store(theirs, release) as store:
        assert store.call("delete", session_id="root")
    done = delete_sessions("root", ours, now=time.time() + LATER)
    assert (done.deleted, set(done.also_deleted)) == (("root",), {"child", "grandchild"})
    left, kept = contents(theirs, release), contents(ours, release)
    assert {key: row for key, row in left.items() if key not in FORGOTTEN} == kept
    assert set(left) - set(kept) == set(FORGOTTEN) & set(before)
    assert set(before) - set(kept) > {"sessions:root", "sessions:child", "sessions:grandchild"}
    with Store(ours, release) as store:
        assert_clean(store)
        assert {"branch", "tip"} <= set(listing(store))
        found = {row["session_id"] for row in store.call("search", query="pineapple")}
        assert "branch" in found
        assert not found & {"root", "child", "grandchild"}
        said = texts(store, "branch")
        assert_usable(store, "branch", said, word="pineapple")
        store.call("branch", parent="tip", child="new-branch")
        store.call("prune", older_than_days=None)
        assert_clean(store)


@pytest.mark.parametrize("release", COMPARED)
def test_several_go_as_the_store_lets_them_go(release: str, tmp_path: Path) -> None:
    theirs, ours = tmp_path / "theirs" / "state.db", tmp_path / "ours" / "state.db"
    grown(theirs, release)
    shutil.copytree(theirs.parent, ours.parent)
    asked = ["tip", "root", "child", "nobody"]
    with Store(theirs, release) as store:
        assert store.call("delete_many", session_ids=asked) == 3
    done = delete_sessions(asked, ours, now=time.time() + LATER)
    assert (done.deleted, done.also_deleted, done.missing) == (
        ("tip", "root", "child"),
        ("grandchild",),
        ("nobody",),
    )
    left, kept = contents(theirs, release), contents(ours, release)
    assert {key: row for key, row in left.items() if key not in FORGOTTEN} == kept


@pytest.mark.parametrize("release", COMPARED)
def test_an_undo_gives_the_store_its_session_back(release: str, tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    grown(path, release)
    before = contents(path, release)
    with Store(path, release) as store:
        said, shown = texts(store, "root"), listing(store)
    delete_sessions(["root", "tip"], path, now=time.time() + LATER)
    home = resolve(path)
    undo(home, choose_receipt(home, None), UndoOptions(now=time.time() + LATER))
    assert contents(path, release) == before
    with Store(path, release) as store:
        assert listing(store) == shown
        assert_usable(store, "root", said, shown, word="pineapple")


def test_a_real_lease_refuses_the_delete_until_it_is_given_back(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    grown(path, LEASED)
    with Store(path, LEASED) as store:
        for holder in ("root", "child", "grandchild"):
            assert store.call("lease", session_id=holder)
            with pytest.raises(
                SessionActive, match=f"^Cannot delete active session root: .*turn lease.*pid {store.pid}"
            ):
                delete_sessions("root", path)
            told = run("sessions", "delete", "root", "--home", str(path), "--apply", "--yes")
            assert told.code == 1
            assert "Cannot delete active session root" in told.err
            done = delete_sessions(["root", "nobody"], path)
            assert [one.session_id for one in done.skipped_active] == ["root"]
            release(store, holder)
        assert store.call("lease", session_id="tip")
        for one in ("other", "tip"):
            with pytest.raises(SessionActive, match="turn lease"):
                delete_sessions(one, path)
        assert delete_sessions(["root", "other"], path).deleted == ("root",)
        release(store, "tip")
        assert delete_sessions("other", path).deleted == ("other",)
        assert_clean(store)
        assert "tip" in listing(store)


def test_a_lease_of_a_killed_process_holds_nothing(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    grown(path, LEASED)
    store = Store(path, LEASED).start()
    assert store.call("lease", session_id="root")
    with pytest.raises(SessionActive):
        delete_sessions("root", path)
    store.kill()
    assert delete_sessions("root", path).deleted == ("root",)


@pytest.mark.parametrize(("release_name", "mode"), [("0.19.0", "wal"), (LEASED, "wal"), (LEASED, "delete")])
def test_a_store_that_appends_beside_a_delete_loses_nothing(
    release_name: str, mode: str, tmp_path: Path
) -> None:
    path = tmp_path / "state.db"
    grown(path, release_name)
    with Store(path, release_name, journal_mode=mode) as store:
        store.call("create", session_id="busy")
        store.call("append", session_id="busy", content="first")
        with store.appending("busy", pause=0.002) as told:
            done = delete_sessions("root", path, now=time.time() + (LATER if release_name != LEASED else 0.0))
        assert done.deleted == ("root",)
        assert told["errors"] == []
        assert len(store.call("messages", session_id="busy")) == told["appended"] + 1
        assert_clean(store)


def test_a_session_written_to_lately_is_live_where_there_are_no_leases(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    grown(path, "0.19.0")
    with Store(path, "0.19.0") as store:
        with pytest.raises(SessionActive, match="open and written to"):
            delete_sessions("branch", path)
        store.call("end", session_id="branch", end_reason="user_exit")
        assert delete_sessions("branch", path).deleted == ("branch",)


def test_a_loop_is_refused_and_the_store_keeps_all(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    grown(path, "0.19.0")
    with Store(path, "0.19.0") as store:
        config = json.dumps({"_delegate_from": "grandchild"})
        store.execute(
            "UPDATE sessions SET parent_session_id = 'grandchild', model_config = ? WHERE id = 'root'", config
        )
    with pytest.raises(Refused, match="loop"):
        delete_sessions("root", path, now=time.time() + LATER)


def release(store: Store, session_id: str) -> None:
    """Give a lease back."""
    names = {"session_id": session_id, "holder": f"pid={store.pid}:turn=t1"}
    store.call("call", method="release_session_turn_lease", arguments=names)
