"""Pruning old sessions: whole lineages only, and what is spared is counted."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hermes_dbtools.apply import apply_plan
from hermes_dbtools.home import Home
from hermes_dbtools.model import Deletion, UsageError
from hermes_dbtools.sessions import deleting, pruning
from hermes_dbtools.sessions.prune import age_seconds
from tests.deleting import home_of, lease, sessions
from tests.repairs import (
    BRANCH,
    CHAT,
    COMPRESSED,
    CONTINUATION,
    DELEGATE,
    NOW,
    ROOT,
    SECOND,
    THIRD,
    bytes_of,
    state,
    take_back,
)
from tests.running import tool_here
from tests.shapes.make import SHAPES, execute

ALL = {ROOT, SECOND, THIRD, BRANCH, DELEGATE, COMPRESSED, CONTINUATION, CHAT}
MARKED = [shape for shape in SHAPES if shape not in ("11", "14")]


def prune(home: Home, age: str = "30d", **wanted: str | int) -> tuple[Deletion, pruning.Seen]:
    named = {name.replace("_", "-"): value for name, value in wanted.items()}
    seen = pruning.look_at(home, age, named, now=NOW)
    return pruning.prune(home, seen), seen


def end(home: Home, *ids: str) -> None:
    for one in ids:
        execute(home.database, "UPDATE sessions SET ended_at = started_at + 1 WHERE id = ?", (one,))


@pytest.mark.parametrize("shape", MARKED)
def test_old_ended_lineages_go_and_come_back(shape: str, tmp_path: Path) -> None:
    home = home_of(tmp_path / "home", shape)
    before = state(home.database)
    done, seen = prune(home)
    assert sessions(home) == ALL - {ROOT, SECOND, DELEGATE}
    assert set(done.deleted) == {ROOT, SECOND}
    assert (seen.pinned, seen.half_matched) == (0, 1), "a chain with an open tip is spared"
    take_back(home)
    assert state(home.database) == before


@pytest.mark.parametrize("shape", SHAPES)
def test_a_chain_goes_with_its_tip_or_not_at_all(shape: str, tmp_path: Path) -> None:
    home = home_of(tmp_path / "home", shape)
    assert COMPRESSED in sessions(home)
    prune(home)
    assert {COMPRESSED, CONTINUATION} <= sessions(home)
    end(home, CONTINUATION)
    prune(home)
    assert sessions(home).isdisjoint({COMPRESSED, CONTINUATION})


def test_open_recent_and_undated_sessions_stay(tmp_path: Path) -> None:
    home = home_of(tmp_path / "home", "22")
    execute(
        home.database,
        "INSERT INTO messages (session_id, role, content, timestamp) VALUES (?, 'user', 'new', ?)",
        (ROOT, NOW - 86400),
    )
    execute(home.database, "UPDATE sessions SET started_at = 'soon' WHERE id = ?", (SECOND,))
    done, _seen = prune(home)
    assert done.deleted == ()
    assert prune(home, "12h")[0].deleted == (ROOT,)


def test_a_recent_delegate_spares_its_lineage(tmp_path: Path) -> None:
    home = home_of(tmp_path / "home", "22")
    execute(home.database, "UPDATE sessions SET ended_at = ? WHERE id = ?", (NOW - 60, DELEGATE))
    done, seen = prune(home)
    assert (done.deleted, seen.half_matched) == ((SECOND,), 2)


def test_an_open_old_delegate_goes_with_its_root(tmp_path: Path) -> None:
    home = home_of(tmp_path / "home", "22")
    execute(home.database, "UPDATE sessions SET ended_at = NULL, end_reason = NULL WHERE id = ?", (DELEGATE,))
    assert set(prune(home)[0].also_deleted) == {DELEGATE}


@pytest.mark.parametrize("pinned", [ROOT, DELEGATE])
def test_a_pinned_session_spares_its_lineage(pinned: str, tmp_path: Path) -> None:
    home = home_of(tmp_path / "home", "31")
    execute(home.database, "UPDATE sessions SET pinned = 1 WHERE id = ?", (pinned,))
    done, seen = prune(home)
    assert (done.deleted, seen.pinned) == ((SECOND,), 1)


def test_a_live_lineage_is_spared_and_counted(tmp_path: Path) -> None:
    home = home_of(tmp_path / "home", "31")
    lease(home, DELEGATE)
    done, _seen = prune(home)
    assert done.deleted == (SECOND,)
    assert [one.session_id for one in done.skipped_active] == [ROOT]


def test_filters_choose_and_a_half_matched_chain_is_spared(tmp_path: Path) -> None:
    home = home_of(tmp_path / "home", "22")
    end(home, CONTINUATION, THIRD, CHAT)
    execute(
        home.database,
        "UPDATE sessions SET source = 'cron', cwd = '/srv/a' WHERE id IN (?, ?)",
        (SECOND, COMPRESSED),
    )
    execute(home.database, "UPDATE sessions SET title = 'Nightly Run' WHERE id = ?", (THIRD,))
    execute(home.database, "UPDATE sessions SET archived = 1 WHERE id = ?", (CHAT,))

    def would(**wanted: str | int) -> set[str]:
        named = {name.replace("_", "-"): value for name, value in wanted.items()}
        return set(pruning.look_at(home, "30d", named, now=NOW).look.asked)

    assert would(source="cron") == {SECOND}
    assert would(folder="/srv") == would(folder="/srv/a", source="cron") == {SECOND}
    assert would(folder="/sr") == set()
    assert would(title="nightly") == {THIRD}
    assert would(archived=1) == {CHAT}
    assert CHAT not in would(archived=0)
    assert would(end_reason="branched") == {ROOT}
    assert would(min_messages=1000) == set()
    assert pruning.look_at(home, "30d", {"source": "cron"}, now=NOW).half_matched == 1
    with pytest.raises(UsageError, match="no such filter"):
        would(colour="red")


def test_a_filter_that_the_shape_cannot_answer_is_a_usage_error(tmp_path: Path) -> None:
    home = home_of(tmp_path / "home", "11")
    with pytest.raises(UsageError, match="say nothing of archived"):
        prune(home, archived=1)


def test_a_session_used_again_between_look_and_lock_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = home_of(tmp_path / "home", "22")
    real = apply_plan

    def late(*arguments: object) -> object:
        sql = "INSERT INTO messages (session_id, role, content, timestamp) VALUES (?, 'user', 'again', ?)"
        if execute(home.database, "SELECT count(*) FROM messages WHERE content = 'again'") == [(0,)]:
            execute(home.database, sql, (ROOT, NOW - 1))
        return real(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(deleting, "apply_plan", late)
    done, _seen = prune(home)
    assert done.deleted == (SECOND,)
    assert ROOT in sessions(home)


@pytest.mark.parametrize(
    ("words", "seconds"),
    [("30d", 2_592_000), ("12h", 43_200), ("2w", 1_209_600), ("7", 604_800), ("1.5d", 129_600)],
)
def test_ages(words: str, seconds: float) -> None:
    assert age_seconds(words) == seconds


@pytest.mark.parametrize("words", ["", "d", "-1d", "30 parsecs", "1e9d", "nan", "9" * 40])
def test_what_is_no_age(words: str) -> None:
    with pytest.raises(UsageError, match="not an age"):
        age_seconds(words)


def test_the_command_is_a_dry_run_by_default(tmp_path: Path) -> None:
    home = home_of(tmp_path / "home", "22")
    before = bytes_of(home.database)
    ran = tool_here("sessions", "prune", "--older-than", "30d", "--home", str(home.root))
    assert (ran.code, bytes_of(home.database)) == (0, before)
    assert f"delete {SECOND}: 4 messages" in ran.out
    assert "spared: 1 lineage of which only a part matches" in ran.out
    assert "sessions prune --older-than 30d" in ran.err
    words = ("sessions", "prune", "--older-than", "30d", "--source", "cli", "--home", str(home.root))
    ran = tool_here(*words, "--apply", "--yes", "--format", "json")
    assert ran.code == 0, ran.err
    assert set(json.loads(ran.out)["deleted"]) == {ROOT, SECOND}
    assert tool_here("sessions", "prune", "--home", str(home.root)).code == 2
