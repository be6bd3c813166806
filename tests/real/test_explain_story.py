"""From a log line to a mended session in three commands, each printed by the one before, on files of released stores."""

from __future__ import annotations

import shlex
from io import BytesIO
from pathlib import Path

import pytest

from hermes_dbtools.explain.answers import explain_log
from hermes_dbtools.explain.reading_log import read_log
from hermes_dbtools.home import resolve
from tests.printed import commands, typed
from tests.real.judge import assert_clean
from tests.real.lives import copy_of
from tests.real.looks import run
from tests.real.store import Store, StoreError
from tests.real.test_foreign_key_story import LOST, assert_saves, lose_a_session
from tests.shapes.make import execute

LINE = "2026-03-01 10:20:00,000 WARNING run_agent: Session DB append_message failed: FOREIGN KEY constraint failed\n"


def logged(store: Store, folder: Path) -> Path:
    """The line that the release's agent logs of a failed append (`run_agent.py`, format of `hermes_logging.py`)."""
    with pytest.raises(StoreError, match="FOREIGN KEY constraint failed") as failed:
        store.call("append", session_id=LOST, content="lost")
    error = str(failed.value).rpartition(": ")[2]
    line = f"2026-03-01 10:20:00,000 WARNING [{LOST}] run_agent: Session DB append_message failed: {error}\n"
    log = folder / "errors.log"
    log.write_text("2026-03-01 10:19:00,000 INFO run_agent: a turn begins\n" + line * 3)
    return log


@pytest.mark.parametrize("release", ["0.13.0", "0.19.0", "0.20.4.1"])
def test_a_log_line_leads_to_a_session_that_saves_in_three_commands(release: str, tmp_path: Path) -> None:
    home = tmp_path / "it's a home"
    home.mkdir()
    path = home / "state.db"
    with Store(path, release) as store:
        lose_a_session(store)
        log = logged(store, home)
    first = typed(f"hermes-dbtools explain {shlex.quote(str(path))} --log {shlex.quote(str(log))}", tmp_path)
    assert first.code == 1, first.err
    assert LOST in first.out
    second = typed(commands(first)[0], tmp_path)
    assert "dry run: nothing is written" in second.out
    assert commands(second)[0].endswith(" --apply")
    third = typed(commands(second)[0], tmp_path)
    assert third.code == 0, third.out + third.err
    with Store(path, release) as store:
        assert_saves(store)
    assert run("explain", path, LOST).code == 0
    assert run("explain", path, "--log", log).code == 0


@pytest.mark.parametrize("release", ["0.13.0", "0.20.4.1"])
def test_nothing_is_wrong_with_any_session_of_a_busy_life(release: str, tmp_path: Path) -> None:
    healthy = copy_of(release, tmp_path)
    ids = [row[0] for row in execute(healthy.path, "SELECT id FROM sessions")]
    log = read_log("-", BytesIO(LINE.encode()))
    log.ids = dict.fromkeys(ids, 1)
    answer = explain_log(resolve(healthy.path), log, lambda _what: None)
    assert len(ids) > 40
    assert [one.id for one in answer.sessions] == ids
    assert [(one.id, one.failing) for one in answer.sessions if one.failing or one.state == "missing"] == []
    assert (answer.exit_code, answer.verdict) == (0, "nothing is wrong in the file now")


@pytest.mark.parametrize("release", ["0.18.2", "0.20.4.1"])
def test_a_stale_parent_fails_as_it_is_said_and_saves_after_the_printed_commands(
    release: str, tmp_path: Path
) -> None:
    """A row is written again with the parent that it had, which is gone."""
    path = tmp_path / "state.db"
    with Store(path, release) as store:
        for session_id in ("20260301_101500_aaaaaa", "20260301_101600_bbbbbb"):
            store.call("create", session_id=session_id, source="cli")
            store.call("append", session_id=session_id, content="a question")
        changed = "UPDATE sessions SET parent_session_id = 'gone' WHERE id = ?"
        assert store.execute(changed, "20260301_101600_bbbbbb") == 1
        with pytest.raises(StoreError, match="FOREIGN KEY constraint failed"):
            store.call("create", session_id="20260301_101600_bbbbbb", source="cli")
        store.call("append", session_id="20260301_101600_bbbbbb", content="an append alone works")
    first = typed(f"hermes-dbtools explain {path} 20260301_1016", tmp_path)
    assert first.code == 1
    assert "INSERT INTO sessions … ON CONFLICT DO UPDATE" in first.out
    assert "INSERT INTO messages" not in first.out
    second = typed(commands(first)[0], tmp_path)
    third = typed(commands(second)[0], tmp_path)
    assert third.code == 0, third.out + third.err
    with Store(path, release) as store:
        store.call("create", session_id="20260301_101600_bbbbbb", source="cli")
        assert_clean(store)
