"""Where the disk is full, at whatever write: one line that says so, the right exit code, the database as it was, no half file."""

from __future__ import annotations

import json
import re
import resource
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

from hermes_dbtools.backups import taking
from hermes_dbtools.home import Home, resolve
from hermes_dbtools.receipts import read_all
from hermes_dbtools.sessions.api import delete_sessions
from hermes_dbtools.undoing import history
from tests.damage_bytes import places, zero_page
from tests.deleting import names_of
from tests.live_writers import Writer, crashed
from tests.old_files import TITLED, read_in_place
from tests.repairs import COUNTERS, LOST_SESSION, NOW, ROOT, new_home, plan_of, repair
from tests.running import CHECKOUT, tool
from tests.shapes.make import execute
from tests.test_all_or_nothing import lose_image

ROOM = re.compile(r"no space left on device|disk is full|no room|unable to open database file", re.IGNORECASE)
SETTLING = ("repair", "--apply", "--yes", "--select", "leftover-files")
"""Changes no row, and finishes what an earlier run began."""

SMALL = "14"
"""A shape of few pages."""


@dataclass(frozen=True)
class Ran:
    """One command on a disk that became full."""

    code: int
    out: str
    err: str
    writes: list[str]


class Disk:
    """A process whose forks run commands on a disk that becomes full: a home, and a folder for private copies."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.scratch = folder, folder.with_name(f"{folder.name}-scratch")
        self.holders: list[int] = []
        command = [sys.executable, "-m", "tests.disk_full_child"]
        self.process = subprocess.Popen(
            command, cwd=CHECKOUT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def run(self, words: tuple[str, ...], first: int = 0, *, always: bool = True) -> Ran:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        request = {
            "folders": [str(self.folder), str(self.scratch)],
            "words": words,
            "first": first,
            "always": always,
            "holders": self.holders,
        }
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        return Ran(**json.loads(self.process.stdout.readline()))

    def empty(self) -> None:
        """Let nothing lie on it but an empty folder for private copies."""
        for folder in (self.folder, self.scratch):
            shutil.rmtree(folder, ignore_errors=True)
        self.scratch.mkdir(parents=True)

    def close(self) -> None:
        self.process.communicate()


@pytest.fixture(scope="module")
def disk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Disk]:
    disk = Disk(tmp_path_factory.mktemp("disk") / "home")
    yield disk
    disk.close()


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Writer]:
    """A process that opens one database after another."""
    writer = Writer(tmp_path_factory.mktemp("gateway") / "none.db")
    yield writer
    writer.kill()


@dataclass(frozen=True)
class Case:
    """A home as it was before a command, the command, and whether a gateway has the database open."""

    root: Path
    disk: str
    words: tuple[str, ...]
    beside: bool

    def fresh(self, disk: Disk, gateway: Writer | None = None) -> Home:
        disk.holders = []
        if self.beside and gateway is not None:
            gateway.run("connection.close()")
        disk.empty()
        shutil.copytree(self.root, disk.folder)
        if self.beside and gateway is not None:
            database = str(disk.folder / "state.db")
            gateway.run(f"connection = sqlite3.connect({database!r}, isolation_level=None)")
            gateway.sql(TITLED, "SELECT count(*) FROM messages")
            disk.holders = [gateway.pid]
        return resolve(disk.folder, missing_ok=True)


def to_repair(folder: Path, mode: str = "wal") -> None:
    home = new_home(folder, SMALL, LOST_SESSION, COUNTERS)
    execute(home.database, f"PRAGMA journal_mode = {mode}")


def to_back_up(folder: Path, mode: str = "wal") -> None:
    home = new_home(folder, SMALL)
    execute(home.database, f"PRAGMA journal_mode = {mode}")


def to_restore(folder: Path, old: str) -> None:
    home = new_home(folder, SMALL)
    copy = Path(taking.back_up(home, taking.BackupOptions(now=NOW)).path)
    copy.rename(copy.with_name("copy.db"))
    copy.with_suffix(".json").unlink()
    change(home.database, old)


def change(database: Path, old: str) -> None:
    """Change a few rows, and leave it as a process does that was killed, or ended well."""
    if old == "hot journal":
        execute(database, "PRAGMA journal_mode = delete")
        crashed(
            database, "PRAGMA cache_size = 1", "BEGIN", "UPDATE messages SET content = content || 'x'", TITLED
        )
    elif old == "wal":
        crashed(database, TITLED)
    else:
        execute(database, TITLED)
    if old == "gone":
        database.unlink()


def to_undo(folder: Path, mode: str = "wal") -> None:
    to_repair(folder, mode)
    home = resolve(folder)
    repair(home, plan_of(home, select=DAMAGES))


def to_put_back(folder: Path) -> None:
    from tests.media import media_home

    lose_image(media_home(folder))


def to_delete(folder: Path) -> None:
    home = new_home(folder, "22")
    home.sessions_dir.mkdir()
    for name in names_of(ROOT):
        (home.sessions_dir / name).write_text(f"of {name}", "utf-8")


def to_undo_delete(folder: Path) -> None:
    to_delete(folder)
    delete_sessions(ROOT, resolve(folder), now=NOW)


def to_salvage(folder: Path, old: str) -> None:
    """A file with a page that cannot be read and a log, or with a journal that must be rolled back."""
    home = new_home(folder, SMALL)
    change(home.database, old)
    if old == "wal":
        zero_page(home.database, places(home.database)["messages", "leaf"][0].number)


DAMAGES = ("orphaned-messages", "session-counter-drift")
REPAIR = ("repair", "--select", ",".join(DAMAGES), "--apply", "--yes")
RESTORE = ("restore", "{disk}/dbtools/backups/copy.db", "--apply", "--yes")
UNDO = ("undo", "--apply", "--yes")
EXPORT = ("sessions", "export", ROOT, "-o", "{disk}/talk.jsonl")
PUT_BACK = (
    "repair", "--select", "media", "--choose", "dangling-image-references=relink", "--apply", "--yes",
)  # fmt: skip
SALVAGE = ("salvage", "{disk}/state.db", "{disk}/new.db")

Maker = Callable[[Path], None]
MAKERS: dict[str, tuple[Maker, tuple[str, ...]]] = {
    "backup": (to_back_up, ("backup",)),
    "backup to a file": (to_back_up, ("backup", "-o", "{disk}/copy.db")),
    "backup beside a gateway": (to_back_up, ("backup",)),
    "backup by journal beside a gateway": (lambda folder: to_back_up(folder, "delete"), ("backup",)),
    "restore": (lambda folder: to_restore(folder, "closed"), RESTORE),
    "restore over a wal": (lambda folder: to_restore(folder, "wal"), RESTORE),
    "restore over a hot journal": (lambda folder: to_restore(folder, "hot journal"), RESTORE),
    "restore where none is": (lambda folder: to_restore(folder, "gone"), RESTORE),
    "repair": (to_repair, REPAIR),
    "repair by journal": (lambda folder: to_repair(folder, "delete"), REPAIR),
    "repair that puts a file back": (to_put_back, PUT_BACK),
    "undo": (to_undo, UNDO),
    "undo by journal": (lambda folder: to_undo(folder, "delete"), UNDO),
    "delete": (to_delete, ("sessions", "delete", ROOT, "--apply", "--yes")),
    "undo of a delete": (to_undo_delete, UNDO),
    "export": (to_delete, EXPORT),
    "export and delete": (to_delete, (*EXPORT, "--delete-after-verified", "--yes")),
    "salvage": (lambda folder: to_salvage(folder, "wal"), SALVAGE),
    "salvage with a hot journal": (lambda folder: to_salvage(folder, "hot journal"), SALVAGE),
}
OF_THEIR_OWN = {
    "repair by journal": ("made undo", "no such write"),
    "undo of a delete": ("named", "page state.db-wal"),
    "delete": ("made trash", "no such write"),
    "export and delete": ("made trash", "no such write"),
    "repair that puts a file back": ("sync state.db-wal", "no such write"),
}
"""From which write to which one they do what no other case does."""

ALL_FAIL = {
    "backup by journal beside a gateway",
    "restore over a hot journal",
    "salvage with a hot journal",
    "undo by journal",
}
"""Where no write fails alone: others have that for the same code."""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory, disk: Disk) -> Callable[[str], Case]:
    @cache
    def make(name: str) -> Case:
        maker, words = MAKERS[name]
        folder = tmp_path_factory.mktemp("made") / "home"
        disk.empty()
        maker(disk.folder)  # at its place: a plan names its database
        shutil.copytree(disk.folder, folder)
        options = words if words[0] == "salvage" else (*words, "--home", "{disk}")
        placed = tuple(word.format(disk=disk.folder) for word in options)
        return Case(folder, str(disk.folder), placed, name.endswith("gateway"))

    return make


def files(root: Path) -> dict[str, bytes]:
    """Every file but the one in which SQLite shares its locks."""
    found = (path for path in root.rglob("*") if path.is_file() and not path.name.endswith("-shm"))
    return {str(path.relative_to(root)): path.read_bytes() for path in found}


def kind(write: str) -> str:
    """What a write was, without names that differ from run to run."""
    told = re.sub(r"\d{8}T\d{6}Z-\w+", "ID", re.sub(r"\.\d+\.partial", ".partial", write))
    return re.sub(r"hermes-dbtools-\w+", "scratch", told)


def singly(writes: list[str]) -> list[int]:
    """The numbers of the writes that are to fail alone, while what follows has room: of many of one kind the last."""
    kinds = [kind(write) for write in writes]
    return [number for number, one in enumerate(kinds, 1) if kinds[number : number + 1] != [one]]


@pytest.mark.parametrize("name", MAKERS)
def test_a_full_disk_at_every_write(
    name: str, made: Callable[[str], Case], disk: Disk, gateway: Writer, tmp_path: Path
) -> None:
    case = made(name)
    walk = Walk(name, case, disk, gateway, tmp_path / "check")
    whole = walk.good.writes
    begin, end = OF_THEIR_OWN.get(name, ("", "no such write"))
    after = next(n for n, one in enumerate(whole) if one.startswith(begin))
    last = next((n for n, one in enumerate(whole) if n > after and one.startswith(end)), len(whole))
    for first in range(after + 1, last + 1):
        walk.at(first, always=True)
    for first in singly(whole):
        if after < first <= last and name not in ALL_FAIL:
            walk.at(first, always=False)
    assert walk.refused or after, "the first writes come before there is anything to keep"


class Walk:
    """One command, again and again, each time with no room from another write on."""

    def __init__(self, name: str, case: Case, disk: Disk, gateway: Writer, check: Path) -> None:
        self.name, self.case, self.disk, self.gateway, self.check = name, case, disk, gateway, check
        home = self.fresh()
        self.whole, self.before, self.told = files(disk.folder), self.rows(home), statuses(home)
        self.good = disk.run(case.words)
        self.code = 1 if name == "salvage" else 0
        assert self.good.code == self.code, self.good
        self.after, self.made = self.rows(home), {kind(path) for path in files(disk.folder)}
        self.refused = 0
        self.again: set[object] = set()

    def fresh(self) -> Home:
        return self.case.fresh(self.disk, self.gateway)

    def rows(self, home: Home) -> dict[str, str]:
        """What the next process would read; of a damaged file its bytes are what counts."""
        if self.name.startswith("salvage") or not home.database.exists():
            return {}
        return read_in_place(home.database, self.check)

    def at(self, first: int, *, always: bool) -> None:
        home, what = self.fresh(), (first, self.good.writes[first - 1], always)
        ran = self.disk.run(self.case.words, first, always=always)
        assert "Traceback" not in ran.err, (what, ran.err)
        assert not list(self.disk.scratch.iterdir()), what
        if ran.code == 0 or (ran.code == 1 and self.code == 1):
            # The write could be done without, or in another way.
            assert self.rows(home) == self.after, what
        elif ran.code == 1:
            self.assert_done(home, ran, what)
        else:
            self.assert_refused(home, ran, what)
        self.run_again(home, ran, what)

    def assert_done(self, home: Home, ran: Ran, what: object) -> None:
        """It came behind the COMMIT or the last rename, and says so."""
        line = ran.err.splitlines()[-1]
        assert re.search("rows are (repaired|changed), but|is taken back, but|is in place.*, but", line), (
            what,
            ran,
        )
        assert ROOM.search(line), (what, line)
        assert self.rows(home) == self.after, what

    def assert_refused(self, home: Home, ran: Ran, what: object) -> None:
        self.refused += 1
        assert ran.code in ((2,) if self.name == "export" else (3, 4)), (what, ran)
        line = ran.err.splitlines()[-1]
        exported = self.name.startswith("export") and "talk.jsonl: " in ran.err
        assert len(ran.err.splitlines()) == 1 + exported * (ran.code == 4), (what, ran.err)
        assert line.startswith("hermes-dbtools: "), (what, line)
        assert ROOM.search(line), (what, line)
        assert ran.code != 3 or "set TMPDIR to a folder with more room" in line, (what, line)
        assert self.rows(home) == self.before, what
        assert_nothing_is_left(home, self.whole, self.told, what, exported=exported)

    def run_again(self, home: Home, ran: Ran, what: object) -> None:
        """With room it succeeds; looked at once for each thing that is left behind."""
        left = frozenset(kind(name) for name in files(home.root))
        if (ran.code, left) in self.again:
            return
        self.again.add((ran.code, left))
        receipts = "dbtools" in str(left) and not self.name.startswith(("backup", "restore", "salvage"))
        if ran.code in (0, 1) and receipts:
            done = self.disk.run((*SETTLING, "--home", str(self.disk.folder)))
            assert done.code == 0, (what, done)
            assert {one.status for one in read_all(home)} <= {"committed", "undone", "rolled-back"}, what
        elif ran.code > 1:
            talk = self.disk.folder / "talk.jsonl"
            talk.unlink(missing_ok=True)
            done = self.disk.run(self.case.words)
            assert done.code == self.code, (what, done)
        else:
            return
        assert self.rows(home) == self.after, what


def assert_nothing_is_left(
    home: Home, whole: dict[str, bytes], told: list[str], what: object, *, exported: bool = False
) -> None:
    """Each file is what it was, and the only new ones are those in which a repair says that it changed nothing."""
    now = files(home.root)
    unsaid = {"state.db-wal"} if "state.db" in now else set()
    changed = {name for name in whole if now.get(name) != whole[name]} - unsaid
    assert not changed, (what, changed)
    new = {name for name in now if name not in whole} - unsaid - {"state.db.repair.lock"}
    may = {"plan.json", "receipt.json", *(("talk.jsonl",) if exported else ())}
    assert {Path(name).name for name in new} <= may, (what, new)
    for name in new - {"talk.jsonl"}:
        json.loads(now[name])
    assert statuses(home) in (told, [*told, "rolled-back"]), what


def statuses(home: Home) -> list[str]:
    return [receipt.status for receipt in history(home)] if home.database.exists() else []


@pytest.mark.parametrize("words", [("scan",), ("salvage", "{new}"), ("space",)], ids=lambda words: words[0])
def test_no_folder_for_private_copies_is_one_line(words: tuple[str, ...], tmp_path: Path) -> None:
    home = new_home(tmp_path / "home", SMALL)
    crashed(home.database, TITLED)
    home.database.with_name("state.db-shm").unlink()
    whole = files(home.root)
    rest = [word.format(new=tmp_path / "new.db") for word in words[1:]]
    ran = tool(
        words[0], home.database, *rest, before=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    )
    assert ran.code == 3, ran
    (line,) = [one for one in (ran.out + ran.err).splitlines() if "TMPDIR" in one]
    assert "set TMPDIR to a folder with more room" in line
    assert "Traceback" not in ran.err
    assert files(home.root) == whole


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


@pytest.mark.parametrize(("name", "most"), [("backup", 80), ("restore over a wal", 240), ("repair", 180)])
def test_a_disk_that_is_really_full(
    name: str, most: int, made: Callable[[str], Case], small_disk: Path, tmp_path: Path
) -> None:
    case = made(name)
    disk = Disk(small_disk / "disk")
    words = tuple(word.replace(case.disk, str(disk.folder)) for word in case.words)
    before = None
    codes = []
    for pages in range(0, most + 1, most // 8):
        disk.empty()
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
            (line,) = ran.err.splitlines()
            assert ROOM.search(line), (pages, line)
            assert_nothing_is_left(home, whole, [], pages)
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
