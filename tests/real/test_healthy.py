"""Files of released stores that nothing has damaged: no scan accuses them, and every note on them is true."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.real.lives import KINDS, Healthy, copy_of, hidden_life
from tests.real.looks import APART, all_findings, blind, look, notes, run, wrong
from tests.real.store import Store
from tests.real.wheels import RELEASES

JUDGED = {
    ("HDB207", "missing-session"): ("deleted-root",),
    ("HDB208", "goal"): ("deleted-root",),
    ("HDB301", "stale-branch-marker"): ("branch-of-deleted", "branch-of-pruned", "imported-alone"),
    ("HDB303", ""): ("delegate-of-pruned",),
    ("HDB312", ""): ("branch-of-pruned", "old-archived", "old-open", "tools", "untitled", "images"),
    ("HDB313", ""): ("empty-ended",),
    ("HDB314", "ghost"): ("accounted",),
    ("HDB316", "delegate-marker"): ("rewound", "untitled"),
    ("HDB405", "stuck-handoff"): ("handoff-pending",),
    ("HDB903", "expired"): ("measured",),
}
"""Every note on the lives by code, kind and role, each true: what a delete of up to 0.19 leaves (a route), or any
release's (a goal, the marker of a branch whose root was deleted, pruned or not imported, a sub-agent of a pruned
parent), sessions open and idle for a month, an empty one that 0.13 has no sweep for, accounting's ghost, chats that an
upgrade hid, a hand-over that nobody took, and a lock and a lease that ran out."""


@pytest.fixture(params=KINDS)
def healthy(request: pytest.FixtureRequest, tmp_path: Path) -> Healthy:
    return copy_of(request.param, tmp_path / "home")


@pytest.fixture(params=RELEASES)
def release(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def number(release: str) -> tuple[int, ...]:
    return tuple(int(part) for part in release.split("."))


def test_no_file_is_accused_and_every_check_looks(healthy: Healthy) -> None:
    report = look(healthy.path, select=())
    assert [row for row in wrong(report) if row[0] not in APART] == []
    assert blind(report) == {}


def test_only_an_upgrade_hides_chats_and_only_those_of_releases_before_it(healthy: Healthy) -> None:
    hidden = {
        life.ids[role]
        for life in healthy.lives
        if number(life.release) < (0, 17) <= number(healthy.release)
        for role in ("untitled", "rewound")
        if role in life.ids
    }
    found = {key for code, key, _severity in wrong(look(healthy.path, select=())) if code in APART}
    assert found <= hidden
    assert bool(found) == bool(hidden)


def test_every_note_on_a_life_is_judged_and_true(healthy: Healthy) -> None:
    """A class that comes later and says something of these files is judged here first."""
    roles = {session_id: role for life in healthy.lives for role, session_id in life.ids.items()}
    found = {
        (code, kind, roles[re.split("[ :]", key)[-1]])
        for code, kind, key in notes(look(healthy.path, select=()))
    }
    assert found - {(code, kind, role) for (code, kind), some in JUDGED.items() for role in some} == set()


def test_a_branch_of_a_root_that_its_store_deleted_is_a_note(healthy: Healthy) -> None:
    stale = {
        f"_branched_from:{life.ids[role]}"
        for life in healthy.lives
        if number(life.release) >= (0, 16)
        for role in JUDGED["HDB301", "stale-branch-marker"]
        if role in life.kept()
    }
    assert {key for _code, _kind, key in notes(look(healthy.path))} == stale


def test_two_scans_print_the_same_bytes(healthy: Healthy) -> None:
    first, again = (run("scan", healthy.path, "--format", "json") for _ in range(2))
    assert first.out == again.out
    assert first.code == again.code == first.document()["exit_code"]


def test_branches_that_a_release_hides_are_said_to_be_hidden_and_nothing_else(
    release: str, tmp_path: Path
) -> None:
    """True: each holds a copy of its root's messages and no list shows it. The default is to leave it."""
    with Store(tmp_path / "state.db", release) as store:
        hidden_life(store)
    report = look(tmp_path / "state.db", select=())
    assert blind(report) == {}
    assert {code for code, _key, _severity in wrong(report)} <= {"HDB302"}
    assert {key for _code, key, _severity in wrong(report)} <= {"hidden-fork", "live-branch"}


def test_a_root_whose_branch_its_user_deleted_is_a_note(release: str, tmp_path: Path) -> None:
    """True: it stays ended as branched. A note, for nothing uses it and every release leaves it so."""
    with Store(tmp_path / "state.db", release) as store:
        store.call("create", session_id="root")
        store.call("append", session_id="root", content="hello")
        store.call("branch", parent="root", child="branch")
        store.call("delete", session_id="branch")
    report = look(tmp_path / "state.db")
    assert wrong(report) == ()
    assert ("HDB301", "branchless-root", "branchless-root:root") in notes(report)


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
    assert wrong(look(tmp_path / "state.db")) == (("HDB501", "talk", "warning"),)


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
    assert all_findings(look(tmp_path / "state.db", select=("HDB701",))) == []
    picture.unlink()
    paste.unlink()
    report = look(tmp_path / "state.db", select=("HDB701",))
    assert wrong(report) == ()
    assert notes(report) == {("HDB701", "swept", "swept caches"), ("HDB701", "mention", "mentions talk")}
