"""A repair or an undo that is killed anywhere leaves the file wholly before or wholly after; the next run finishes."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from hermes_dbtools.home import Home
from hermes_dbtools.model import Receipt
from hermes_dbtools.undoing import history
from tests.media import MediaHome, media_home
from tests.repairs import (
    COUNTERS,
    LOST_SESSION,
    broken_keys,
    digests,
    files,
    new_home,
    plan_of,
    purge_of,
    repair,
    search_is_sound,
    take_back,
)
from tests.shapes.make import execute, fill_many

ROOT_FOLDER = Path(__file__).resolve().parent.parent

BEFORE_COMMIT = (
    "receipts.write_private:1:before",  # plan.json
    "receipts.write_private:2:before",  # the pending receipt
    "receipts.write_private:2:after",
    "copies.create_private:1:after",  # the backup is an empty file
    "database.copy_unmoved:1:after",
    "preflight.back_up:1:after",
    "apply.begin:1:after",
    "step:1",
    "step:2",
    "search_index.end_change:1:before",
    "search_index.end_change:1:after",
    "receipts.write_private:3:before",  # the list of violations
    "receipts.write_private:4:after",  # the list of touched messages
    "receipts.write_private:5:before",  # the receipt with what was changed
    "receipts.write_private:5:after",
    "apply.mark:1:after",
    "apply.commit:1:before",
)
AFTER_COMMIT = (
    "apply.commit:1:after",
    "database.checkpoint_passive:1:before",
    "files_back.finish:1:before",
    "receipts.write_private:6:before",
)


def killed(home: Home, operation: str, place: str, answer: str = "") -> None:
    """Let a child repair or undo until it is killed at that place."""
    command = [sys.executable, "-m", "tests.crash_child", str(home.root), operation, place, answer]
    done = subprocess.run(command, cwd=ROOT_FOLDER, capture_output=True, text=True, check=False)
    assert done.returncode == -signal.SIGKILL, done.stderr


def command(home: Home, *words: str) -> subprocess.CompletedProcess[str]:
    line = [sys.executable, "-m", "hermes_dbtools", words[0], str(home.root), *words[1:]]
    return subprocess.run(line, cwd=ROOT_FOLDER, capture_output=True, text=True, check=False)


def on_disk(home: Home) -> list[str]:
    """The status of each stored receipt, whatever the database says."""
    folders = sorted(home.dbtools_dir.iterdir())
    found = [folder / "receipt.json" for folder in folders if (folder / "receipt.json").exists()]
    return [json.loads(path.read_text("utf-8"))["status"] for path in found]


def kept(home: Home, receipt: Receipt) -> set[str]:
    return {path.name for path in (home.dbtools_dir / receipt.id).iterdir()}


@pytest.mark.parametrize("journal_mode", ["wal", "delete"])
@pytest.mark.parametrize("place", BEFORE_COMMIT)
def test_killed_before_commit_nothing_is_changed_and_the_next_run_repairs(
    place: str, journal_mode: str, tmp_path: Path
) -> None:
    home = new_home(tmp_path / "home", "22", LOST_SESSION, COUNTERS)
    execute(home.database, f"PRAGMA journal_mode = {journal_mode}")
    before, here = digests(home.database), files(home)
    killed(home, "apply", place, "purge")
    assert [receipt.status for receipt in history(home)] in ([], ["rolled-back"])
    assert digests(home.database) == before
    repair(home, purge_of(home))
    assert digests(home.database) != before
    assert on_disk(home)[-1] == "committed"
    assert on_disk(home)[:-1] in ([], ["rolled-back"])
    for receipt in history(home)[:-1]:
        assert kept(home, receipt) <= {"receipt.json", "plan.json", "backup.db"}, (
            "what undoes nothing is removed"
        )
    assert not files(home) - here - {"dbtools", "state.db-wal", "state.db-shm", "state.db.repair.lock"}
    take_back(home)
    assert digests(home.database) == before
    search_is_sound(home.database, tmp_path / "checks", writer="ours")


@pytest.mark.parametrize("place", AFTER_COMMIT)
def test_killed_after_commit_everything_is_changed_and_the_next_run_says_so(
    place: str, tmp_path: Path
) -> None:
    home = new_home(tmp_path / "home", "22", LOST_SESSION, COUNTERS)
    before, here = digests(home.database), files(home)
    killed(home, "apply", place)
    assert on_disk(home) == ["pending"]
    assert [receipt.status for receipt in history(home)] == ["committed"]
    assert not plan_of(home).steps
    assert broken_keys(home.database) == []
    done = command(home, "repair", "--apply", "--yes")
    assert done.returncode == 0, done.stderr
    assert on_disk(home) == ["committed"]
    (receipt,) = history(home)
    assert {"undo", "backup.db", "violations", "touched", "plan.json"} <= kept(home, receipt)
    assert not files(home) - here - {"dbtools", "state.db-wal", "state.db-shm", "state.db.repair.lock"}
    take_back(home)
    assert digests(home.database) == before


@pytest.mark.parametrize("place", ["search_index.end_change:1:after", "apply.commit:1:before"])
def test_an_undo_killed_before_commit_leaves_the_repair_as_it_was(place: str, tmp_path: Path) -> None:
    home = new_home(tmp_path / "home", "31", LOST_SESSION, COUNTERS)
    damaged = digests(home.database)
    repair(home, purge_of(home))
    repaired = digests(home.database)
    killed(home, "undo", place)
    assert digests(home.database) == repaired
    assert [receipt.status for receipt in history(home)] == ["committed"]
    take_back(home)
    assert digests(home.database) == damaged
    search_is_sound(home.database, tmp_path / "checks", writer="ours")


@pytest.mark.parametrize("place", ["apply.commit:1:after", "files_back.take_away:1:before"])
def test_an_undo_killed_after_commit_is_undone(place: str, tmp_path: Path) -> None:
    home = new_home(tmp_path / "home", "31", LOST_SESSION, COUNTERS)
    damaged = digests(home.database)
    repair(home, purge_of(home))
    killed(home, "undo", place)
    assert digests(home.database) == damaged
    assert on_disk(home) == ["committed"]
    assert [receipt.status for receipt in history(home)] == ["undone"]
    repair(home, purge_of(home))
    assert on_disk(home) == ["undone", "committed"]


IMAGE = b"\x89PNG\r\n\x1a\n" + bytes(range(64)) * 30


@pytest.mark.parametrize(
    "place",
    [
        "apply.commit:1:after",
        "files_back.finish:1:before",
        "files_back._put_back:1:before",
        "files_back.create_private:1:after",  # the copy is begun under its second name
        "receipts.sync_folder:8:before",
        "files_back._put_back:1:after",
    ],
)
def test_killed_while_files_are_put_back_the_next_run_puts_them_back(place: str, tmp_path: Path) -> None:
    media = media_home(tmp_path / "home")
    lost, other = lose_image(media)
    execute(media.database, COUNTERS)
    here = files(media.home)
    killed(media.home, "apply", place)
    assert on_disk(media.home) == ["pending"]
    assert [receipt.status for receipt in history(media.home)] == ["committed"]
    done = command(media.home, "repair", "--apply", "--yes", "--choose", "dangling-image-references=relink")
    assert done.returncode == 0, done.stdout + done.stderr
    assert lost.read_bytes() == IMAGE
    assert set(on_disk(media.home)) == {"committed"}
    new = files(media.home) - here - {"dbtools", "state.db-wal", "state.db-shm", "state.db.repair.lock"}
    assert {Path(name).name for name in new} <= {lost.name, lost.parent.name}
    while [receipt for receipt in history(media.home) if receipt.status == "committed"]:
        take_back(media.home)
    assert not lost.exists()
    assert other.read_bytes() == IMAGE


@pytest.mark.parametrize("place", ["apply.commit:1:after", "files_back.take_away:1:before"])
def test_an_undo_killed_before_its_files_are_gone_takes_them_away_later(place: str, tmp_path: Path) -> None:
    media = media_home(tmp_path / "home")
    lost, other = lose_image(media)
    repair(media.home, plan_of(media.home, choose={"dangling-image-references": "relink"}))
    assert lost.read_bytes() == IMAGE
    killed(media.home, "undo", place)
    assert [receipt.status for receipt in history(media.home)] == ["undone"]
    done = command(media.home, "repair", "--apply", "--yes")
    assert on_disk(media.home) == ["undone"], done.stderr
    assert not lost.exists()
    assert other.read_bytes() == IMAGE


def test_an_undo_takes_no_last_copy_away(tmp_path: Path) -> None:
    media = media_home(tmp_path / "home")
    lost, other = lose_image(media)
    repair(media.home, plan_of(media.home, choose={"dangling-image-references": "relink"}))
    assert lost.read_bytes() == IMAGE
    other.unlink()
    take_back(media.home)
    assert lost.read_bytes() == IMAGE


def lose_image(media: MediaHome) -> tuple[Path, Path]:
    """A held image that is not at its place, and the other place where its bytes are."""
    entry = media.store(IMAGE)
    media.admit(entry)
    lost = Path(entry["path"])
    other = media.home.transcript_media_dir / "kept.png"
    lost.rename(other)
    lost.parent.rmdir()
    return lost, other


@pytest.mark.parametrize("journal_mode", ["wal", "delete"])
def test_killed_when_half_the_pages_are_written_already(journal_mode: str, tmp_path: Path) -> None:
    home = new_home(tmp_path / "home", "22")
    fill_many(home.database, 20, 100, 4000)
    execute(home.database, "DELETE FROM sessions WHERE rowid > 8 AND rowid % 2")
    execute(home.database, f"PRAGMA journal_mode = {journal_mode}")
    ((size,),) = execute(home.database, "PRAGMA page_count")
    before = digests(home.database)
    killed(home, "apply", "apply.commit:1:before", "purge")
    spilled = home.database.with_name("state.db-" + ("wal" if journal_mode == "wal" else "journal"))
    assert spilled.stat().st_size > size * 4096 // 10, "more than the cache holds was written"
    proven = "rolled-back" if journal_mode == "wal" else "pending"
    assert [receipt.status for receipt in history(home)] == [proven], "a hot journal proves nothing"
    scanned = command(home, "scan", "--format", "json")
    if journal_mode == "delete":
        assert "HDB003" in scanned.stdout
        assert execute(home.database, "SELECT 1") == [(1,)], "any program of the store rolls it back"
    assert digests(home.database) == before
    repair(home, purge_of(home))
    assert on_disk(home) == ["rolled-back", "committed"]
    take_back(home)
    assert digests(home.database) == before
