"""What `examine` says of a file before SQLite sees it: damage is named, a healthy file is never accused."""

from __future__ import annotations

import os
import socket
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from hermes_dbtools.file_state import (
    JOURNAL_MAGIC,
    FileState,
    Look,
    examine,
    header_page_count,
    judge,
    page_size,
)
from hermes_dbtools.model import CouldNotLook

from .live_writers import crashed, files_of, unprivileged, writer, written

TABLE = "CREATE TABLE item(id INTEGER PRIMARY KEY, text TEXT)"
ROWS = (
    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 500) "
    "INSERT INTO item(text) SELECT hex(zeroblob(200)) FROM n"
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state.db"


def header(*, size: int = 4096, pages: int = 10, current: bool = True, version: int = 1) -> bytes:
    made = bytearray(100)
    made[:16] = b"SQLite format 3\0"
    made[16:18] = (1 if size == 65536 else size).to_bytes(2, "big")
    made[18:20] = bytes((version, version))
    made[21:24] = b"\x40\x20\x20"
    made[24:28] = (7).to_bytes(4, "big")
    made[28:32] = pages.to_bytes(4, "big")
    made[92:96] = (7 if current else 6).to_bytes(4, "big")
    return bytes(made)


def look(head: bytes, size: int, *, wal: int | None = None, journal: bytes = b"") -> Look:
    return Look(head, size, wal, len(journal), journal[:8])


@pytest.mark.parametrize(
    ("seen", "problem"),
    [
        (look(header(), 40960), ""),
        (look(header(), 40959), "truncated"),
        (look(header(), 45056), ""),
        (look(header(), 4096, wal=4128), ""),
        (look(header(), 4096, wal=0), "truncated"),
        (look(header(), 4096, journal=JOURNAL_MAGIC + bytes(504)), ""),
        (look(header(), 4096, journal=bytes(512)), "truncated"),
        (look(header(current=False), 4096), ""),
        (look(header(pages=0), 4096), ""),
        (look(header(size=65536, pages=2), 131072), ""),
        (look(header(size=65536, pages=2), 131071), "truncated"),
        (look(header(size=512, pages=3), 1536), ""),
        (look(header(size=1000), 40960), "wrong-header"),
        (look(header(size=256), 40960), "wrong-header"),
        (look(header(version=2), 40960), ""),
        (look(header(version=3), 40960), "wrong-header"),
        (look(b"x" * 100, 40960), "wrong-header"),
        (look(b"SQLite format 3\0", 16), "truncated"),
        (look(b"SQLite", 6), "wrong-header"),
        (look(b"", 0), "empty"),
        (look(b"", 0, wal=4128), "empty"),
    ],
)
def test_the_verdict_follows_from_the_bytes_of_one_moment(seen: Look, problem: str) -> None:
    assert judge(seen) == problem


@pytest.mark.parametrize("size", [512, 1024, 4096, 65536])
@pytest.mark.parametrize("mode", ["DELETE", "WAL"])
def test_pages_are_counted_as_sqlite_does(path: Path, size: int, mode: str) -> None:
    with writer(path, f"PRAGMA page_size={size}", f"PRAGMA journal_mode={mode}", TABLE, ROWS) as process:
        if mode == "WAL":
            process.sql("PRAGMA wal_checkpoint(PASSIVE)")
        pages = process.run("answer = connection.execute('PRAGMA page_count').fetchone()[0]")
        state = examine(path)
    assert (state.problem, state.page_size, state.page_count) == ("", size, pages)
    assert state.wal_mode == (mode == "WAL")
    head = path.read_bytes()[:100]
    assert (page_size(head), header_page_count(head)) == (size, pages)


def test_a_wal_that_holds_almost_everything_is_no_damage(path: Path) -> None:
    crashed(path, "PRAGMA journal_mode=WAL", "PRAGMA wal_autocheckpoint=0", TABLE, ROWS)
    state = examine(path)
    assert state.problem == ""
    assert state.size == 4096
    assert state.wal_size is not None
    assert state.wal_size > 100_000
    assert state.shm


