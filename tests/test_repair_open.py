"""The only writable connection, the repair lock, private files, and copies that can be believed."""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

import apsw
import apsw.fts5
import pytest

from hermes_dbtools.database import (
    checkpoint_passive,
    copy_database,
    examine,
    free_bytes,
    open_for_repair,
    private_copy,
    private_folder,
    read,
    repair_lock,
    verify_copy,
)
from hermes_dbtools.model import Refused

from .live_writers import crashed, files_of, unprivileged, writer, written

TABLES = (
    "CREATE TABLE item(id INTEGER PRIMARY KEY, text TEXT)",
    "CREATE TABLE part(id INTEGER PRIMARY KEY, item INTEGER REFERENCES item(id))",
    "INSERT INTO item(text) VALUES ('one'), ('two')",
)
WAL = ("PRAGMA journal_mode=WAL", *TABLES)
LOCK = """
try:
    with private_files.repair_lock(target):
        answer = "taken"
except ToolError as error:
    answer = str(error)
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state.db"


@pytest.fixture
def shared_folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(dir="/tmp") as name:
        folder = Path(name)
        folder.chmod(0o755)
        yield folder
        folder.chmod(0o755)


def value(connection: apsw.Connection, pragma: str) -> object:
    return connection.execute(f"PRAGMA {pragma}").fetchall()[0][0]


@pytest.mark.parametrize("foreign_keys", [True, False])
@pytest.mark.parametrize("mode", ["wal", "delete"])
def test_the_writable_connection_has_its_settings(path: Path, mode: str, foreign_keys: bool) -> None:
    written(path, f"PRAGMA journal_mode={mode}", *TABLES)
    connection = open_for_repair(path, foreign_keys=foreign_keys)
    assert value(connection, "foreign_keys") == int(foreign_keys)
    assert value(connection, "trusted_schema") == 0
    assert value(connection, "journal_mode") == mode
    assert value(connection, "busy_timeout") == 5000
    assert value(connection, "wal_autocheckpoint") == 0
    with pytest.raises(apsw.SQLError):
        connection.execute('SELECT "no such column" FROM item')
    with pytest.raises(apsw.SQLError, match="may not be modified"):
        connection.execute("PRAGMA writable_schema=ON; DELETE FROM sqlite_schema")
    connection.close()


def test_foreign_keys_hold_in_a_transaction(path: Path) -> None:
    written(path, *TABLES)
    connection = open_for_repair(path, foreign_keys=True)
    connection.execute("BEGIN IMMEDIATE")
    with pytest.raises(apsw.ConstraintError):
        connection.execute("INSERT INTO part(item) VALUES (99)")
    connection.execute("ROLLBACK")
    connection.close()


def test_beside_a_holder_neither_a_commit_nor_the_close_checkpoints(path: Path) -> None:
    with writer(path, *WAL) as other:
        before = files_of(path)[""]
        connection = open_for_repair(path, foreign_keys=True)
        connection.execute("INSERT INTO item(text) VALUES ('three')")
        connection.close()
        assert files_of(path)[""] == before
        assert other.run("answer = connection.execute('SELECT count(*) FROM item').fetchone()[0]") == 3
        assert not examine(path).deleted_sidecar


def test_offline_the_sidecars_outlive_the_close_and_a_checkpoint_moves_the_rows(path: Path) -> None:
    written(path, *WAL)
    before = files_of(path)[""]
    connection = open_for_repair(path, foreign_keys=True)
    connection.execute("INSERT INTO item(text) VALUES ('three')")
    assert files_of(path)[""] == before
    checkpoint_passive(connection)
    connection.close()
    after = files_of(path)
    assert after[""] != before
    assert set(after) == {"", "-wal", "-shm"}


def test_a_checkpoint_of_a_rollback_file_is_nothing(path: Path) -> None:
    written(path, *TABLES)
    connection = open_for_repair(path, foreign_keys=True)
    checkpoint_passive(connection)
    assert value(connection, "journal_mode") == "delete"
    connection.close()


def test_nothing_is_created_and_no_wal_is_lost(path: Path) -> None:
    with pytest.raises(Refused, match="cannot be opened for writing"):
        open_for_repair(path, foreign_keys=True)
    crashed(path, *WAL)
    os.truncate(path, 0)
    with pytest.raises(Refused, match="not a database with content"):
        open_for_repair(path, foreign_keys=True)
    assert set(files_of(path)) == {"", "-wal", "-shm"}


def test_a_file_that_may_only_be_read_is_refused(shared_folder: Path) -> None:
    path = written(shared_folder / "state.db", *TABLES)
    path.chmod(0o444)
    code = (
        "try:\n    connections.open_for_repair(target, foreign_keys=True)\n"
        "except ToolError as error:\n    answer = str(error)"
    )
    assert "may only be read" in unprivileged(path, code)


def test_the_lock_is_exclusive_and_stays_with_its_content(path: Path) -> None:
    written(path, *TABLES).chmod(0o640)
    with repair_lock(path) as lock:
        assert lock == path.with_name("state.db.repair.lock")
        assert stat.S_IMODE(lock.stat().st_mode) == 0o640
        with pytest.raises(Refused, match="another repair is running"), repair_lock(path):
            pytest.fail("taken twice")
        lock.write_text("of upstream")
    with repair_lock(path) as lock:
        assert lock.read_text() == "of upstream"
    assert lock.exists()


def test_the_lock_holds_against_other_processes(shared_folder: Path) -> None:
    path = written(shared_folder / "state.db", *TABLES)
    path.chmod(0o666)
    with repair_lock(path):
        assert "another repair is running" in unprivileged(path, LOCK)
    assert unprivileged(path, LOCK) == "taken"


def test_a_lock_that_cannot_be_made_is_not_a_free_one(shared_folder: Path) -> None:
    path = written(shared_folder / "state.db", *TABLES)
    shared_folder.chmod(0o555)
    assert "cannot be opened (permission denied)" in unprivileged(path, LOCK)


@pytest.mark.parametrize("target", ["elsewhere", "state.db"])
def test_a_link_in_place_of_the_lock_is_refused(path: Path, target: str) -> None:
    written(path, *TABLES)
    path.with_name("state.db.repair.lock").symlink_to(path.with_name(target))
    with pytest.raises(Refused, match="cannot be opened"), repair_lock(path):
        pytest.fail("followed a link")
    assert not path.with_name("elsewhere").exists()


def test_a_fifo_in_place_of_the_lock_is_refused(path: Path) -> None:
    written(path, *TABLES)
    os.mkfifo(path.with_name("state.db.repair.lock"))
    with pytest.raises(Refused, match="not a regular file"), repair_lock(path):
        pytest.fail("locked a FIFO")


def test_the_lock_of_a_linked_database_lies_beside_the_real_one(path: Path, tmp_path: Path) -> None:
    written(path, *TABLES)
    (tmp_path / "link.db").symlink_to(path)
    with repair_lock(tmp_path / "link.db") as lock:
        assert lock == path.with_name("state.db.repair.lock")


def test_private_folders_are_made_and_taken(path: Path, tmp_path: Path) -> None:
    state = examine(written(path, *TABLES))
    folder = private_folder(tmp_path / "dbtools", state)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert private_folder(folder, state) == folder
    assert free_bytes(folder) > 0


@pytest.mark.parametrize("case", ["link", "file", "open", "no parent"])
def test_folders_that_are_not_private_are_refused(path: Path, tmp_path: Path, case: str) -> None:
    state = examine(written(path, *TABLES))
    folder = tmp_path / "dbtools"
    if case == "link":
        (tmp_path / "other").mkdir(0o700)
        folder.symlink_to("other")
    elif case == "file":
        folder.touch()
    elif case == "open":
        folder.mkdir()
        folder.chmod(0o755)
    else:
        folder = folder / "deeper"
    with pytest.raises(Refused):
        private_folder(folder, state)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_what_root_makes_belongs_to_the_owner_of_the_database(path: Path, tmp_path: Path) -> None:
    os.chown(written(path, *TABLES), 1234, 2345)
    state = examine(path)
    folder = private_folder(tmp_path / "dbtools", state)
    with repair_lock(path) as lock:
        made = [folder.stat(), lock.stat()]
    read(path, lambda reading: copy_database(reading.connection, folder / "backup.db"))
    made.append((folder / "backup.db").stat())
    assert [(found.st_uid, found.st_gid) for found in made] == [(1234, 2345)] * 3


@pytest.mark.parametrize("mode", ["WAL", "DELETE"])
def test_a_copy_is_private_whole_and_never_replaces_a_file(path: Path, tmp_path: Path, mode: str) -> None:
    copy = tmp_path / "backup.db"
    with writer(path, f"PRAGMA journal_mode={mode}", *TABLES):
        before = files_of(path)
        read(path, lambda reading: copy_database(reading.connection, copy))
        assert files_of(path) == before
        with pytest.raises(Refused, match="file exists"):
            read(path, lambda reading: copy_database(reading.connection, copy))
    assert stat.S_IMODE(copy.stat().st_mode) == 0o600
    verification = verify_copy(copy)
    assert (verification.problems, verification.search_problems) == ((), ())
    assert dict(verification.rows) == {"item": 2, "part": 0}
    assert sorted(files_of(copy)) == [""]


COPY_WITHOUT_ROOM = """
import resource, signal
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (8192, 8192))
try:
    copy = target.with_name("backup.db")
    database.read(target, lambda reading: database.copy_database(reading.connection, copy))
