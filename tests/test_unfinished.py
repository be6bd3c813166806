"""What a killed command leaves in a home is said, and goes with the next run; what a living one writes is nobody's leftover."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from hermes_dbtools.backups import restoring, taking
from hermes_dbtools.home import Home
from hermes_dbtools.sessions import export
from hermes_dbtools.undoing import history
from tests.guarded import dead_pid
from tests.old_files import backed_up, with_wal
from tests.repairs import (
    COUNTERS,
    LOST_SESSION,
    NOW,
    ROOT,
    digests,
    look,
    new_home,
    plan_of,
    repair,
    take_back,
)
from tests.running import CHECKOUT, environment, tool
from tests.test_all_or_nothing import killed as killed_repair
from tests.test_restore_crashes import SWAPPING, Killer, killed

__all__ = ["killed"]

KILLED_SALVAGE = """
import os, signal, sys
from pathlib import Path
from hermes_dbtools.salvage.salvaging import salvage
stop = lambda what: os.kill(os.getpid(), signal.SIGKILL) if what == "its values" else None
salvage(Path(sys.argv[1]), Path(sys.argv[2]), stop)
"""


def found(home: Home) -> dict[str, tuple[int, int]]:
    """What a scan says is unfinished: how many leftovers and bytes, by kind."""
    (report,) = [one for one in look(home).results if one.slug == "leftover-files"]
    told = {one.key: one.evidence for one in report.findings}
    return {str(key): (int(str(one["leftovers"])), int(str(one["bytes"]))) for key, one in told.items()}


def in_folder(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def kill_salvage(source: Path, output: Path) -> Path:
    """Kill a salvage in its middle; the file that it leaves."""
    command = [sys.executable, "-c", KILLED_SALVAGE, str(source), str(output)]
    done = subprocess.run(command, env=environment(), cwd=CHECKOUT, check=False)
    assert done.returncode == -9
    (left,) = output.parent.glob(f".{output.name}.*.partial")
    return left


@contextmanager
def flocked(path: Path) -> Iterator[None]:
    """Another process that holds a lock of ours, as a running command does."""
    code = "import fcntl, os, sys; fcntl.flock(os.open(sys.argv[1], os.O_RDONLY), fcntl.LOCK_EX); print(flush=True); input()"
    command = [sys.executable, "-c", code, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "\n"
        try:
            yield
        finally:
            child.communicate("\n")


def test_what_a_killed_salvage_leaves_is_said_and_goes_with_the_next_one(tmp_path: Path) -> None:
    home = new_home(tmp_path / "home", "22")
    output = home.root / "new.db"
    left = kill_salvage(home.database, output)
    assert found(home) == {"unfinished-files": (1, left.stat().st_size)}
    assert left.stat().st_size
    assert tool("salvage", home.database, output).code == 0
    assert in_folder(home.root) == {"state.db", "new.db"}
    assert found(home) == {}


def test_what_a_killed_salvage_leaves_is_moved_away_and_comes_back(tmp_path: Path) -> None:
    home = new_home(tmp_path / "home", "22")
    left = kill_salvage(home.database, home.root / "new.db")
    content = left.read_bytes()
    plan = plan_of(home, select=("leftover-files",), allow_lossy=True)
    assert [step.key for step in plan.steps] == ["unfinished-files"]
    repair(home, plan)
    assert not left.exists()
    assert found(home) == {}
    take_back(home)
    assert left.read_bytes() == content


def test_what_a_living_process_writes_is_no_leftover(tmp_path: Path) -> None:
    home = new_home(tmp_path / "home", "22")
    living = [
        home.root / f".new.db.{os.getpid()}.partial",
        home.root / f".new.db.{os.getpid()}-1.partial-journal",
    ]
    strange = [
        home.root / name
        for name in (".new.db.partial", ".new.db.0.partial", "new.db.77.partial", ".77.partial")
    ]
    link = home.root / f".new.db.{dead_pid()}.partial"
    for path in (*living, *strange):
        path.write_bytes(b"rows")
    link.symlink_to(home.database)
    assert found(home) == {}
    assert tool("salvage", home.database, home.root / "new.db").code == 0
    assert all(os.path.lexists(path) for path in (*living, *strange, link))


def test_a_file_of_another_name_is_not_taken_away(tmp_path: Path) -> None:
    home = new_home(tmp_path / "home", "22")
    other, own = (home.root / f".{name}.{dead_pid()}.partial" for name in ("other.db", "new.db"))
    for path in (other, own, home.root / f"{own.name}-journal"):
        path.write_bytes(b"rows")
    assert found(home) == {"unfinished-files": (3, 12)}
    assert tool("backup", "--home", home.root, "-o", home.root / "new.db").code == 0
    assert in_folder(home.root) == {"state.db", "new.db", other.name}
    again = home.root / f".talk.jsonl.{dead_pid()}.partial"
    again.write_bytes(b"half")
    export.export(home, [ROOT], str(home.root / "talk.jsonl"), export.ExportOptions(now=NOW))
    assert in_folder(home.root) == {"state.db", "new.db", "talk.jsonl", other.name}


@pytest.mark.parametrize(
    "place", ["backups.restoring._make_new:1:after", f"{SWAPPING}keep:1:after", f"{SWAPPING}rename:1:after"]
)
def test_what_a_killed_restore_leaves_is_said_and_goes_with_the_next_one(
    place: str, killed: Killer, tmp_path: Path
) -> None:
    home, copy = backed_up(tmp_path / "home")
    with_wal(home.database)
    killed(home, copy.stem, place)
    left = [path for path in home.root.glob("state.db.restore-*") if not path.samefile(home.database)]
    assert left
    names = {path.name.removesuffix("-wal").removesuffix("-shm") for path in left}
    assert found(home) == {"unfinished-restores": (len(names), sum(path.stat().st_size for path in left))}
    with flocked(home.root / "state.db.repair.lock"):
        assert found(home) == {}
    restoring.restore(home, restoring.prepare(home, copy.stem), NOW + 1)
    assert found(home) == {}
    assert not list(home.root.glob("state.db.restore-*"))


def test_a_second_name_of_the_database_itself_is_not_moved(tmp_path: Path) -> None:
    home = new_home(tmp_path / "home", "22")
    (home.root / "state.db.restore-first").hardlink_to(home.database)
    assert found(home) == {}


def test_what_a_killed_backup_leaves_is_said_and_goes_with_the_next_one(
    killed: Killer, tmp_path: Path
) -> None:
    home = new_home(tmp_path / "home", "22")
    killed(home, "backup", "preflight.verified:1:after")
    folder = home.dbtools_dir / "backups"
    size = (folder / "unfinished").stat().st_size
    assert found(home) == {"unfinished-backups": (1, size)}
    with flocked(folder):
        assert found(home) == {}
    assert taking.back_up(home, taking.BackupOptions(now=NOW + 1)).made
    assert found(home) == {}


@pytest.mark.parametrize(
    "place",
    [
        "receipts.write_private:1:before",
        "receipts.write_private:1:after",
        "receipts.write_private:2:after",
        "preflight.back_up:1:after",
        "apply.commit:1:before",
        "apply.commit:1:after",
    ],
)
def test_what_a_killed_repair_leaves_is_said_and_settled_by_the_next_one(place: str, tmp_path: Path) -> None:
    home = new_home(tmp_path / "home", "22", LOST_SESSION, COUNTERS)
    killed_repair(home, "apply", place)
    (folder,) = home.dbtools_dir.iterdir()
    size = sum(path.stat().st_size for path in folder.iterdir())
    told = {"unfinished-repairs": (1, size)} if size else {}
    assert found(home) == told
    with flocked(home.root / "state.db.repair.lock"):
        assert found(home) == {}
    assert tool("repair", home.root, "--apply", "--yes", "--select", "leftover-files").code == 0
    assert found(home) == {}
    status = "committed" if place == "apply.commit:1:after" else "rolled-back"
    assert folder.exists() == ("write_private:1" not in place)
    assert [one.status for one in history(home)] == [status] * folder.exists()
    backups = list(home.dbtools_dir.glob("*/backup.db"))
    assert bool(backups) == ("commit" in place), "what cannot have been committed needs no copy"


def test_the_folder_of_a_repair_that_runs_is_left_alone(tmp_path: Path) -> None:
    home = new_home(tmp_path / "home", "22", COUNTERS)
    other = home.root / "other.db.repair.lock"
    other.touch()
    folder = home.dbtools_dir / "20260101T000000Z-01234567"
    folder.mkdir(parents=True, mode=0o700)
    home.dbtools_dir.chmod(0o700)
    (folder / "plan.json").write_text("{}", "utf-8")
    with flocked(other):
        assert found(home) == {}
        repair(home)
        assert folder.exists()
    assert found(home) == {"unfinished-repairs": (1, 2)}
    before = digests(home.database)
    take_back(home)
    assert not folder.exists()
    assert digests(home.database) != before


def test_on_files_that_other_hosts_may_share_only_old_ones_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = new_home(tmp_path / "home", "22")
    folder = home.dbtools_dir / "backups"
    folder.mkdir(parents=True)
    (folder / "unfinished").write_bytes(b"half")
    (home.root / f".new.db.{dead_pid()}.partial").write_bytes(b"half")
    shared: Callable[[Path], str] = lambda _path: "a file system that other hosts may share"  # noqa: E731
    monkeypatch.setattr("hermes_dbtools.processes._doubt_of_place", shared)
    from hermes_dbtools.unfinished import GRACE_SECONDS, unfinished

    made = (folder / "unfinished").stat().st_ctime
    assert unfinished(home, made + GRACE_SECONDS - 10) == ()
    assert [one.kind for one in unfinished(home, made + GRACE_SECONDS + 10)] == ["unfinished-backups"]
