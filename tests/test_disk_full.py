"""Where the disk is full, at whatever write: one line that says so, the right exit code, the database as it was, no half file."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest

from hermes_dbtools.home import Home, resolve
from hermes_dbtools.undoing import history
from tests.old_files import OLD, backed_up, read_in_place
from tests.repairs import COUNTERS, LOST_SESSION, new_home
from tests.running import CHECKOUT, tool
from tests.shapes.make import execute

ROOM = ("no space left on device", "disk is full", "no room", "unable to open database file")
WHOLE = {"plan.json", "receipt.json"}
"""What the folder of a repair that changed nothing may hold."""


@dataclass(frozen=True)
class Ran:
    """One command on a disk that became full."""

    code: int
    out: str
    err: str
    writes: list[str]


class Disk:
    """A process whose forks run commands on a disk that becomes full."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        command = [sys.executable, "-m", "tests.disk_full_child"]
        self.process = subprocess.Popen(
            command, cwd=CHECKOUT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def run(self, words: tuple[str, ...], first: int = 0, *, always: bool = True) -> Ran:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        request = {"folder": str(self.folder), "words": words, "first": first, "always": always}
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        return Ran(**json.loads(self.process.stdout.readline()))

    def close(self) -> None:
        self.process.communicate()


@pytest.fixture(scope="module")
def disk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Disk]:
    disk = Disk(tmp_path_factory.mktemp("disk"))
    yield disk
    disk.close()


@dataclass(frozen=True)
class Case:
    """A home as it was before a command, the command, and what its rows are before and after."""

    root: Path
    disk: str
    words: tuple[str, ...]

    def fresh(self, disk: Disk) -> Home:
        shutil.rmtree(disk.folder)
        shutil.copytree(self.root, disk.folder)
        return resolve(disk.folder)


def to_repair(folder: Path, mode: str) -> None:
    home = new_home(folder, "22", LOST_SESSION, COUNTERS)
    execute(home.database, f"PRAGMA journal_mode = {mode}")


def to_restore(folder: Path, old: str) -> None:
    home, copy = backed_up(folder)
    OLD[old](home.database)
    copy.rename(copy.with_name("copy.db"))
    copy.with_suffix(".json").unlink()


REPAIR = ("repair", "--select", "references,counters", "--apply", "--yes")
RESTORE = ("restore", "{disk}/dbtools/backups/copy.db", "--apply", "--yes")
MAKERS: dict[str, tuple[Callable[[Path], None], tuple[str, ...]]] = {
    "backup": (lambda folder: to_repair(folder, "wal"), ("backup",)),
    "backup to a file": (lambda folder: to_repair(folder, "wal"), ("backup", "-o", "{disk}/copy.db")),
    "restore": (lambda folder: to_restore(folder, "closed"), RESTORE),
    "restore over a wal": (lambda folder: to_restore(folder, "with_wal"), RESTORE),
    "repair": (lambda folder: to_repair(folder, "wal"), REPAIR),
    "repair by journal": (lambda folder: to_repair(folder, "delete"), REPAIR),
}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory, disk: Disk) -> Callable[[str], Case]:
    @cache
    def make(name: str) -> Case:
        maker, words = MAKERS[name]
        folder = tmp_path_factory.mktemp("made") / "home"
        maker(folder)
        options = (*words, "--home", "{disk}")
        return Case(folder, str(disk.folder), tuple(word.format(disk=disk.folder) for word in options))

    return make


def places(writes: list[str]) -> list[int]:
    """The number of the first and the last write of each kind in a row."""
    found: list[int] = []
    number = 1
    for _kind, group in groupby(re.sub(r"\d{8}T\d{6}Z-\w+", "", write) for write in writes):
        count = len(list(group))
        found += sorted({number, number + count - 1})
        number += count
    return found


def since(name: str, writes: list[str]) -> int:
    """Until when the writes are those of another case: with a journal, until the backup is made."""
    return writes.index("made undo") if name == "repair by journal" else 0


def files(root: Path) -> dict[str, bytes]:
    return {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()}


