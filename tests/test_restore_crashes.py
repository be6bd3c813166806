"""A restore that is killed anywhere leaves the old file whole or the new one, and no file with the sidecars of another."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

from hermes_dbtools.backups import restoring, shelf, taking
from hermes_dbtools.home import Home, resolve
from tests.old_files import OLD, backed_up, read_in_place
from tests.repairs import NOW
from tests.running import CHECKOUT

SWAPPING = "backups.swapping."
EVERY = (
    "backups.restoring._make_new:1:before",
    "copies.create_private:1:after",
    "database.copy_unmoved:1:after",
    "backups.restoring._make_new:1:after",
    "receipts.write_private:1:before",
    "receipts.write_private:1:after",
    f"{SWAPPING}keep:1:before",
    f"{SWAPPING}keep:1:after",
    f"{SWAPPING}link:1:after",
    f"{SWAPPING}remove_sidecars:1:before",
    f"{SWAPPING}remove:1:after",
    f"{SWAPPING}remove:2:after",
    f"{SWAPPING}remove:3:after",
    f"{SWAPPING}rename:1:before",
    f"{SWAPPING}rename:1:after",
    f"{SWAPPING}give_back_if_held:1:after",
)
FOLDED = (
    "backups.folding.fold:1:before",
    "backups.folding.fold:1:after",
    f"{SWAPPING}fold_old:1:after",
    f"{SWAPPING}link:2:after",
    f"{SWAPPING}rename:2:before",
    f"{SWAPPING}rename:2:after",
)
KILLS = [("with_wal", place) for place in (*EVERY, *FOLDED)]
KILLS += [("with_hot_journal", place) for place in (*EVERY[-6:], *FOLDED)]
KILLS += [("closed", place) for place in EVERY[-6:]]


class Killer:
    """A process whose forks restore or back up until they are killed."""

    def __init__(self) -> None:
        command = [sys.executable, "-m", "tests.restore_crash_child"]
        self.process = subprocess.Popen(
            command, cwd=CHECKOUT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def __call__(self, home: Home, word: str, place: str) -> None:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps([str(home.root), word, place]) + "\n")
        self.process.stdin.flush()
        assert int(self.process.stdout.readline()) == signal.SIGKILL, "the place was never reached"

    def close(self) -> None:
        self.process.communicate()


@pytest.fixture(scope="module")
def killed() -> Iterator[Killer]:
    killer = Killer()
    yield killer
    killer.close()


@dataclass(frozen=True)
class Case:
    """A home with a database in some state and a backup that differs from it, and what both hold."""

    root: Path
    word: str
    before: dict[str, str]
    new: dict[str, str]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Case]:
    @cache
    def make(old: str) -> Case:
        folder = tmp_path_factory.mktemp(old)
        home, copy = backed_up(folder / "home")
        OLD[old](home.database)
        before = read_in_place(home.database, folder / "check")
        return Case(home.root, copy.stem, before, read_in_place(copy, folder / "check"))

    return make


@pytest.mark.parametrize(("old", "place"), KILLS, ids=lambda value: value.removeprefix(SWAPPING))
def test_killed_anywhere_one_of_both_files_is_whole(
    old: str, place: str, made: Callable[[str], Case], killed: Killer, tmp_path: Path
) -> None:
    case = made(old)
    shutil.copytree(case.root, tmp_path / "home")
    home, check = resolve(tmp_path / "home"), tmp_path / "check"
    assert case.before != case.new
    killed(home, case.word, place)
    assert read_in_place(home.database, check) == (case.new if in_place(old, place) else case.before)
    assert [one.name for one in shelf.kept(home) if one.kind == "backup"] == [case.word]
    restoring.restore(home, restoring.prepare(home, case.word), NOW + 1)
    assert read_in_place(home.database, check) == case.new
    assert {path.name for path in home.root.iterdir()} == {"state.db", "dbtools", "state.db.repair.lock"}
    kept = [read_in_place(Path(one.path), check) for one in shelf.kept(home) if one.kind == "replaced"]
    assert case.before in kept
    assert all(digests in (case.before, case.new) for digests in kept)


def in_place(old: str, place: str) -> bool:
    """Whether the last rename has happened there."""
    if place.endswith("give_back_if_held:1:after"):
        return True
    last = 1 if old == "closed" else 2
    return place.endswith(f"rename:{last}:after")


@pytest.mark.parametrize(
    "place",
    [
        "copies._run_steps:1:before",
        "copies._run_steps:1:after",
        "preflight.verified:1:after",
        "receipts.write_private:1:after",
    ],
)
def test_a_backup_that_is_killed_is_no_backup_and_the_next_one_is(
    place: str, made: Callable[[str], Case], killed: Killer, tmp_path: Path
) -> None:
    case = made("with_wal")
    shutil.copytree(case.root, tmp_path / "home")
    home = resolve(tmp_path / "home")
    killed(home, "backup", place)
    assert [one.name for one in shelf.kept(home)] == [case.word]
    assert taking.back_up(home, taking.BackupOptions(now=NOW + 1)).made
    first, second = shelf.kept(home)
    assert {path.stem for path in (home.dbtools_dir / "backups").iterdir()} == {first.name, second.name}
    assert read_in_place(Path(second.path), tmp_path / "check") == case.before
