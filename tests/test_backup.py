"""A backup is a whole copy of one moment, nobody notices it, and none is made twice."""

from __future__ import annotations

import json
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from hermes_dbtools import database
from hermes_dbtools.backups import shelf, taking
from hermes_dbtools.backups.documents import BackupDocument, BackupsDocument
from hermes_dbtools.home import Home, resolve
from hermes_dbtools.model import CouldNotLook, Refused
from tests.live_writers import crashed, files_of, unprivileged, writer
from tests.old_files import MORE, OLD, TITLED, read_in_place
from tests.repairs import COUNTERS, LOST_SESSION, NOW, digests, new_home, repair, take_back
from tests.running import tool
from tests.shapes.make import execute

ADDED = "INSERT INTO messages (session_id, role, content, timestamp) SELECT id, 'user', 'more', 1 FROM sessions LIMIT 1"


@pytest.fixture
def shared_folder() -> Iterator[Path]:
    """A folder that other users can enter: those of pytest they cannot."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        yield Path(name)


def back_up(home: Home, at: float = 0, keep: int | None = None) -> BackupDocument:
    return taking.back_up(home, taking.BackupOptions(keep=keep, now=NOW + at))


def shelved(home: Home) -> list[str]:
    return sorted(path.name for path in (home.dbtools_dir / "backups").iterdir())


@pytest.mark.parametrize("old", OLD)
def test_a_backup_holds_what_the_next_process_would_read_and_changes_nothing(
    old: str, tmp_path: Path
) -> None:
    home = new_home(tmp_path / "home", "22")
    OLD[old](home.database)
    before = files_of(home.database)
    if old == "with_hot_journal":
        with pytest.raises(Refused, match="runbook split-wal"):
            back_up(home)
        assert files_of(home.database) == before
        assert shelved(home) == []
        return
    done = back_up(home)
    assert files_of(home.database) == before
    assert read_in_place(Path(done.path), tmp_path / "check") == read_in_place(
        home.database, tmp_path / "check"
    )
    assert shelved(home) == [f"{done.name}.db", f"{done.name}.json"]
    assert done.made
    assert done.name == f"20260921T141320Z-{done.sha256[:8]}"
    assert done.size == Path(done.path).stat().st_size


@pytest.mark.parametrize("mode", ["wal", "delete"])
def test_a_process_that_has_the_file_open_notices_nothing(mode: str, tmp_path: Path) -> None:
    home = new_home(tmp_path / "home", "22")
    with writer(home.database, f"PRAGMA journal_mode={mode}", MORE) as live:
        before = files_of(home.database)
        done = back_up(home)
        assert files_of(home.database) == before
        live.sql(ADDED, "BEGIN IMMEDIATE", ADDED)
        assert read_in_place(Path(done.path), tmp_path / "check")["messages"] != ""
        live.sql("COMMIT")
        again = back_up(home, 1)
        assert again.made
        assert again.rows["messages"] == done.rows["messages"] + 2


def test_what_has_not_changed_is_not_copied_twice(tmp_path: Path) -> None:
    home = new_home(tmp_path / "home", "22", LOST_SESSION, COUNTERS)
    first = back_up(home)
    assert back_up(home, 1) == msgspec.structs.replace(first, made=False)
    execute(home.database, "VACUUM")
    assert not back_up(home, 2).made, "the same rows in other pages"
    receipt = repair(home)
    second = back_up(home, 3)
    assert second.made
    take_back(home, receipt.id)
    assert back_up(home, 4).made, "the last one holds what was undone"
    execute(home.database, "UPDATE sessions SET message_count = message_count + 1")
    assert back_up(home, 5).made, "as many rows, and others"
    execute(home.database, "CREATE INDEX added ON messages (role)")
    assert back_up(home, 6).made, "the same rows, another schema"
    ran = tool("backup", str(home.root))
    assert (ran.code, ran.out.splitlines()[0]) == (
        0,
        "nothing has changed since the last backup, of 2026-09-21 14:13:26Z: none was made",
    )


def test_a_last_backup_that_was_written_to_is_no_backup(tmp_path: Path) -> None:
    home = new_home(tmp_path / "home", "22")
    first = Path(back_up(home).path)
    content = bytearray(first.read_bytes())
    content[-1] ^= 0xFF
    first.write_bytes(content)
    assert [one.verified for one in shelf.kept(home)] == [False]
    assert back_up(home, 1).made
    assert [one.verified for one in shelf.kept(home)] == [False, True]


def test_keep_removes_the_oldest_backups_of_this_database_and_nothing_else(tmp_path: Path) -> None:
    home = new_home(tmp_path / "home", "22", COUNTERS)
    folder = home.dbtools_dir / "backups"
    made = [back_up(home).name]
    receipt = repair(home)
    for number in range(1, 4):
        execute(home.database, ADDED)
        made.append(back_up(home, number).name)
    other = new_home(tmp_path / "other", "22")
    shutil.copyfile(other.database, home.root / "second.db")
    second = back_up(resolve(home.root / "second.db"), -50)
    (folder / "mine.db").write_bytes(b"not ours")
    record = home.dbtools_dir / receipt.id / "receipt.json"
    needed = str(folder / f"{made[1]}.db")
    record.write_bytes(record.read_bytes().replace(receipt.backup.encode(), needed.encode()))
    execute(home.database, ADDED)
    done = back_up(home, 9, keep=2)
    assert done.removed == tuple(str(folder / f"{name}.db") for name in (made[0], made[2]))
    assert done.needed == (needed,)
    assert shelved(home) == sorted(
        [f"{name}{tail}" for name in (made[1], made[3], done.name, second.name) for tail in (".db", ".json")]
        + ["mine.db"]
    )
    record.write_bytes(b"{")
    execute(home.database, ADDED)
    with pytest.raises(Refused, match="the backup is made and no older one was removed"):
        back_up(home, 10, keep=1)
    assert len(shelved(home)) == 11


def test_the_list(tmp_path: Path) -> None:
    home = new_home(tmp_path / "home", "22", COUNTERS)
    made, receipt = back_up(home, -5), repair(home)
    ran = tool("backup", "--list", str(home.root))
    assert ran.code == 0
    heads, *lines, blank, total = ran.out.splitlines()
    assert heads.split() == ["backup", "when", "what", "size", "sessions", "messages", "rows", "verified"]
    assert [line.split()[0] for line in lines] == [made.name, receipt.id]
    assert all(line.endswith("yes") for line in lines)
    assert "before a repair" in lines[1]
    assert (blank, total[:9]) == ("", "2 in all,")
    listed = msgspec.json.decode(
        tool("backup", "--list", str(home.root), "--format", "json").out, type=BackupsDocument
    )
    assert [(one.kind, one.verified, one.rows) for one in listed.backups] == [
        ("backup", True, sum(made.rows.values())),
        ("repair", True, sum(made.rows.values())),
    ]
    home.database.unlink()
    assert tool("backup", "--list", str(home.root)).out == ran.out, (
        "a lost database has its backups all the same"
    )
    assert tool("backup", "--list", str(tmp_path)).out == "no backup of this database by hermes-dbtools\n"


def test_a_backup_to_a_file_of_ones_own(tmp_path: Path) -> None:
    home = new_home(tmp_path / "home", "22")
    target = tmp_path / "a ?#% %41\nname.db"
    ran = tool("backup", str(home.root), "-o", str(target), "--format", "json")
    assert ran.code == 0, ran.err
    assert json.loads(ran.out)["path"] == str(target)
    assert digests(target) == digests(home.database)
    assert stat.S_IMODE(target.stat().st_mode) == 0o600
    assert not (home.root / "dbtools").exists()
    content = target.read_bytes()
    ran = tool("backup", str(home.root), "-o", str(target))
    assert (ran.code, target.read_bytes()) == (4, content)
    assert "is there already" in ran.err
    assert len(ran.err.splitlines()) == 1


@pytest.mark.parametrize("beside", ["-wal", "-shm", "-journal"])
def test_no_file_gets_the_sidecars_of_another(beside: str, tmp_path: Path) -> None:
    home = new_home(tmp_path / "home", "22")
    stale = tmp_path / f"copy.db{beside}"
    stale.write_bytes(b"of another file")
    ran = tool("backup", str(home.root), "-o", str(tmp_path / "copy.db"))
    assert (ran.code, stale.read_bytes()) == (4, b"of another file")
    assert not (tmp_path / "copy.db").exists()


def test_arguments_that_exclude_each_other(tmp_path: Path) -> None:
    home = str(new_home(tmp_path / "home", "22").root)
    for words in (
        ("--list", "--keep", "1"),
        ("--list", "-o", "x"),
        ("-o", "x", "--keep", "1"),
        ("-o", "-"),
        ("--keep", "0"),
    ):
        assert tool("backup", home, *words, cwd=tmp_path).code == 2, words
    assert tool("backup", home, "-o", "missing/x.db", cwd=tmp_path).code == 2
    assert os.listdir(tmp_path) == ["home"]  # noqa: PTH208 - names


def test_files_and_folders_are_private_and_owned_like_the_database(tmp_path: Path) -> None:
    home = new_home(tmp_path / "home", "22")
    if os.geteuid() == 0:
        for path in (home.root, home.database):
            os.chown(path, 1234, 4321)
    done = back_up(home)
    owner = home.database.stat()
    for path in (
        home.dbtools_dir,
        home.dbtools_dir / "backups",
        Path(done.path),
        Path(done.path).with_suffix(".json"),
    ):
        found = path.stat()
        assert (found.st_uid, found.st_gid) == (owner.st_uid, owner.st_gid), path
        assert stat.S_IMODE(found.st_mode) == (0o700 if path.is_dir() else 0o600), path


def test_a_folder_that_is_a_link_or_open_to_others_is_refused(tmp_path: Path) -> None:
    home = new_home(tmp_path / "home", "22")
    (tmp_path / "elsewhere").mkdir()
    home.dbtools_dir.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(Refused, match="not a folder of ours"):
        back_up(home)
    home.dbtools_dir.unlink()
    home.dbtools_dir.mkdir(mode=0o755)
    home.dbtools_dir.chmod(0o755)
    with pytest.raises(Refused, match="open to other users"):
        back_up(home)
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_a_database_behind_a_link(tmp_path: Path) -> None:
    real = new_home(tmp_path / "real", "22")
    home = tmp_path / "home"
    home.mkdir()
    (home / "state.db").symlink_to(real.database)
    done = back_up(resolve(home))
    assert Path(done.path).parent == home / "dbtools" / "backups"
    assert not back_up(resolve(home), 1).made
    assert digests(Path(done.path)) == digests(real.database)


def test_a_folder_that_may_not_be_written_to(shared_folder: Path) -> None:
    home = new_home(shared_folder / "home", "22")
    home.root.chmod(0o755)
    home.database.chmod(0o644)
    code = """
