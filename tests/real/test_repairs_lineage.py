"""Lineages of released stores, broken by the stores themselves or beside them: repaired, their release shows them again."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.real.damages import shell
from tests.real.judge import assert_clean, assert_deletes, assert_usable, listing, texts
from tests.real.lives import hidden_life
from tests.real.looks import all_findings, look, run
from tests.real.store import Store
from tests.real.wheels import RELEASES, SYNC_RELEASES

MARKED = tuple(release for release in RELEASES if release != "0.13.0")
"""Releases that look at branch markers."""
SUBAGENTS = tuple(release for release in MARKED if release != "0.16.0")
"""Releases that mark sub-agents."""
MINE = ("HDB302", "HDB303", "HDB304", "HDB306", "HDB307", "HDB308", "HDB309")
SELECT = tuple(word for code in MINE for word in ("--select", code))
HIDDEN = {"0.13.0": ("hidden-fork", "live-branch")}
DAYS = 86400.0


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state.db"


def found(path: Path) -> list[tuple[str, str, str, str]]:
    """Code, key, severity and kind of what the lineage classes of this file find."""
    return [(one.code, one.key, one.severity.word, one.kind) for one in all_findings(look(path, select=MINE))]


def mend(path: Path, answer: str = "", *, lossy: bool = False) -> None:
    """Apply one answer of one class, or the defaults, from the command line."""
    words = ["--choose", answer] if answer else []
    told = run("repair", path, *SELECT, "--apply", "--yes", *words, *(["--allow-lossy"] if lossy else []))
    assert told.code == 0, told.err


def chat(store: Store, session_id: str, turns: int = 2, title: str | None = None, **more: object) -> None:
    """A session with turns of both sides."""
    store.call("create", session_id=session_id, title=title, **more)
    for turn in range(turns):
        store.call("append", session_id=session_id, content=f"{session_id} asks {turn}")
        store.call("append", session_id=session_id, role="assistant", content=f"{session_id} is told {turn}")


@pytest.mark.parametrize("release", RELEASES)
def test_a_marked_branch_is_listed_and_outlives_its_root(release: str, path: Path) -> None:
    hidden = HIDDEN.get(release, ("hidden-fork",))
    with Store(path, release) as store:
        hidden_life(store)
        before = set(listing(store))
        said = texts(store, "hidden-fork")
    assert not before & set(hidden)
    assert [one[:3] for one in found(path)] == [("HDB302", role, "warning") for role in hidden]
    mend(path, "unmarked-branches=mark")
    assert found(path) == []
    with Store(path, SYNC_RELEASES[-1] if release == "0.13.0" else release) as store:
        assert before | set(hidden) <= set(listing(store))
        store.call("delete", session_id="hiding-root")
        assert_usable(store, "hidden-fork", said, before - {"hiding-root"}, word="told" if not said else None)


@pytest.mark.parametrize("release", SUBAGENTS)
def test_a_branch_that_an_upgrade_took_for_a_sub_agent_is_given_back(release: str, path: Path) -> None:
    with Store(path, "0.13.0") as store:
        hidden_life(store)
        said = texts(store, "live-branch")
    with Store(path, release) as store:
        assert not {"hidden-fork", "live-branch"} & set(listing(store))
    assert found(path) == [
        ("HDB302", "hidden-fork", "warning", "marked-as-delegate"),
        ("HDB302", "live-branch", "warning", "marked-as-delegate"),
    ]
    mend(path, "unmarked-branches=mark")
    assert found(path) == []
    with Store(path, release) as store:
        assert {"hidden-fork", "live-branch"} <= set(listing(store))
        store.call("delete", session_id="live-root")
        assert texts(store, "live-branch") == said
        assert_clean(store)


@pytest.mark.parametrize("release", SUBAGENTS)
def test_a_sub_agent_that_a_prune_left_is_listed_or_purged(release: str, path: Path) -> None:
    with Store(path, release) as store:
        now = store.call("clock")
        store.call("clock", at=now - 200 * DAYS)
        chat(store, "pruned")
        store.call("end", session_id="pruned", end_reason="cli_close")
        store.call("clock")
        chat(store, "stays")
        store.call("delegate", parent="pruned", child="left")
        store.call("delegate", parent="left", child="left-too")
        store.call("prune", older_than_days=90)
        shown = listing(store)
        assert "left" not in shown
        assert not store.rows("SELECT id FROM sessions WHERE id = 'pruned'")
    assert found(path) == [("HDB303", "left", "note", "")]
    mend(path, "orphaned-delegates=strip")
    with Store(path, release) as store:
        assert {*shown, "left"} == set(listing(store))
        assert texts(store, "left") == ["look it up", "found"]
    assert run("undo", path, "--apply", "--yes").code == 0
    mend(path, "orphaned-delegates=purge", lossy=True)
    assert found(path) == []
    with Store(path, release) as store:
        assert listing(store) == shown
        assert store.rows("SELECT session_id FROM messages WHERE session_id LIKE 'left%'") == []
        assert_clean(store)
        assert_usable(store, "stays", texts(store, "stays"))


@pytest.mark.parametrize("release", SUBAGENTS)
def test_a_branch_that_keeps_its_own_marker_is_listed_and_not_taken_along(release: str, path: Path) -> None:
    with Store(path, release) as store:
        chat(store, "root")
        chat(store, "delegator")
        store.call("branch", parent="root", child="branch", form="tui")
        said = texts(store, "branch")
    both = """{"_branched_from": "root", "_delegate_from": "delegator"}"""
    shell(path, [("UPDATE sessions SET model_config = ? WHERE id = 'branch'", (both,))])
    with Store(path, release) as store:
        assert "branch" not in listing(store)
    assert found(path) == [("HDB304", "branch", "warning", "two-markers")]
    mend(path, "conflicting-markers=keep")
    assert found(path) == []
    with Store(path, release) as store:
        store.call("delete", session_id="delegator")
        assert_usable(store, "branch", said, ["root"])


def test_two_markers_that_a_reopened_root_leaves_are_no_conflict(path: Path) -> None:
    key = "agent:main:telegram:dm:7"
    with Store(path, "0.20.4.1") as store:
        chat(store, "root", source="telegram", session_key=key)
        config = {"_branched_from": "root"}
        store.call(
            "create",
            session_id="branch",
            source="telegram",
            parent="root",
            session_key=key,
            model_config=config,
        )
        store.call("end", session_id="root", end_reason="session_switch")
        store.call("reopen", session_id="root")
        (row,) = store.rows("SELECT model_config FROM sessions WHERE id = 'branch'")
        assert "_branched_from" in row["model_config"]
        assert "_reset_from" in row["model_config"]
        assert "branch" in listing(store)
    assert found(path) == []


@pytest.mark.parametrize("release", RELEASES)
def test_a_reopened_session_is_written_to_and_compressed_again(release: str, path: Path) -> None:
    with Store(path, release) as store:
        chat(store, "long", turns=4)
        store.call("compress", session_id="long", child="tip")
        store.call("delete", session_id="tip")
        said = texts(store, "long")
        assert found(path) == [], "its continuation may be on the way while the file is held"
    assert found(path) == [("HDB306", "long", "note", "unused")]
    mend(path, "closed-without-continuation=reopen")
    assert found(path) == []
    with Store(path, release) as store:
        assert_usable(store, "long", said, delete=False)
        row = store.call("session", session_id="long")
        assert (row["ended_at"], row["end_reason"]) == (None, None)
        store.call("compress", session_id="long", child="tip-again")
        if release in SUBAGENTS:  # older ones resume a closed session itself while it has messages
            assert store.call("resume", session_id="long")["session_id"] == "tip-again"
        assert listing(store) == ["tip-again"]
        assert_clean(store)
    assert found(path) == []


@pytest.mark.parametrize("release", RELEASES)
def test_a_session_compressed_twice_has_two_ends(release: str, path: Path) -> None:
    with Store(path, release) as store:
        chat(store, "long", turns=4)
        store.call("delegate", parent="long", child="helper")
        store.call("compress", session_id="long", child="tip")
        assert found(path) == []
        store.call("reopen", session_id="long")
        store.call("append", session_id="long", content="the old end goes on")
        store.call("compress", session_id="long", child="other-tip")
    assert found(path) == [("HDB307", "long", "note", "")]
    (finding,) = all_findings(look(path, select=("HDB307",)))
    assert sorted(one["id"] for one in finding.evidence["sessions"]) == ["other-tip", "tip"]  # type: ignore[attr-defined]


@pytest.mark.parametrize("release", MARKED)
def test_duplicate_branches_go_and_the_newest_is_used(release: str, path: Path) -> None:
    with Store(path, release) as store:
        chat(store, "root", title="The root")
        chat(store, "other", turns=8)
        for number in range(4):
            names = {"parent": "root", "model_config": {"_branched_from": "root"}}
            store.call("create", session_id=f"burst-{number}", source="tui", **names)
            for row in store.call("conversation", session_id="root"):
                store.call("append", session_id=f"burst-{number}", role=row["role"], content=row["content"])
        said = texts(store, "root")
    assert found(path) == [("HDB308", "burst-3", "note", "")]
    assert run("repair", path, *SELECT, "--apply", "--yes").code == 0
    assert found(path) == [("HDB308", "burst-3", "note", "")], "copies are dropped with leave alone"
    mend(path, lossy=True)
    assert found(path) == []
    with Store(path, release) as store:
        assert set(listing(store)) == {"root", "other", "burst-3"}
        assert_usable(store, "burst-3", said, ["root"])
        assert_deletes(store, "root", [])


@pytest.mark.parametrize("release", RELEASES)
def test_a_deleted_middle_cuts_a_lineage(release: str, path: Path) -> None:
    with Store(path, release) as store:
        chat(store, "first", turns=4, title="A story")
        store.call("compress", session_id="first", child="second")
        store.call("append", session_id="second", content="and more")
        store.call("compress", session_id="second", child="third")
        assert found(path) == []
        store.call("delete", session_id="second")
    assert found(path) == [("HDB306", "first", "note", "unused"), ("HDB309", "third", "note", "")]
