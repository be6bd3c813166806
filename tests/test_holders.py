"""Who has a database open: everybody who has, nobody who has not, and never this process."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest

from hermes_dbtools import file_state
from hermes_dbtools.file_state import examine
from hermes_dbtools.holders import NOBODY, find_holders, from_psutil, lock_owners, lock_probe
from hermes_dbtools.process_names import describe

from .live_writers import unprivileged, writer, written

TABLE = "CREATE TABLE item(id INTEGER PRIMARY KEY, text TEXT)"
WAL = ("PRAGMA journal_mode=WAL", TABLE, "INSERT INTO item(text) VALUES ('one')")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state.db"


@pytest.fixture
def shared_folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(dir="/tmp") as name:
        folder = Path(name)
        folder.chmod(0o755)
        yield folder


def pids(path: Path) -> list[int]:
    return [holder.pid for holder in find_holders(path).processes]


@pytest.mark.parametrize("mode", ["DELETE", "WAL"])
def test_holders_are_listed_by_pid_until_they_end(path: Path, mode: str) -> None:
    with writer(path, f"PRAGMA journal_mode={mode}", TABLE) as one:
        with writer(path) as two, writer(path) as three:
            assert pids(path) == sorted([one.pid, two.pid, three.pid])
            assert [holder.pid for holder in from_psutil(path).processes] == pids(path)
        assert pids(path) == [one.pid]
    assert not find_holders(path).held


def test_this_process_is_not_its_own_holder(path: Path) -> None:
    written(path, *WAL)
    connection = apsw.Connection(str(path))
    connection.execute("BEGIN")
    connection.execute("SELECT * FROM item").fetchall()
    assert not find_holders(path).held
    connection.close()


def test_another_database_of_the_same_name_is_not_held(path: Path, tmp_path: Path) -> None:
    other = tmp_path / "profile" / "state.db"
    other.parent.mkdir()
    written(other, TABLE)
    with writer(path, *WAL):
        assert pids(other) == []


def test_a_hard_link_is_the_same_file(path: Path, tmp_path: Path) -> None:
    with writer(path, *WAL) as process:
        os.link(path, tmp_path / "linked.db")
        assert pids(tmp_path / "linked.db") == [process.pid]


@pytest.mark.parametrize("suffix", ["-wal", "-shm"])
@pytest.mark.parametrize("new", [False, True])
def test_a_deleted_sidecar_is_told_of_its_holder(path: Path, suffix: str, new: bool) -> None:
    with writer(path, *WAL) as process:
        assert not examine(path).deleted_sidecar
        sidecar = path.with_name(path.name + suffix)
        sidecar.unlink()
        if new:
            sidecar.touch()
        (holder,) = examine(path).holders.processes
        assert (holder.pid, holder.deleted_sidecar) == (process.pid, True)
    assert not examine(path).deleted_sidecar


def test_a_deleted_sidecar_of_a_neighbour_is_not_ours(path: Path, tmp_path: Path) -> None:
    other = tmp_path / "profile" / "state.db"
    other.parent.mkdir()
    written(path, *WAL)
    with writer(other, *WAL):
        other.with_name("state.db-wal").unlink()
        assert find_holders(path).processes == ()


def test_the_owner_of_a_write_lock_is_told_apart(path: Path) -> None:
    with writer(path, TABLE) as idle, writer(path, "BEGIN EXCLUSIVE") as locking:
        assert [holder.pid for holder in lock_owners(path, writing=True)] == [locking.pid]
        assert pids(path) == sorted([idle.pid, locking.pid])


def test_a_lock_shows_through_a_descriptor(path: Path) -> None:
    with writer(path, *WAL) as process, path.open("rb") as file:
        assert lock_probe(file.fileno()) == process.pid
    with path.open("rb") as file:
        assert lock_probe(file.fileno()) is None


def test_a_holder_in_another_pid_namespace_is_noticed_by_its_lock(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with writer(path, *WAL):
        monkeypatch.setattr(file_state, "find_holders", lambda _path: NOBODY)  # as in another container
        monkeypatch.setattr(file_state, "lock_probe", lambda _descriptor: 0)
        assert examine(path).holders.held


FIND = """
found = holders.find_holders(target)
answer = [[[holder.pid, holder.name] for holder in found.processes], found.uninspected]
"""


def test_locks_of_unreadable_processes_are_seen_and_the_rest_is_counted(shared_folder: Path) -> None:
    path = shared_folder / "state.db"
    with writer(path, *WAL) as process:
        if os.geteuid() == 0:
            os.chown(path, 65534, 65534)
        found, uninspected = unprivileged(path, FIND)
    assert process.pid in [pid for pid, _name in found]
    assert uninspected > 0 or os.geteuid() != 0


HIDE = "import ctypes; answer = ctypes.CDLL(None).prctl(4, 0, 0, 0, 0)"  # PR_SET_DUMPABLE


def test_an_unreadable_interpreter_of_the_owner_counts_as_a_holder(shared_folder: Path) -> None:
    path = written(shared_folder / "state.db", TABLE)
    with writer(shared_folder / "another.db") as process:
        assert process.run(HIDE) == 0
        found, _uninspected = unprivileged(path, FIND)
    assert dict(found)[process.pid].endswith(", not readable")


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        ([], ""),
        (["/usr/bin/sqlite3", "state.db"], "sqlite3"),
        (["python3.11", "-m", "hermes_cli.main", "gateway"], "hermes_cli.main gateway"),
        (["/opt/venv/bin/python", "/opt/venv/bin/hermes", "gateway", "--port", "1"], "hermes gateway"),
        (["python", "-u", "-m", "hermes", "https://example.invalid"], "hermes"),
        (["python", "-c", "print('secret')"], "python"),
        (["python"], "python"),
        (["node", "/srv/app/server.js", "serve"], "server.js serve"),
        (["hermes", "chat", "a private question"], "hermes"),
    ],
)
def test_a_process_is_named_without_its_arguments(arguments: list[str], name: str) -> None:
    assert describe(arguments) == name
