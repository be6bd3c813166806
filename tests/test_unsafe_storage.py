"""What is said of the ground that a file lies on, by values; and how those values are told on this machine."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import apsw
import pytest

from hermes_dbtools.damage.storage.reclaimable_space import worth_a_word
from hermes_dbtools.damage.storage.unsafe_storage import FULL, judged
from hermes_dbtools.file_state import FileState, examine
from hermes_dbtools.holder_engines import Engine, has_wal_reset_fault, sqlite_version
from hermes_dbtools.model import Severity
from hermes_dbtools.mounts import Mount, mount_of
from hermes_dbtools.place import OwnedFile, Place, place_of
from tests.shapes.make import fill, make

STATE = FileState(Path("/home/state.db"), "", size=1_000_000_000, uid=1000, wal_mode=True)
ROLLBACK = FileState(Path("/home/state.db"), "", size=1_000_000_000, uid=1000)
ROOM = 50_000_000_000
ENGINES = (Engine(7, "hermes gateway", "3.50.4"), Engine(9, "hermes", "3.54.1"))


def kinds(state: FileState, place: Place) -> list[tuple[str, Severity]]:
    return [(finding.kind, finding.severity) for finding in judged(state, place)]


@pytest.mark.parametrize("kind", ["nfs4", "cifs", "virtiofs", "9p", "fuse.sshfs", "fuse.grpcfuse", "vboxsf"])
def test_a_wal_on_a_shared_file_system(kind: str) -> None:
    assert kinds(STATE, Place(kind=kind, free=ROOM)) == [("shared-file-system", Severity.WARNING)]
    assert kinds(ROLLBACK, Place(kind=kind, free=ROOM)) == [], "a rollback journal there is a choice"


@pytest.mark.parametrize(
    "kind", ["ext4", "xfs", "btrfs", "zfs", "apfs", "overlay", "tmpfs", "fuseblk", "", "NTFS"]
)
def test_a_local_or_unknown_file_system(kind: str) -> None:
    assert kinds(STATE, Place(kind=kind, free=ROOM)) == []


def test_gvisor_calls_its_own_file_system_9p() -> None:
    assert kinds(STATE, Place(kind="9p", one_kernel=True, free=ROOM)) == []
    assert kinds(STATE, Place(kind="nfs", one_kernel=True, free=ROOM)) != []


def test_room() -> None:
    assert kinds(STATE, Place(free=FULL - 1)) == [("disk-full", Severity.WARNING)]
    assert kinds(STATE, Place(free=900_000_000)) == [("no-room-for-backup", Severity.NOTE)]
    assert kinds(STATE, Place(free=1_100_000_000)) == []
    assert kinds(STATE, Place(free=None)) == []


def test_permissions_matter_where_others_get_to_the_file() -> None:
    read = (OwnedFile("state.db", 1000, 0o644), OwnedFile("state.db-wal", 1000, 0o644))
    write = (OwnedFile("state.db", 1000, 0o600), OwnedFile("state.db-wal", 1000, 0o606))
    assert kinds(STATE, Place(free=ROOM, files=read)) == []
    assert kinds(STATE, Place(free=ROOM, files=read, reachable=True)) == [("open-to-others", Severity.NOTE)]
    assert kinds(STATE, Place(free=ROOM, files=write, reachable=True)) == [
        ("open-to-others", Severity.WARNING)
    ]
    group = (OwnedFile("state.db", 1000, 0o660),)
    assert kinds(STATE, Place(free=ROOM, files=group, reachable=True)) == []


def test_a_sidecar_that_the_owner_may_not_write() -> None:
    database = OwnedFile("state.db", 1000, 0o600)
    (found,) = judged(STATE, Place(free=ROOM, files=(database, OwnedFile("state.db-wal", 0, 0o644))))
    assert (found.kind, found.severity) == ("other-owner", Severity.WARNING)
    assert "state.db-wal" in found.message
    assert kinds(STATE, Place(free=ROOM, files=(database, OwnedFile("state.db-wal", 0, 0o664)))) == []
    as_root = FileState(Path("/home/state.db"), "", size=1, uid=0)
    assert kinds(as_root, Place(free=ROOM, files=(database,))) == [], "root may write everything"


def test_two_processes_with_a_faulty_engine_share_a_wal() -> None:
    (found,) = judged(STATE, Place(free=ROOM, engines=ENGINES))
    assert (found.kind, found.severity) == ("wal-reset-fault", Severity.NOTE)
    assert "hermes gateway (pid 7, SQLite 3.50.4)" in found.message
    assert "pid 9" not in found.message
    assert kinds(STATE, Place(free=ROOM, engines=ENGINES[:1])) == []
    assert kinds(STATE, Place(free=ROOM, engines=ENGINES[1:] * 2)) == []
    assert kinds(ROLLBACK, Place(free=ROOM, engines=ENGINES)) == []


@pytest.mark.parametrize(
    ("version", "faulty"),
    [
        ("3.6.23", False), ("3.7.0", True), ("3.40.1", True), ("3.44.5", True), ("3.44.6", False), ("3.46.1", True),
        ("3.50.4", True), ("3.50.7", False), ("3.51.2", True), ("3.51.3", False), ("3.52.0", False), ("3.54.1", False),
    ],
)  # fmt: skip
def test_versions_with_the_fault(version: str, faulty: bool) -> None:
    assert has_wal_reset_fault(version) is faulty


@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="only Linux names the files of a process")
@pytest.mark.parametrize(
    "said", ["import sqlite3 as s; v = s.sqlite_version", "import apsw as s; v = s.sqlite_lib_version()"]
)
def test_the_engine_of_a_process_is_told(said: str) -> None:
    code = f"{said}; print(v, flush=True); input()"
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout
        version = process.stdout.readline().strip()
        assert sqlite_version(process.pid) == version
        process.communicate("\n")


def test_a_process_that_is_gone_or_has_no_engine_is_not_judged(tmp_path: Path) -> None:
    (tmp_path / "7").mkdir()
    (tmp_path / "7" / "maps").write_text("00400000-00500000 r-xp 00000000 08:01 77 /usr/bin/python3\n")
    assert sqlite_version(7, tmp_path) == ""
    assert sqlite_version(8, tmp_path) == ""


def test_the_innermost_mount_counts() -> None:
    among = (Mount("/", "ext4"), Mount("/srv", "nfs"), Mount("/srv/u", "xfs"), Mount("/srv/u", "tmpfs"))
    assert mount_of(Path("/srv/u/state.db"), among) == Mount("/srv/u", "tmpfs")
    assert mount_of(Path("/homer/state.db"), among) == Mount("/", "ext4")
    assert mount_of(Path("/x"), ()) is None


def test_this_machine_is_told_as_it_is(tmp_path: Path) -> None:
    path = make(tmp_path / "state.db", "22")
    fill(path)
    place = place_of(examine(path))
    assert [file.name for file in place.files] == ["state.db"]
    assert place.free
    assert not place.reachable, "the folders of tests are private"
    assert place.engines == ()


def test_free_pages_below_ten_megabytes_or_a_fifth_are_not_worth_a_word() -> None:
    assert worth_a_word(12_000_000, 12_500_000)
    assert worth_a_word(12_000_000, 60_000_000)
    assert not worth_a_word(12_000_000, 61_000_000)
    assert not worth_a_word(9_000_000, 9_500_000)


def test_apsw_is_without_the_fault() -> None:
    assert not has_wal_reset_fault(apsw.sqlite_lib_version())