except ToolError as error:
    answer = str(error)
"""


def test_a_copy_that_fails_leaves_nothing(shared_folder: Path) -> None:
    path = written(shared_folder / "state.db", *WAL, FILL_ITEMS)
    shared_folder.chmod(0o777)
    assert "the copy failed" in unprivileged(path, COPY_WITHOUT_ROOM)
    assert [entry.name for entry in shared_folder.iterdir()] == ["state.db"]


def test_a_private_copy_can_be_written_and_goes(path: Path) -> None:
    def body(connection: apsw.Connection) -> Path:
        with private_copy(connection) as copy:
            repaired = open_for_repair(copy, foreign_keys=True)
            repaired.execute("DELETE FROM item")
            repaired.close()
            return copy

    with writer(path, *WAL) as other:
        copy = read(path, lambda reading: body(reading.connection))
        assert other.run("answer = connection.execute('SELECT count(*) FROM item').fetchone()[0]") == 2
    assert not copy.parent.exists()


SEARCH = "CREATE VIRTUAL TABLE item_fts USING fts5(text)"
FILL = (
    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 300) "
    "INSERT INTO item_fts(text) SELECT 'word' || i FROM n"
)


def test_a_broken_search_index_is_no_damage_of_the_copy(path: Path) -> None:
    written(
        path, *TABLES, SEARCH, FILL, "DELETE FROM item_fts_idx", "DELETE FROM item_fts_docsize WHERE id > 9"
    )
    verification = verify_copy(path)
    assert verification.problems == ()
    assert verification.search_problems
    assert dict(verification.rows) == {"item": 2, "part": 0}


def test_an_unreadable_search_index_does_not_hide_damage_elsewhere(path: Path) -> None:
    written(path, *TABLES, SEARCH, FILL, "UPDATE item_fts_config SET v = 99 WHERE k = 'version'")
    (problem,) = verify_copy(path).search_problems
    assert "item_fts" in problem
    assert verify_copy(path).problems == ()
    spare(path)
    assert any("never used" in line for line in verify_copy(path).problems)


def test_an_index_whose_tokenizer_is_missing_does_not_fail_the_copy(path: Path) -> None:
    written(path, *TABLES)
    connection = apsw.Connection(str(path))
    tokenizer = apsw.fts5.UnicodeWordsTokenizer
    connection.register_fts5_tokenizer("elsewhere", tokenizer)  # type: ignore[arg-type]  # apsw's stub is off
    connection.execute("CREATE VIRTUAL TABLE item_fts USING fts5(text, tokenize='elsewhere')")
    connection.execute("INSERT INTO item_fts(text) VALUES ('some words')")
    connection.close()
    verification = verify_copy(path)
    assert verification.problems == ()
    assert dict(verification.rows) == {"item": 2, "part": 0}
    spare(path)
    assert any("never used" in line for line in verify_copy(path).problems)


def test_a_garbled_page_is_listed_not_raised(path: Path) -> None:
    written(path, *TABLES, FILL_ITEMS)
    content = bytearray(path.read_bytes())
    size = int.from_bytes(content[16:18], "big")
    last = len(content) - size
    for start in (last - 2 * size, last - size, last):
        content[start : start + 200] = b"\xff" * 200
    path.write_bytes(content)
    verification = verify_copy(path)
    assert verification.problems
    assert any(line.startswith("item: ") for line in verification.problems)
    assert dict(verification.rows) == {"part": 0}


FILL_ITEMS = (
    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 900) "
    "INSERT INTO item(text) SELECT hex(zeroblob(200)) FROM n"
)


def spare(path: Path) -> None:
    """Add a page to the file that no tree and no free list has."""
    content = bytearray(path.read_bytes())
    size = int.from_bytes(content[16:18], "big")
    content += bytes(size)
    content[28:32] = (len(content) // size).to_bytes(4, "big")
    path.write_bytes(content)


def test_what_is_no_database_is_a_problem_of_the_copy(path: Path) -> None:
    assert verify_copy(path).problems
    path.write_bytes(b"x" * 4096)
    assert "not a database" in verify_copy(path).problems[0]
