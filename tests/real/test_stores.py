"""The driver itself: every release has the lives the other tests trust, and its own checks find nothing."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from tests.real.judge import assert_clean, assert_usable, listing, texts
from tests.real.lives import KINDS, UPGRADES, Healthy, copy_of, fresh, hidden_life
from tests.real.store import Store, StoreError
from tests.real.wheels import ASYNC_RELEASES, RELEASES, wheel

SINCE = {
    "_branched_from": "0.16.0",
    "_delegate_from": "0.17.0",
    "rewound": "0.16.0",
    "routing": "0.18.1",
    "compacted": "0.18.0",
    "usage": "0.19.0",
}
"""The first release whose stores hold rows of each kind."""
TOPICS = ("0.13.0", "0.16.0", "0.18.2", "0.19.0")
"""The releases that bind Telegram topics."""


STALE_MARKERS = """
SELECT child.id
FROM sessions AS child
WHERE json_extract(child.model_config, '$._branched_from') IS NOT NULL
  AND NOT EXISTS (
    SELECT 1 FROM sessions AS root WHERE root.id = json_extract(child.model_config, '$._branched_from')
  )
"""
USED_ROLES = ("current", "tools", "images", "branch", "fork", "compacted", "rewound", "imported")
DEADLINE = 30.0
"""Seconds a test waits for another process at most."""


def number(release: str) -> tuple[int, ...]:
    return tuple(int(part) for part in release.split("."))


def has(release: str, kind: str) -> bool:
    return number(release) >= number(SINCE[kind])


def count(store: Store, source: str, *bindings: Any) -> int:
    return int(store.rows(f"SELECT COUNT(*) AS n FROM {source}", *bindings)[0]["n"])


@pytest.fixture(params=KINDS)
def healthy(request: pytest.FixtureRequest, tmp_path: Path) -> Healthy:
    return copy_of(request.param, tmp_path / "home")


@pytest.fixture(params=RELEASES)
def release(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_a_life_leaves_a_file_its_own_engine_finds_clean(healthy: Healthy) -> None:
    with Store(healthy.path, healthy.release) as store:
        assert_clean(store)


def test_the_sessions_of_every_life_are_those_it_says(healthy: Healthy) -> None:
    with Store(healthy.path, healthy.release) as store:
        there = {row["id"] for row in store.rows("SELECT id FROM sessions")}
    expected = {session_id for life in healthy.lives for session_id in life.kept().values()}
    assert there == expected


def test_two_lives_of_a_release_differ_in_times_alone(release: str, tmp_path: Path) -> None:
    copy, again = copy_of(release, tmp_path / "copy"), fresh(tmp_path / "again" / "state.db", release)
    wanted = (
        "SELECT id, parent_session_id, source, title, model_config, end_reason FROM sessions ORDER BY id",
        "SELECT id, session_id, role, content, tool_calls FROM messages ORDER BY id",
    )
    with Store(copy.path, release) as one, Store(again.path, release) as other:
        for statement in wanted:
            assert one.rows(statement) == other.rows(statement)
    assert copy.life.ids == again.life.ids


def test_branches_and_delegates_are_there_with_the_markers_of_their_release(
    release: str, tmp_path: Path
) -> None:
    healthy = copy_of(release, tmp_path)
    ids = healthy.life.ids
    with Store(healthy.path, release) as store:
        marked = "sessions WHERE json_extract(model_config, ?) = parent_session_id"
        branches = count(store, marked, "$._branched_from")
        delegates = count(store, marked, "$._delegate_from")
        parent = store.call("session", session_id=ids["branch"])["parent_session_id"]
        stale = store.rows(STALE_MARKERS)
        assert parent == ids["root"]
        assert (branches >= 3) == has(release, "_branched_from")
        assert (delegates >= 3) == has(release, "_delegate_from")
        assert bool(stale) == has(release, "_branched_from")
        assert ids["branch"] in listing(store)


def test_messages_of_every_state_are_there(release: str, tmp_path: Path) -> None:
    healthy = copy_of(release, tmp_path)
    with Store(healthy.path, release) as store:
        assert count(store, "messages WHERE substr(CAST(content AS BLOB), 1, 6) = x'006A736F6E3A'") >= 4
        assert count(store, "messages WHERE tool_calls IS NOT NULL") >= 3
        assert count(store, "messages WHERE role = 'tool' AND length(content) > 8192") >= 1
        if has(release, "rewound"):
            assert count(store, "messages WHERE active = 0") >= 6
            assert count(store, "sessions WHERE rewind_count > 0") >= 3
        if has(release, "compacted"):
            assert count(store, "messages WHERE active = 0 AND compacted = 1") >= 10
            assert count(store, "messages WHERE active = 0 AND compacted = 0") >= 6
            assert count(store, "messages WHERE active = 1 AND compacted = 1") >= 1


def test_compression_chains_show_as_their_tip(release: str, tmp_path: Path) -> None:
    healthy = copy_of(release, tmp_path)
    ids = healthy.life.ids
    with Store(healthy.path, release) as store:
        shown = listing(store)
        assert ids["rotated-3"] in shown
        assert not {ids["rotated"], ids["rotated-2"]} & set(shown)
        assert store.call("session", session_id=ids["rotated-2"])["parent_session_id"] == ids["rotated"]
        ends = {
            store.call("session", session_id=ids[role])["end_reason"] for role in ("rotated", "rotated-2")
        }
        assert ends == {"compression"}
        assert healthy.life.notes["finalized"] == 1


def test_the_gateways_rows_are_there(release: str, tmp_path: Path) -> None:
    healthy = copy_of(release, tmp_path)
    with Store(healthy.path, release) as store:
        tables = {row["name"] for row in store.rows("SELECT name FROM sqlite_master WHERE type = 'table'")}
        assert count(store, "state_meta WHERE key GLOB 'goal:*'") >= 2
        assert count(store, "sessions WHERE source = 'unknown'") == 1
        assert count(store, "sessions WHERE input_tokens > 0") >= 3
        assert ("telegram_dm_topic_bindings" in tables) == (release in TOPICS)
        if release in TOPICS:
            assert count(store, "telegram_dm_topic_bindings") == 2
        if has(release, "routing") and release not in ASYNC_RELEASES:
            assert count(store, "gateway_routing") == 3
        if has(release, "usage"):
            assert count(store, "session_model_usage WHERE task = ''") >= 2
            assert count(store, "session_model_usage WHERE task <> ''") == 2
        if "compression_locks" in tables:
            assert count(store, "compression_locks WHERE expires_at < unixepoch()") >= 1
        if "session_turn_leases" in tables:
            assert count(store, "session_turn_leases WHERE expires_at < unixepoch()") == 1
        if "system_prompts" in tables:
            assert count(store, "system_prompts") >= 1
            assert count(store, "sessions WHERE system_prompt_hash IS NOT NULL") >= 2


@pytest.mark.parametrize("kind", UPGRADES)
def test_an_upgraded_file_holds_a_life_of_every_release_and_its_old_search_index(
    kind: str, tmp_path: Path
) -> None:
    healthy = copy_of(kind, tmp_path)
    assert [life.release for life in healthy.lives] == list(UPGRADES[kind])
    with Store(healthy.path, healthy.release) as store:
        shown = set(listing(store))
        for life in healthy.lives:
            assert life.ids["current"] in shown
            assert life.ids["rotated-4" if "rotated-4" in life.ids else "rotated-3"] in shown
        text = store.rows("SELECT sql FROM sqlite_master WHERE name = 'messages_fts'")[0]["sql"]
        assert "tool_name" not in text


def test_the_judge_finds_healthy_sessions_usable(healthy: Healthy) -> None:
    ids = healthy.life.ids
    with Store(healthy.path, healthy.release) as store:
        for role in USED_ROLES:
            if role in ids:
                assert_usable(store, ids[role], texts(store, ids[role]), listing(store))


@pytest.mark.parametrize("kind", UPGRADES)
def test_an_upgrade_over_0_17_hides_an_untitled_chat_with_tool_rows(kind: str, tmp_path: Path) -> None:
    healthy = copy_of(kind, tmp_path)
    hidden = [life.ids["untitled"] for life in healthy.lives if number(life.release) < number("0.17.0")]
    marked = "SELECT id FROM sessions WHERE json_extract(model_config, '$._delegate_from') = '__orphaned__'"
    with Store(healthy.path, healthy.release) as store:
        assert {row["id"] for row in store.rows(marked)} >= set(hidden)
        assert not set(hidden) & set(listing(store))


def test_the_judge_finds_damage(release: str, tmp_path: Path) -> None:
    healthy = copy_of(release, tmp_path)
    session_id = healthy.life.ids["current"]
    with Store(healthy.path, release) as store:
        said = texts(store, session_id)
        assert store.execute("DELETE FROM sessions WHERE id = ?", session_id) == 1
        with pytest.raises(AssertionError):
            assert_clean(store)
        with pytest.raises(AssertionError):
            assert_usable(store, session_id, said)
        with pytest.raises(StoreError) as refused:
            store.call("append", session_id=session_id, content="lost")
        assert refused.value.kind == "IntegrityError"


def test_hidden_branches_are_hidden(release: str, tmp_path: Path) -> None:
    with Store(tmp_path / "state.db", release) as store:
        life = hidden_life(store)
        shown = listing(store)
        assert life.ids["hidden-fork"] not in shown
        assert (life.ids["live-branch"] in shown) == has(release, "_branched_from")


def test_a_verb_that_fails_is_an_answer_and_the_store_lives_on(release: str, tmp_path: Path) -> None:
    with Store(tmp_path / "state.db", release) as store:
        with pytest.raises(StoreError, match="KeyError"):
            store.call("no such verb")
        with pytest.raises(StoreError, match="OperationalError"):
            store.rows("SELECT nothing FROM nowhere")
        with pytest.raises(StoreError, match="Unsupported"):
            store.call("call", method="no_such_method")
        assert store.call("ping")["release"] == release


def test_a_file_the_release_cannot_open_is_an_answer(release: str, tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    path.write_bytes(b"this is no database, but a text as long as a header needs to be" * 20)
    with pytest.raises(StoreError) as refused:
        Store(path, release).start()
    assert refused.value.kind.endswith("Error")


def test_a_process_that_dies_is_an_error_with_its_last_words(tmp_path: Path) -> None:
    store = Store(tmp_path / "state.db", RELEASES[0]).start()
    os.kill(store.pid, signal.SIGKILL)
    with pytest.raises(RuntimeError, match="ended with -9"):
        store.call("ping")


def test_a_killed_process_leaves_what_it_wrote(release: str, tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    first = Store(path, release, journal_mode="wal").start()
    first.call("create", session_id="a")
    first.call("append", session_id="a", content="written before the end")
    first.kill()
    assert path.with_name("state.db-wal").stat().st_size > 0
    with Store(path, release) as store:
        assert texts(store, "a") == ["written before the end"]


def test_a_store_appends_while_the_test_goes_on(release: str, tmp_path: Path) -> None:
    with Store(tmp_path / "state.db", release) as store:
        store.call("create", session_id="a")
        with store.appending("a") as told:
            wait_for_rows(tmp_path / "state.db", release)
        assert told["errors"] == []
        assert told["appended"] == len(store.call("messages", session_id="a")) > 0


def wait_for_rows(path: Path, release: str) -> None:
    """Return once a second process of the same release sees rows of the appending one."""
    until = time.monotonic() + DEADLINE
    with Store(path, release) as beside:
        while not beside.call("messages", session_id="a"):
            assert time.monotonic() < until, "the appending store wrote nothing"


def test_the_clock_of_a_store_can_be_set(release: str, tmp_path: Path) -> None:
    with Store(tmp_path / "state.db", release, clock={"at": 1_600_000_000.0, "step": 1.0}) as store:
        store.call("create", session_id="old")
        assert 1_600_000_000 < store.call("session", session_id="old")["started_at"] < 1_600_001_000
        store.call("clock", offset=-86400.0)
        now = store.call("ping")["now"]
        store.call("clock")
        assert store.call("ping")["now"] - now > 86000


def test_a_file_in_wal_mode_stays_so_and_a_fresh_one_is_as_the_release_wants(
    release: str, tmp_path: Path
) -> None:
    with Store(tmp_path / "fresh" / "state.db", release) as store:
        fresh = store.call("journal_mode")
        old_engine = number(store.call("ping")["sqlite"]) < (3, 51, 3)
    with Store(tmp_path / "wal" / "state.db", release, journal_mode="wal") as store:
        chosen = store.call("journal_mode")
    assert chosen == "wal"
    assert fresh == ("delete" if release in ASYNC_RELEASES and old_engine else "wal")


def test_a_wheel_that_pip_cannot_find_is_an_error_with_pips_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HERMES_DBTOOLS_WHEELS", str(tmp_path))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    with pytest.raises(RuntimeError, match=r"no wheel of hermes-agent 0\.0\.0"):
        wheel("0.0.0")
    assert [path.name for path in tmp_path.iterdir()] == [".lock"]
