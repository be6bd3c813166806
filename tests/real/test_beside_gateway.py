"""Scans beside a store that appends without end: it notices nothing, and its files are only read."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from hermes_dbtools.scanning import ScanOptions, scan
from tests.real.damages import shell
from tests.real.lives import copy_of
from tests.real.looks import blind, look, wrong
from tests.real.store import Store

SCANS = 50
SIDECARS = ("state.db-wal", "state.db-shm", "state.db-journal")
PAUSE = 0.003
"""Seconds between two appends, so that the file does not outgrow the scans."""
PATIENCE = 0.25
"""Seconds an append may take beside a scan."""
NOISE = 3.0
"""How many times slower than without us an append may be where the machine itself is slower than that."""
MODES = [("0.19.0", "wal"), ("0.20.4.1", "wal"), ("0.20.4.1", "delete")]


@pytest.mark.parametrize(("release", "mode"), MODES)
def test_a_store_that_appends_notices_nothing_of_fifty_scans(release: str, mode: str, tmp_path: Path) -> None:
    path = copy_of(release, tmp_path).path
    opened: set[tuple[str, int]] = set()
    with Store(path, release, journal_mode=mode) as store:
        assert store.call("journal_mode") == mode
        store.call("create", session_id="busy")

        def scan_often() -> None:
            inodes = {name: inode(path.with_name(name)) for name in SIDECARS[:2]}
            for _ in range(SCANS):
                (report,) = scan((path,), ScanOptions(), watching(path, opened)).databases
                assert (report.error, wrong(report), blind(report)) == ("", (), {})
                assert {name: inode(path.with_name(name)) for name in SIDECARS[:2]} == inodes

        appended = assert_never_slow(store, scan_often)
        assert appended >= SCANS
        assert len(store.call("messages", session_id="busy")) == appended
        assert store.call("integrity")["integrity_check"] == ["ok"]
    # SQLite asks for a log that it may write even where it only reads: the bytes are compared in the next test.
    assert {mode for name, mode in opened if not name.endswith("-wal")} <= {os.O_RDONLY}
    assert bool(opened) == (mode == "wal")


@pytest.mark.parametrize(("release", "mode"), MODES)
def test_scans_change_no_byte_of_the_files_of_an_idle_store(release: str, mode: str, tmp_path: Path) -> None:
    path = copy_of(release, tmp_path).path
    with Store(path, release, journal_mode=mode) as store:
        store.call("create", session_id="idle")
        store.call("append", session_id="idle", content="in the log")
        before = contents(path)
        for _ in range(5):
            assert wrong(look(path)) == ()
        assert contents(path) == before
        store.call("append", session_id="idle", content="and on it goes")
    before = contents(path)
    assert wrong(look(path)) == ()
    assert contents(path) == before


def test_a_scan_of_a_large_file_beside_a_writer_finishes_or_says_that_it_cannot(tmp_path: Path) -> None:
    """In rollback journal mode a copy that is written to begins again; the writer never waits for it."""
    path = copy_of("0.20.4.1", tmp_path).path
    pages = "INSERT INTO filler SELECT randomblob(60000) FROM generate_series"
    series = (
        "(WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000) SELECT i FROM n)"
    )
    shell(path, [("CREATE TABLE filler (block BLOB)", ()), (pages.replace("generate_series", series), ())])
    outcomes: list[str] = []
    with Store(path, "0.20.4.1", journal_mode="delete") as store:
        store.call("create", session_id="busy")

        def scan_some() -> None:
            for _ in range(3):
                whole = scan((path,))
                (report,) = whole.databases
                outcomes.append(report.error)
                assert whole.exit_code == (3 if report.error else 0)
                assert report.error or (wrong(report), blind(report)) == ((), {})

        assert_never_slow(store, scan_some)
        (paused,) = scan((path,), ScanOptions(pause_writers=True)).databases
        assert (paused.error, wrong(paused)) == ("", ())
    assert all(not error or "written too often to be read" in error for error in outcomes)


def assert_never_slow(store: Store, body: Callable[[], None]) -> int:
    """No append beside the body is slower than PATIENCE, or than NOISE times one without it; returns all appended.

    A stall of ours comes back every time, one of the machine's does not: three attempts, one must be quick.
    """
    total, slowest = 0, 0.0
    for _ in range(3):
        with store.appending("busy", pause=PAUSE) as told:
            body()
        alone = store.call("append_until_told", session_id="busy", limit=told["appended"], pause=PAUSE)
        assert (told["errors"], alone["errors"]) == ([], [])
        total += int(told["appended"]) + int(alone["appended"])
        slowest = told["slowest"]
        if slowest <= max(PATIENCE, NOISE * alone["slowest"]):
            return total
    pytest.fail(f"an append took {slowest:.3f} s beside us")


def inode(path: Path) -> int | None:
    """Which file stands at a path."""
    return path.stat().st_ino if path.exists() else None


def contents(path: Path) -> dict[str, bytes | None]:
    """The bytes of a database and its sidecars; only while this process has none of them open."""
    names = (path.name, *SIDECARS)
    return {
        name: path.with_name(name).read_bytes() if path.with_name(name).exists() else None for name in names
    }


def watching(path: Path, opened: set[tuple[str, int]]) -> Callable[[str], None]:
    """A progress that notes which files of the store this process has open while it scans, and how."""

    def note(_what: str) -> None:
        for entry in Path("/proc/self/fd").iterdir():
            try:
                name = str(entry.readlink())
                flags = Path("/proc/self/fdinfo", entry.name).read_text().split("flags:")[1].split()[0]
            except FileNotFoundError:
                continue
            if name.startswith(str(path)):
                opened.add((name, int(flags, 8) & os.O_ACCMODE))

    return note
