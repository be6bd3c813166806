"""Files of which most rows are orphaned, and files whose damage only a look at the whole of them shows."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from hermes_dbtools.apply import rehearse
from hermes_dbtools.home import Home, resolve
from hermes_dbtools.model import Refused
from tests.repairs import (
    LOST_SESSION,
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
from tests.running import Ran, tool_here
from tests.shapes.make import execute, fill, fill_many, make

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


def command(home: Home, *words: str) -> Ran:
    return tool_here(words[0], home.root, *words[1:])


def test_the_dry_run_fits_a_screen_and_adopts(large: Home) -> None:
    before = bytes_of(large.database)
    done = command(large, "repair")
    shown = (done.out + done.err).splitlines()
    assert done.code == 1
    assert len(shown) <= SCREEN, done.out
    assert max(map(len, shown)) <= 200
    (line,) = [line for line in shown if line.strip().startswith("orphaned-messages")]
    assert "adopt 1,400 missing sessions" in line
    assert "+1,400 sessions" in line
    assert any("36,400 messages" in line and "MB" in line for line in shown), done.out
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
    assert named in done.out + done.err
    assert execute(large.database, "SELECT count(*) FROM messages") == [(messages,)]
    assert len(done.out.splitlines()) <= SCREEN


def test_a_purge_of_nearly_everything_comes_back(large: Home, tmp_path: Path) -> None:
    before = digests(large.database), broken_keys(large.database)
    words = (*PURGE, "--allow-lossy", "--max-rows", "100000")
    dry = command(large, "repair", *words)
    assert "36,400 rows removed" in dry.out
    assert "MB" in dry.out
    assert len((dry.out + dry.err).splitlines()) <= SCREEN
    done = command(large, "repair", *words, "--apply", "--yes")
    assert done.code == 0, done.out + done.err
    assert execute(large.database, "SELECT count(*) FROM messages") == [(LIVING * EACH + 31,)]
    search_is_sound(large.database, tmp_path / "checks")
    undone = command(large, "undo", "--apply", "--yes")
    assert undone.code == 0, undone.err
    assert (digests(large.database), broken_keys(large.database)) == before
    search_is_sound(large.database, tmp_path / "checks")


def test_an_adoption_of_everything_comes_back(large: Home, tmp_path: Path) -> None:
    before = digests(large.database)
    done = command(large, "repair", "--apply", "--yes")
    assert done.code == 0, done.out + done.err
    assert execute(large.database, "PRAGMA foreign_key_check") == []
    search_is_sound(large.database, tmp_path / "checks")
    take_back(large)
    assert digests(large.database) == before
    search_is_sound(large.database, tmp_path / "checks")


def page(path: Path, number: int, size: int) -> bytes:
    with path.open("rb") as file:
        file.seek((number - 1) * size)
        return file.read(size)


def put(path: Path, place: int, content: bytes) -> None:
    with path.open("r+b") as file:
        file.seek(place)
        file.write(content)


def last_leaf(path: Path, table: str) -> tuple[int, int]:
    """The page of the last rows of a table, and the page size."""
    ((size,),) = execute(path, "PRAGMA page_size")
    ((number,),) = execute(path, "SELECT rootpage FROM sqlite_schema WHERE name = ?", (table,))
    while (content := page(path, number, size))[0] == 5:  # an interior page of a table: its last child
        number = int.from_bytes(content[8:12], "big")
    assert content[0] == 13
    return number, size


def free_a_leaf(path: Path) -> None:
    """Put a page that holds messages on the list of free pages too."""
    leaf, size = last_leaf(path, "messages")
    header = page(path, 1, size)
    trunk, free = int.from_bytes(header[32:36], "big"), int.from_bytes(header[36:40], "big")
    assert trunk, "the file has free pages"
    entries = int.from_bytes(page(path, trunk, size)[4:8], "big")
    put(path, (trunk - 1) * size + 4, (entries + 1).to_bytes(4, "big"))
    put(path, (trunk - 1) * size + 8 + 4 * entries, leaf.to_bytes(4, "big"))
    put(path, 36, (free + 1).to_bytes(4, "big"))


def with_free_pages(folder: Path) -> Home:
    home = new_home(folder, "22", LOST_SESSION)
    fill_many(home.database, 10, 20, 500)
    execute(home.database, "CREATE TABLE ballast AS SELECT randomblob(100000) AS x")
    execute(home.database, "DROP TABLE ballast")
    return home


@pytest.mark.parametrize("backup", [True, False])
def test_a_free_page_that_holds_messages_is_found_before_any_write(backup: bool, tmp_path: Path) -> None:
    home = with_free_pages(tmp_path / "home")
    plan = plan_of(home)
    free_a_leaf(home.database)
    before = bytes_of(home.database)
    assert plan_of(home).steps == plan.steps, "table by table the file looks sound"
    with pytest.raises(
        Refused, match=r"structurally damaged, nothing was changed: .*runbook structural-damage"
    ):
        repair(home, plan, backup=backup)
    with pytest.raises(Refused, match="structurally damaged"):
        rehearse(home, plan)
    assert bytes_of(home.database) == before
    assert not list(home.dbtools_dir.glob("*/backup.db"))


def test_an_undo_is_refused_where_a_free_page_holds_messages(tmp_path: Path) -> None:
    home = with_free_pages(tmp_path / "home")
    repair(home, purge_of(home))
    assert execute(home.database, "PRAGMA wal_checkpoint(TRUNCATE)")
    free_a_leaf(home.database)
    before = bytes_of(home.database)
    with pytest.raises(Refused, match="structurally damaged"):
        take_back(home)
    assert bytes_of(home.database) == before


def test_nothing_is_purged_while_sessions_is_empty(tmp_path: Path) -> None:
    home = new_home(tmp_path / "home", "22", "DELETE FROM sessions")
    before = state(home.database)
    plan = purge_of(home, max_rows=1000)
    assert not [step for step in plan.steps if step.slug == "orphaned-messages"]
    reasons = {skip.reason for skip in plan.skipped if skip.slug == "orphaned-messages"}
    assert len(reasons) == 1
    assert "sessions is empty" in reasons.pop()
    done = command(
        home,
        "repair",
        *PURGE,
        "--select",
        "HDB201",
        "--allow-lossy",
        "--max-rows",
        "1000",
        "--apply",
        "--yes",
    )
    assert "sessions is empty" in done.out
    assert state(home.database) == before


@pytest.mark.parametrize("backup", [True, False])
def test_nothing_is_purged_while_sessions_is_damaged(backup: bool, tmp_path: Path) -> None:
    home = new_home(tmp_path / "home", "22", LOST_SESSION)
    fill_many(home.database, 100, 2, 100)
    before_damage = purge_of(home)
    leaf, size = last_leaf(home.database, "sessions")
    put(home.database, (leaf - 1) * size, bytes(size))
    before = bytes_of(home.database)
    plan = purge_of(home, max_rows=1000)
    assert plan.steps == ()
    done = command(home, "repair", *PURGE, "--allow-lossy", "--max-rows", "1000", "--apply", "--yes")
    assert "HDB002" in done.out + done.err
    _found, _next, commands = command(home, "scan").out.partition("next:")
    assert [line.split()[:3] for line in commands.splitlines()] == [
        ["hermes-dbtools", "salvage", str(home.database)],
        ["hermes-dbtools", "runbook", "structural-damage"],
    ]
    with pytest.raises(Refused, match="structurally damaged"):
        repair(home, before_damage, backup=backup)
    assert bytes_of(home.database) == before