@pytest.mark.parametrize(
    ("make", "problem"),
    [
        (lambda _path: None, "missing"),
        (lambda path: path.symlink_to("nowhere"), "missing"),
        (lambda path: path.mkdir(), "directory"),
        (lambda path: os.mkfifo(path), "not-a-file"),
        (lambda path: path.symlink_to("/dev/null"), "not-a-file"),
        (lambda path: path.touch(), "empty"),
        (lambda path: path.write_bytes(bytes(100)), "zeroes"),
        (lambda path: path.write_bytes(bytes(3 << 20)), "zeroes"),
        (lambda path: path.write_bytes(bytes(60)), "zeroes"),
        (lambda path: path.write_bytes(bytes((3 << 20) - 1) + b"x"), "wrong-header"),
        (lambda path: path.write_bytes(bytes(4096) + b"x" * 4096), "wrong-header"),
        (lambda path: path.write_bytes(b"plain text"), "wrong-header"),
    ],
    ids=[
        "missing",
        "dangling",
        "folder",
        "fifo",
        "device",
        "empty",
        "z100",
        "z3M",
        "z60",
        "tail",
        "page",
        "text",
    ],
)
def test_what_is_no_database_is_named(path: Path, make: Callable[[Path], object], problem: str) -> None:
    make(path)
    assert examine(path).problem == problem


def test_a_socket_is_no_database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # the path of a socket is short by law
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("state.db")
        assert examine("state.db").problem == "not-a-file"


def test_a_file_below_a_file_is_missing(path: Path) -> None:
    path.touch()
    assert examine(path / "state.db").problem == "missing"


def test_a_loop_of_links_is_one_line(path: Path) -> None:
    path.symlink_to(path)
    with pytest.raises(CouldNotLook, match="symbolic link"):
        examine(path)


def test_a_cut_off_file_is_truncated_and_stays_as_it_is(path: Path) -> None:
    written(path, TABLE, ROWS)
    os.truncate(path, path.stat().st_size - 4096)
    before = files_of(path)
    state = examine(path)
    assert (state.problem, state.page_count * state.page_size - state.size) == ("truncated", 4096)
    assert files_of(path) == before


def test_links_lead_to_the_real_file(path: Path, tmp_path: Path) -> None:
    real = written(tmp_path / "elsewhere.db", TABLE)
    path.symlink_to(real)
    assert examine(path).path == real


def test_a_journal_is_hot_only_when_nobody_alive_may_own_it(path: Path) -> None:
    spill = ("PRAGMA cache_size=1", "BEGIN", ROWS)
    with writer(path, TABLE, *spill) as process:
        assert process.pid in [holder.pid for holder in examine(path).holders.processes]
        assert not examine(path).hot_journal
    assert examine(path).hot_journal
    journal = path.with_name("state.db-journal")
    journal.write_bytes(bytes(len(journal.read_bytes())))
    assert not examine(path).hot_journal


def test_damage_that_is_gone_a_moment_later_is_not_reported(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written(path, TABLE, ROWS)
    whole = path.read_bytes()
    path.write_bytes(b"")
    monkeypatch.setattr("hermes_dbtools.file_state.time.sleep", lambda _seconds: path.write_bytes(whole))
    assert examine(path).problem == ""


def test_a_healthy_file_is_never_accused_while_it_is_written(path: Path) -> None:
    with writer(path, TABLE) as process:
        states: list[FileState] = []
        for turn in range(40):
            process.sql(ROWS if turn % 4 else "DELETE FROM item", "VACUUM" if turn % 8 == 0 else "SELECT 1")
            states.append(examine(path))
    assert {(state.problem, state.hot_journal, state.deleted_sidecar) for state in states} == {
        ("", False, False)
    }


@pytest.fixture
def shared_folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(dir="/tmp") as name:
        folder = Path(name)
        folder.chmod(0o755)
        yield folder


def test_a_file_that_may_not_be_read_is_named(shared_folder: Path) -> None:
    path = written(shared_folder / "state.db", TABLE)
    path.chmod(0o000)
    assert unprivileged(path, "answer = file_state.examine(target).problem") == "no-permission"
    shared_folder.chmod(0o000)
    assert unprivileged(path, "answer = file_state.examine(target).problem") == "no-permission"
    shared_folder.chmod(0o755)


def test_mode_and_owner_are_those_of_the_file(path: Path) -> None:
    written(path, TABLE).chmod(0o640)
    found, state = path.stat(), examine(path)
    assert (state.mode, state.uid, state.gid) == (0o640, found.st_uid, found.st_gid)
