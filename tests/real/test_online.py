"""Repairs beside a running store: what is live is left alone, and nothing of either side is lost."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.real.damages import HARMS, facts
from tests.real.judge import assert_clean, listing, texts
from tests.real.lives import Healthy, copy_of
from tests.real.looks import AS_CORE, Ran, digest, look, run, wrong
from tests.real.store import Store

LEASED = "0.20.4.1"
"""The release whose stores have turn leases."""
ONLINE = ("--apply", "--yes", "--online")


@dataclass(frozen=True)
class Held:
    """A file with two wrong counters that a store of the newest release holds."""

    store: Store
    path: Path
    guarded: str
    idle: str

    def lease_rows(self) -> list[dict[str, object]]:
        tables = ("session_turn_leases", "compression_locks")
        return [row for table in tables for row in self.store.rows(f"SELECT * FROM {table} ORDER BY 1")]

    def counted(self, session_id: str) -> int:
        return int(self.store.call("session", session_id=session_id)["message_count"])

    def repair(self, *more: str) -> Ran:
        return run("repair", self.path, *ONLINE, *(more or AS_CORE))


@pytest.fixture
def held(tmp_path: Path) -> Iterator[Held]:
    healthy = copy_of(LEASED, tmp_path)
    ids = healthy.life.ids
    with Store(healthy.path, LEASED) as store:
        for role in ("tools", "chat"):
            store.execute("UPDATE sessions SET message_count = 99 WHERE id = ?", ids[role])
        yield Held(store, healthy.path, ids["tools"], ids["chat"])


@pytest.mark.parametrize("kind", ["lease", "lock"])
def test_what_a_running_agent_holds_is_skipped_and_mended_when_released(held: Held, kind: str) -> None:
    assert held.store.call(kind, session_id=held.guarded)
    rows = held.lease_rows()
    told = held.repair()
    assert told.code == 1, told.out + told.err
    assert (held.counted(held.guarded), held.counted(held.idle)) == (99, 4)
    assert wrong(look(held.path)) == (("HDB501", held.guarded, "warning"),)
    before = digest(held.path)
    told = held.repair()
    assert told.code == 1
    assert "1 live session left alone" in told.err
    assert digest(held.path) == before
    assert held.lease_rows() == rows
    release(held, kind)
    assert held.repair().code == 0
    assert held.counted(held.guarded) != 99
    assert_clean(held.store)


def test_a_live_target_is_said_before_who_holds_the_file(held: Held) -> None:
    held.store.call("lease", session_id=held.guarded)
    held.store.call("lease", session_id=held.idle)
    told = run("repair", held.path, "--apply", "--yes", *AS_CORE)
    assert told.code == 1
    assert "2 live sessions left alone" in told.err
    assert "is held by" not in told.err


@pytest.mark.parametrize("kind", ["lease", "lock"])
def test_a_lease_that_appears_after_the_plan_stops_all_of_it(held: Held, kind: str, tmp_path: Path) -> None:
    plan = tmp_path / "plan.json"
    assert run("repair", held.path, "--save-plan", plan, *AS_CORE).code == 1
    assert len(json.loads(plan.read_bytes())["steps"]) == 2
    held.store.call(kind, session_id=held.guarded)
    rows, before = held.lease_rows(), digest(held.path)
    told = held.repair("--plan", str(plan))
    assert told.code == 4, told.out + told.err
    assert "became live after the plan was made" in told.err
    assert digest(held.path) == before
    assert held.lease_rows() == rows
    release(held, kind)
    assert held.repair("--plan", str(plan)).code == 0
    assert wrong(look(held.path)) == ()


def test_a_lease_of_a_delegate_guards_the_idle_root_above_it(held: Held) -> None:
    held.store.call("delegate", parent=held.guarded, child="sub-agent", end=False)
    held.store.call("lease", session_id="sub-agent")
    told = held.repair()
    assert told.code == 1, told.out + told.err
    assert (held.counted(held.guarded), held.counted(held.idle)) == (99, 4)


def test_the_lease_of_a_killed_agent_stops_nothing_and_is_not_deleted(tmp_path: Path) -> None:
    healthy = copy_of(LEASED, tmp_path)
    session_id = healthy.life.ids["tools"]
    store = Store(healthy.path, LEASED).start()
    store.call("lease", session_id=session_id)
    store.execute("UPDATE sessions SET message_count = 99 WHERE id = ?", session_id)
    gone = store.pid
    store.kill()
    told = run("repair", healthy.path, "--apply", "--yes", *AS_CORE)
    assert told.code == 0, told.out + told.err
    with Store(healthy.path, LEASED) as again:
        holders = "SELECT count(*) AS n FROM session_turn_leases WHERE holder LIKE ?"
        assert again.rows(holders, f"pid={gone}:%") == [{"n": 1}]


@pytest.mark.parametrize(("release", "mode"), [("0.19.0", "wal"), (LEASED, "delete"), (LEASED, "wal")])
def test_repairs_and_an_undo_lose_nothing_while_the_store_appends(
    release: str, mode: str, tmp_path: Path
) -> None:
    healthy = copy_of(release, tmp_path)
    path, ids = healthy.path, healthy.life.ids
    with Store(path, release, journal_mode=mode) as store:
        said = texts(store, ids["tools"])
        shown = set(listing(store))
        assert store.call("journal_mode") == mode
        damage(healthy)
        store.call("create", session_id="busy")
        with store.appending("busy", pause=0.001) as told:
            adopted = run("repair", path, *ONLINE, "--select", "HDB201")
            recounted = run("repair", path, *ONLINE, "--select", "HDB501")
            undone = run("undo", path, *ONLINE)
            again = run("repair", path, *ONLINE, *AS_CORE)
        for ran in (adopted, recounted, undone, again):
            assert ran.code == 0, ran.out + ran.err
        assert told["errors"] == []
        assert told["appended"] > 0
        assert texts(store, "busy") == [f"beside {number}" for number in range(told["appended"])]
        assert store.call("session", session_id="busy")["message_count"] == told["appended"]
        assert texts(store, ids["tools"]) == said
        assert shown <= set(listing(store))
        assert_clean(store)
    assert wrong(look(path)) == ()


@pytest.mark.parametrize(("release", "mode"), [("0.19.0", "wal"), (LEASED, "delete")])
def test_a_purge_and_its_undo_lose_nothing_while_the_store_appends(
    release: str, mode: str, tmp_path: Path
) -> None:
    """Both change messages and search indexes, NUL-`json:` rows among them, between the store's own appends."""
    healthy = copy_of(release, tmp_path)
    path, ids = healthy.path, healthy.life.ids
    with Store(path, release, journal_mode=mode) as store:
        rows = "SELECT * FROM messages WHERE session_id = ? ORDER BY id"
        purged = store.rows(rows, ids["images"])
        store.execute("DELETE FROM sessions WHERE id = ?", ids["images"])
        store.call("create", session_id="busy")
        choice = ("--allow-lossy", "--choose", "orphaned-messages=purge", "--select", "HDB201")
        with store.appending("busy", pause=0.001) as told:
            purge = run("repair", path, *ONLINE, *choice)
            left = run("scan", path, "--select", "HDB201")
            undo = run("undo", path, *ONLINE)
        for ran in (purge, left, undo):
            assert ran.code == 0, ran.out + ran.err
        assert told["errors"] == []
        assert texts(store, "busy") == [f"beside {number}" for number in range(told["appended"])]
        assert store.rows(rows, ids["images"]) == purged
        found = store.call("integrity")
        assert found["integrity_check"] == ["ok"]
        assert set(found["search"].values()) <= {"ok"}
    assert wrong(look(path)) == (("HDB201", ids["images"], "error"),)


def damage(healthy: Healthy) -> None:
    """Sessions idle for days: one loses its row, two count wrongly."""
    known = facts(healthy)
    for name in ("orphaned_tools", "wrong_counter", "zero_counter"):
        harm = HARMS[name](known)
        assert harm is not None
        harm.do(healthy.path)


def release(held: Held, kind: str) -> None:
    """Give back what the store process holds."""
    if kind == "lock":
        holder = f"pid={held.store.pid}:tid=1:agent=a1:nonce=0badc0de"
        held.store.call("unlock", session_id=held.guarded, holder=holder)
        return
    arguments = {"session_id": held.guarded, "holder": f"pid={held.store.pid}:turn=t1"}
    held.store.call("call", method="release_session_turn_lease", arguments=arguments)
