"""Files of released stores that nothing has damaged: no scan accuses them, and every note on them is true."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.real.lives import KINDS, Healthy, copy_of, hidden_life
from tests.real.looks import all_findings, blind, look, notes, run, wrong
from tests.real.store import Store
from tests.real.wheels import RELEASES

STALE = ("branch-of-deleted", "branch-of-pruned", "imported-alone")
"""Branches whose root the store itself deleted, pruned, or did not import: only their marker still names it."""


@pytest.fixture(params=KINDS)
def healthy(request: pytest.FixtureRequest, tmp_path: Path) -> Healthy:
    return copy_of(request.param, tmp_path / "home")


@pytest.fixture(params=RELEASES)
def release(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def number(release: str) -> tuple[int, ...]:
    return tuple(int(part) for part in release.split("."))


def test_no_file_is_accused_and_every_check_looks(healthy: Healthy) -> None:
    report = look(healthy.path)
    assert wrong(report) == ()
    assert blind(report) == {}


def test_the_notes_are_the_markers_that_the_stores_own_deletes_leave(healthy: Healthy) -> None:
    """Each is true and harmless: the branch is listed, its root is gone, and upstream never takes a marker out."""
    stale = {
        ("HDB301", "stale-branch-marker", f"_branched_from:{life.ids[role]}")
        for life in healthy.lives
        if number(life.release) >= (0, 16)
        for role in STALE
        if role in life.kept()
    }
    assert notes(look(healthy.path)) == stale


def test_two_scans_print_the_same_bytes(healthy: Healthy) -> None:
    first, again = (run("scan", healthy.path, "--format", "json") for _ in range(2))
    assert first.code == again.code == 0, first.err
    assert first.out == again.out
    assert first.document()["exit_code"] == 0


def test_branches_that_a_release_hides_are_no_damage(release: str, tmp_path: Path) -> None:
    with Store(tmp_path / "state.db", release) as store:
        hidden_life(store)
    report = look(tmp_path / "state.db")
    assert (wrong(report), blind(report), notes(report)) == ((), {}, set())


def test_a_root_whose_branch_its_user_deleted_is_a_note(release: str, tmp_path: Path) -> None:
    """True: it stays ended as branched. A note, for nothing uses it and every release leaves it so."""
    with Store(tmp_path / "state.db", release) as store:
        store.call("create", session_id="root")
        store.call("append", session_id="root", content="hello")
        store.call("branch", parent="root", child="branch")
        store.call("delete", session_id="branch")
    report = look(tmp_path / "state.db")
    assert wrong(report) == ()
    assert notes(report) == {("HDB301", "branchless-root", "branchless-root:root")}


def test_a_file_that_its_idle_store_holds_is_looked_at(release: str, tmp_path: Path) -> None:
    healthy = copy_of(release, tmp_path)
    with Store(healthy.path, release) as store:
        store.call("append", session_id=healthy.life.ids["current"], content="in the log")
        report = look(healthy.path)
        assert [holder.pid for holder in report.holders] == [store.pid]
    assert (wrong(report), blind(report)) == ((), {})


def test_a_restore_below_archived_rows_leaves_a_counter_that_is_not_judged(tmp_path: Path) -> None:
    with Store(tmp_path / "state.db", "0.20.4.1") as store:
        first = talk(store)
        store.call("compress", session_id="talk")
        store.call("restore", session_id="talk", message_id=first)
        ((counted, active),) = counters(store)
        assert counted < active
    assert wrong(look(tmp_path / "state.db")) == ()


def test_a_restore_of_rows_that_a_replacement_dropped_is_a_true_drift(tmp_path: Path) -> None:
    """No caller in the release does this, nothing in the rows tells it from drift, and the count is wrong."""
    with Store(tmp_path / "state.db", "0.20.4.1") as store:
        first = talk(store)
        rows = store.call("conversation", session_id="talk")
        store.call("replace", session_id="talk", messages=rows[:2], archive_dropped=True)
        store.call("restore", session_id="talk", message_id=first)
        assert counters(store) == [(2, 8)]
    (finding,) = all_findings(look(tmp_path / "state.db"))
    assert (finding.code, finding.key, finding.severity.word) == ("HDB501", "talk", "warning")


def talk(store: Store) -> int:
    """Six messages of a session `talk`; returns the id of the first."""
    store.call("create", session_id="talk")
    first = int(store.call("append", session_id="talk", content="question 0"))
    store.call("append", session_id="talk", role="assistant", content="answer 0")
    for turn in range(1, 3):
        store.call("append", session_id="talk", content=f"question {turn}")
        store.call("append", session_id="talk", role="assistant", content=f"answer {turn}")
    return first


def counters(store: Store) -> list[tuple[int, int]]:
    """For each session what it counts and how many active messages it has."""
    rows = store.rows(
        "SELECT s.message_count AS counted, count(m.id) AS active FROM sessions AS s"
        " LEFT JOIN messages AS m ON m.session_id = s.id AND m.active = 1 GROUP BY s.id ORDER BY s.id"
    )
    return [(row["counted"], row["active"]) for row in rows]


def test_files_that_messages_mention_are_looked_for_and_never_more_than_a_note(
    release: str, tmp_path: Path
) -> None:
    """An agent's own words: an image in a cache that is swept by age, a pasted text that is kept."""
    picture, paste = (
        tmp_path / "cache" / "images" / "a.png",
        tmp_path / "composer-pastes" / "pasted_content_1.txt",
    )
    for path in (picture, paste):
        path.parent.mkdir(parents=True)
        path.write_bytes(b"there")
    part = {"type": "text", "text": f"[Image attached at: {picture}]"}
    with Store(tmp_path / "state.db", release) as store:
        store.call("create", session_id="talk")
        store.call("append", session_id="talk", content=f"look [Image attached at: {picture}]")
        store.call("append", session_id="talk", content=[part])
        store.call("append", session_id="talk", content=f"read @file:{paste} please")
    assert all_findings(look(tmp_path / "state.db")) == []
    picture.unlink()
    paste.unlink()
    report = look(tmp_path / "state.db")
    assert wrong(report) == ()
    assert notes(report) == {("HDB701", "swept", "swept caches"), ("HDB701", "mention", "mentions talk")}