try:
    taking.back_up(home.resolve(target), taking.BackupOptions())
except ToolError as error:
    answer = [error.exit_code, str(error)]
"""
    before = files_of(home.database)
    answer = unprivileged(home.root, code)
    assert answer[0] == 4
    assert "dbtools: cannot be made" in answer[1]
    assert files_of(home.database) == before


def test_what_is_no_whole_store_gets_no_backup(tmp_path: Path) -> None:
    home = new_home(tmp_path / "home", "22")
    crashed(home.database, MORE, TITLED)
    whole = home.database.read_bytes()
    (root,) = execute(home.database, "SELECT rootpage FROM sqlite_schema WHERE name = 'sessions'")[0]
    with home.database.open("r+b") as file:
        file.seek((root - 1) * 4096)
        file.write(b"\xff" * 4096)
    with pytest.raises(Refused, match="structural-damage"):
        back_up(home)
    assert shelved(home) == []
    home.database.write_bytes(whole[:5000])
    with pytest.raises(CouldNotLook, match="shorter than its header says"):
        back_up(home)
    assert tool("backup", str(tmp_path / "nothing.db")).code == 3


def test_too_little_room_is_said_before_anything_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = new_home(tmp_path / "home", "22")
    monkeypatch.setattr("hermes_dbtools.database.free_bytes", lambda _folder: home.database.stat().st_size)
    with pytest.raises(Refused, match="needed for the copy; nothing was changed; make room"):
        back_up(home)
    with pytest.raises(Refused, match="needed for the copy"):
        taking.back_up(home, taking.BackupOptions(output=tmp_path / "copy.db"))
    assert os.listdir(home.root) == ["state.db"]  # noqa: PTH208 - names
    assert os.listdir(tmp_path) == ["home"]  # noqa: PTH208 - names


def test_two_backups_at_once(tmp_path: Path) -> None:
    home = new_home(tmp_path / "home", "22")
    with shelf.opened(home, database.examine(home.database)):
        ran = tool("backup", str(home.root))
    assert ran.code == 4
    assert "another backup or restore is running" in ran.err
    assert tool("backup", str(home.root)).code == 0
