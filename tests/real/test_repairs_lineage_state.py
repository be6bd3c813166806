"""Ends, places and identities of sessions in released stores, broken beside them: repaired, their release shows them again."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tests.real.damages import Sql, shell
from tests.real.judge import assert_clean, assert_usable, listing, texts
from tests.real.lives import copy_of
from tests.real.looks import all_findings, look, run
from tests.real.store import Store
from tests.real.wheels import RELEASES

SUBAGENTS = ("0.18.2", "0.19.0", "0.20.4.1")
"""Releases that mark sub-agents, and delete them with their parent."""
ROUTED = ("0.18.2", "0.19.0")
"""Releases whose store keeps the routes of chats."""
FOLDERS = tuple(release for release in RELEASES if release != "0.13.0")
"""Releases whose sessions name a working directory."""
MINE = ("HDB310", "HDB311", "HDB312", "HDB313", "HDB314", "HDB315", "HDB317")
SELECT = tuple(word for code in MINE for word in ("--select", code))
DAY = 86400.0


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state.db"


def found(path: Path) -> list[tuple[str, str, str, str]]:
    """Code, key, severity and kind of what these classes find."""
    return [(one.code, one.key, one.severity.word, one.kind) for one in all_findings(look(path, select=MINE))]


def mend(path: Path, answer: str = "", *, lossy: bool = False) -> None:
    """Apply one answer of one class from the command line."""
    words = ["--choose", answer] if answer else []
    told = run("repair", path, *SELECT, "--apply", "--yes", *words, *(["--allow-lossy"] if lossy else []))
    assert told.code in (0, 1), told.err
    assert "applied" in told.out, told.out


def harm(path: Path, *statements: Sql) -> None:
    """Change rows beside the store, foreign keys off; each statement must change one."""
    assert 0 not in shell(path, statements)


def chat(store: Store, session_id: str, turns: int = 2, **more: object) -> None:
    """A session with turns of both sides."""
    store.call("create", session_id=session_id, **more)
    for turn in range(turns):
        store.call("append", session_id=session_id, content=f"{session_id} asks {turn}")
        store.call("append", session_id=session_id, role="assistant", content=f"{session_id} is told {turn}")


@pytest.mark.parametrize("release", RELEASES)
def test_the_branch_of_a_half_ended_root_is_listed_again(release: str, path: Path) -> None:
    with Store(path, release) as store:
        chat(store, "root")
        store.call("fork", parent="root", child="fork")
        before = set(listing(store))
    harm(path, ("UPDATE sessions SET ended_at = NULL WHERE id = 'root'", ()))
    with Store(path, release) as store:
        assert "fork" not in listing(store)
    assert found(path) == [("HDB310", "root", "warning", "reason-without-end")]
    mend(path, "inconsistent-end-state=complete")
    assert found(path) == []
    with Store(path, release) as store:
        assert set(listing(store)) == before
        assert_usable(
            store, "fork", ["root asks 0", "root is told 0", "root asks 1", "root is told 1"], before
        )


@pytest.mark.parametrize("release", RELEASES)
def test_a_chat_that_was_reaped_alive_is_open_again_and_escapes_the_prune(release: str, path: Path) -> None:
    with Store(path, release, clock={"at": time.time() - 100 * DAY, "step": 0.5}) as store:
        chat(store, "chat")
        store.call("end", session_id="chat", end_reason="ws_orphan_reap")
        store.call("clock")
        store.call("append", session_id="chat", content="still here")
    assert found(path) == [("HDB311", "chat", "warning", "later-messages")]
    mend(path, "activity-after-end=reopen")
    assert found(path) == []
    with Store(path, release) as store:
        row = store.call("session", session_id="chat")
        assert (row["ended_at"], row["end_reason"]) == (None, None)
        store.call("prune", older_than_days=90)
        said = ["chat asks 0", "chat is told 0", "chat asks 1", "chat is told 1", "still here"]
        assert_usable(store, "chat", said, {"chat"})


@pytest.mark.parametrize("release", ROUTED)
def test_a_route_leads_to_an_open_session_again(release: str, path: Path) -> None:
    with Store(path, release) as store:
        chat(store, "chat", source="telegram")
        store.call("route", session_key="agent:main:telegram:dm:9", session_id="chat")
        store.call("end", session_id="chat", end_reason="agent_close")
    assert found(path) == [("HDB311", "chat", "warning", "routed")]
    mend(path, "activity-after-end=reopen")
    assert found(path) == []
    with Store(path, release) as store:
        assert store.call("session", session_id="chat")["ended_at"] is None
        assert_clean(store)


@pytest.mark.parametrize("release", RELEASES)
def test_a_prune_takes_what_was_closed_and_left_it_while_it_was_open(release: str, path: Path) -> None:
    """What the dry run and the runbook warn of, measured."""
    with Store(path, release, clock={"at": time.time() - 100 * DAY, "step": 0.5}) as store:
        chat(store, "forgotten")
        store.call("clock")
        chat(store, "today")
        assert store.call("prune", older_than_days=90) == 0
        assert set(listing(store)) == {"forgotten", "today"}
    assert found(path) == [("HDB312", "forgotten", "note", "")]
    told = run("repair", path, *SELECT, "--choose", "never-ended-sessions=close")
    assert "auto-prune may later delete what is closed, with its messages" in told.out
    mend(path, "never-ended-sessions=close")
    assert found(path) == []
    with Store(path, release) as store:
        assert set(listing(store)) == {"forgotten", "today"}
        row = store.call("session", session_id="forgotten")
        newest = store.call("messages", session_id="forgotten")[-1]["timestamp"]
        assert (row["ended_at"], row["end_reason"]) == (newest, "closed_idle_by_dbtools")
        assert store.call("resume", session_id="forgotten")["session_id"] == "forgotten"
        assert store.call("prune", older_than_days=90) == 1
        assert listing(store) == ["today"]
        assert_clean(store)


@pytest.mark.parametrize("release", RELEASES)
def test_an_empty_session_is_gone_and_nothing_else(release: str, path: Path) -> None:
    with Store(path, release) as store:
        chat(store, "chat")
        store.call("create", session_id="waiting")
        store.call("create", session_id="shell")
        store.call("end", session_id="shell", end_reason="cli_close")
        before = set(listing(store))
    assert found(path) == [("HDB313", "shell", "note", "")]
    mend(path, lossy=True)
    assert found(path) == []
    with Store(path, release) as store:
        assert set(listing(store)) == before - {"shell"}
        assert_usable(store, "chat", ["chat asks 0", "chat is told 0", "chat asks 1", "chat is told 1"])


@pytest.mark.parametrize("release", RELEASES)
def test_a_lost_run_is_put_under_its_parent_and_goes_with_it(release: str, path: Path) -> None:
    with Store(path, release) as store:
        chat(store, "parent")
        store.call("usage", session_id="lost-run", input_tokens=1, model="small-model")
        for role, said in (("user", "look it up"), ("assistant", "found")):
            store.call("append", session_id="lost-run", role=role, content=said)
        call = {"name": "delegate_task", "arguments": '{"goal": "look it up"}'}
        answer = '{"results": [{"status": "completed", "session_id": "lost-run"}]}'
        store.call("tool_turn", session_id="parent", call_ids=["call_d"], result=answer, **call)
        assert {"parent", "lost-run"} <= set(listing(store))
    assert found(path) == [("HDB314", "lost-run", "warning", "unplaced")]
    mend(path, "placeholder-sessions=relink")
    assert found(path) == []
    with Store(path, release) as store:
        assert listing(store) == ["parent"]
        assert texts(store, "lost-run") == ["look it up", "found"]
        store.call("delete", session_id="parent")
        assert (store.call("session", session_id="lost-run") is None) == (release in SUBAGENTS)
        assert_clean(store)


@pytest.mark.parametrize("kind", ["chain", "jump", "async-chain"])
def test_a_chat_that_an_upgrade_hid_is_listed_again(kind: str, tmp_path: Path) -> None:
    healthy = copy_of(kind, tmp_path)
    hidden = {key for code, key, *_rest in found(healthy.path) if code == "HDB315"}
    assert {life.ids["untitled"] for life in healthy.lives if life.release == "0.13.0"} <= hidden
    with Store(healthy.path, healthy.release) as store:
        before = set(listing(store))
        said = {session_id: texts(store, session_id) for session_id in hidden}
    assert not before & hidden
    mend(healthy.path, "hidden-by-upgrade=strip")
    assert not {key for code, key, *_rest in found(healthy.path) if code == "HDB315"}
    with Store(healthy.path, healthy.release) as store:
        assert set(listing(store)) == before | hidden
        for session_id in sorted(hidden):
            assert_usable(store, session_id, said[session_id], before)


@pytest.mark.parametrize("release", FOLDERS)
def test_a_continuation_names_the_folder_of_its_conversation_again(release: str, path: Path) -> None:
    with Store(path, release) as store:
        chat(store, "talk", cwd="/srv/project")
        store.call("compress", session_id="talk", child="talk-2")
        store.call("compress", session_id="talk-2", child="talk-3")
        before = set(listing(store))
        resumed = store.call("resume", session_id="talk")
    shell(path, [("UPDATE sessions SET cwd = NULL WHERE id <> 'talk'", ())])
    assert found(path) == [
        ("HDB317", "cwd:talk-2", "note", "continuation"),
        ("HDB317", "cwd:talk-3", "note", "continuation"),
    ]
    mend(path, "missing-identity=fill")
    assert found(path) == []
    with Store(path, release) as store:
        assert set(listing(store)) == before == {"talk-3"}
        for session_id in ("talk-2", "talk-3"):
            assert store.call("session", session_id=session_id)["cwd"] == "/srv/project"
        assert store.call("resume", session_id="talk") == resumed
        assert_clean(store)