@pytest.mark.parametrize("name", MAKERS)
def test_a_full_disk_at_every_write(
    name: str, made: Callable[[str], Case], disk: Disk, tmp_path: Path
) -> None:
    case = made(name)
    home = case.fresh(disk)
    whole, before = files(disk.folder), read_in_place(home.database, tmp_path / "check")
    good = disk.run(case.words)
    assert good.code == 0, good
    after = read_in_place(home.database, tmp_path / "check")
    numbers = [number for number in places(good.writes) if number > since(name, good.writes)]
    refused = 0
    for place, first in enumerate(numbers):
        what = (first, good.writes[first - 1])
        home = case.fresh(disk)
        ran = disk.run(case.words, first)
        found = read_in_place(home.database, tmp_path / "check")
        assert "Traceback" not in ran.err, (what, ran.err)
        assert ran.code in (0, 1, 4), (what, ran)
        assert found == (before if ran.code == 4 else after), what
        if ran.code == 4:
            refused += 1
            assert_refused(ran, what)
            assert_nothing_is_left(home, whole, what)
        elif ran.code == 1:
            assert "the rows are repaired, but" in ran.err, (what, ran.err)
        if place % 7 == 0 or ran.code == 1:
            again = disk.run(case.words)
            assert again.code == 0, (what, again)
            assert read_in_place(home.database, tmp_path / "check") == after, what
            assert [receipt.status for receipt in history(home)][-1:] in ([], ["committed"]), what
    assert refused > len(numbers) / 2, "most writes come before the commit"


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 16 MB; only some users may make one."""
    folder = tmp_path / "small"
    folder.mkdir()
    made = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=16m", "none", str(folder)], capture_output=True, check=False
    )
    if made.returncode:
        pytest.skip("this user may not mount a small file system")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


@pytest.mark.parametrize(("name", "most"), [("backup", 80), ("restore over a wal", 1600), ("repair", 180)])
def test_a_disk_that_is_really_full(
    name: str, most: int, made: Callable[[str], Case], small_disk: Path, tmp_path: Path
) -> None:
    case = made(name)
    disk = Disk(small_disk / "disk")
    words = tuple(word.replace(case.disk, str(disk.folder)) for word in case.words)
    before = None
    codes = []
    for pages in range(0, most + 1, most // 8):
        shutil.rmtree(disk.folder, ignore_errors=True)
        shutil.copytree(case.root, disk.folder)
        home, whole = resolve(disk.folder), files(disk.folder)
        before = read_in_place(home.database, tmp_path / "check") if before is None else before
        ballast = small_disk / "ballast"
        ballast.write_bytes(bytes(max(0, shutil.disk_usage(small_disk).free - 4096 * pages)))
        ran = disk.run(words)
        found = read_in_place(home.database, tmp_path / "check")
        ballast.unlink()
        codes.append(ran.code)
        assert "Traceback" not in ran.err, (pages, ran.err)
        if ran.code == 4:
            assert_refused(ran, pages)
            assert_nothing_is_left(home, whole, pages)
            assert found == before, pages
    disk.close()
    assert codes == sorted(codes, reverse=True)
    assert (codes[0], codes[1], codes[-1]) == (4, 4, 0)


@pytest.mark.parametrize("name", ["backup", "restore", "repair"])
def test_too_little_room_is_known_before_the_first_write(
    name: str, made: Callable[[str], Case], small_disk: Path
) -> None:
    case = made(name)
    shutil.copytree(case.root, small_disk / "disk")
    words = (word.replace(case.disk, str(small_disk / "disk")) for word in case.words)
    whole = files(small_disk / "disk")
    ran = tool(*words)
    assert (ran.code, ran.out) == (4, "")
    assert re.search(r"[\d,]+ bytes free, [\d,]+ needed for .*; nothing was changed; make room", ran.err), (
        ran.err
    )
    now = files(small_disk / "disk")
    assert {name: content for name, content in now.items() if not name.endswith(".lock")} == whole


def assert_refused(ran: Ran, what: Any) -> None:
    (line,) = ran.err.splitlines()
    assert line.startswith("hermes-dbtools: "), (what, line)
    assert any(words in line.lower() for words in ROOM), (what, line)


def assert_nothing_is_left(home: Home, whole: dict[str, bytes], what: Any) -> None:
    now = files(home.root)
    assert now["state.db"] == whole["state.db"], what
    assert {name: now.get(name) for name in whole} == whole, what
    new = {name for name in now if name not in whole} - {
        "state.db-wal",
        "state.db-shm",
        "state.db.repair.lock",
    }
    assert {Path(name).name for name in new} <= WHOLE, (what, new)
    for name in new:
        json.loads(now[name])
    assert [receipt.status for receipt in history(home)] in ([], ["rolled-back"]), what
