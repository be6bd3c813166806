"""Files of which most rows are orphaned, and files whose damage only a look at the whole of them shows."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from hermes_dbtools.home import Home, resolve
from hermes_dbtools.model import Refused
from tests.repairs import (
    LOST_SESSION,
    NOW,
    broken_keys,
    bytes_of,
    digests,
    new_home,
    plan_of,
    purge_of,
    repair,
    search_is_sound,
    state,
    take_back,
)
from tests.shapes.make import execute, fill, fill_many, make

CHECKOUT = Path(__file__).resolve().parent.parent
DEAD, LIVING, EACH = 1_400, 90, 26
SCREEN = 24


@pytest.fixture(scope="module", params=["22", "31"])
def mostly_orphaned(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store of 38,740 messages of which 94 % name one of 1,400 dead ids; made by the other engine."""
    path = make(tmp_path_factory.mktemp("large") / "state.db", request.param, engine="stdlib")
    fill(path, engine="stdlib")
    ((already,),) = execute(path, "SELECT max(rowid) FROM sessions")
    fill_many(path, DEAD + LIVING, EACH, 400, nul_every=50, engine="stdlib")
    execute(path, "DELETE FROM sessions WHERE rowid > ?", (already + LIVING,), engine="stdlib")
    return path


@pytest.fixture
def large(mostly_orphaned: Path, tmp_path: Path) -> Home:
    (tmp_path / "home").mkdir()
    shutil.copyfile(mostly_orphaned, tmp_path / "home" / "state.db")
    return resolve(tmp_path / "home")


def command(home: Home, *words: str) -> subprocess.CompletedProcess[str]:
    line = [sys.executable, "-m", "hermes_dbtools", words[0], str(home.root), *words[1:]]
    return subprocess.run(line, cwd=CHECKOUT, capture_output=True, text=True, check=False)


def test_the_dry_run_fits_a_screen_and_adopts(large: Home) -> None:
    before = bytes_of(large.database)
    done = command(large, "repair")
    shown = (done.stdout + done.stderr).splitlines()
    assert done.returncode == 1
    assert len(shown) <= SCREEN, done.stdout
    assert max(map(len, shown)) <= 200
    (line,) = [line for line in shown if line.strip().startswith("orphaned-messages")]
    assert "adopt 1,400 missing sessions" in line
    assert "+1,400 sessions" in line
    assert any("36,400 messages" in line and "MB" in line for line in shown), done.stdout
    assert bytes_of(large.database) == before


PURGE = ("--choose", "orphaned-messages=purge")


@pytest.mark.parametrize(
    ("words", "named"),
    [
        ((), ""),
        (PURGE, "--allow-lossy"),
        ((*PURGE, "--allow-lossy"), "--max-rows"),
        ((*PURGE, "--allow-lossy", "--max-rows", "36399"), "--max-rows"),
        (("--allow-lossy", "--max-rows", "1000000"), ""),
        ((*PURGE, "--max-rows", "1000000"), "--allow-lossy"),
    ],
)
def test_each_leave_that_a_purge_lacks_is_named_and_nothing_is_removed(
    words: tuple[str, ...], named: str, large: Home
) -> None:
    ((messages,),) = execute(large.database, "SELECT count(*) FROM messages")
    done = command(large, "repair", *words, "--apply", "--yes")
    assert named in done.stdout + done.stderr
    assert execute(large.database, "SELECT count(*) FROM messages") == [(messages,)]
    assert len(done.stdout.splitlines()) <= SCREEN


def test_a_purge_of_nearly_everything_comes_back(large: Home, tmp_path: Path) -> None:
    before = digests(large.database), broken_keys(large.database)
    words = (*PURGE, "--allow-lossy", "--max-rows", "100000")
    dry = command(large, "repair", *words)
    assert "36,400 rows removed" in dry.stdout
    assert "MB" in dry.stdout
    assert len((dry.stdout + dry.stderr).splitlines()) <= SCREEN
    done = command(large, "repair", *words, "--apply", "--yes")
    assert done.returncode == 0, done.stdout + done.stderr
    assert execute(large.database, "SELECT count(*) FROM messages") == [(LIVING * EACH + 31,)]
    search_is_sound(large.database, tmp_path / "checks")
    undone = command(large, "undo", "--apply", "--yes")
    assert undone.returncode == 0, undone.stderr
    assert (digests(large.database), broken_keys(large.database)) == before
    search_is_sound(large.database, tmp_path / "checks")


def test_an_adoption_of_everything_comes_back(large: Home, tmp_path: Path) -> None:
    before = digests(large.database)
    done = command(large, "repair", "--apply", "--yes")
    assert done.returncode == 0, done.stdout + done.stderr
    assert execute(large.database, "PRAGMA foreign_key_check") == []
    search_is_sound(large.database, tmp_path / "checks")
    take_back(large)
    assert digests(large.database) == before
    search_is_sound(large.database, tmp_path / "checks")
