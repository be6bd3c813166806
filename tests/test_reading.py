"""How each state of a file is opened (design 3.1), and that reading it leaves no trace."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import apsw
import pytest

from hermes_dbtools import copies
from hermes_dbtools.database import STARTS, Reading, examine, read
from hermes_dbtools.file_marks import Moved
from hermes_dbtools.model import CouldNotLook
from hermes_dbtools.opening import opened
from hermes_dbtools.verification import tables, whole_file

from .live_writers import Writer, appender, crashed, files_of, unprivileged, writer, written

TABLE = "CREATE TABLE item(id INTEGER PRIMARY KEY, text TEXT)"
TWO = "INSERT INTO item(text) VALUES ('one'), ('two')"
WAL = ("PRAGMA journal_mode=WAL", TABLE, TWO)
ROLLBACK = (TABLE, TWO)
BIG = (
    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 4000) "
    "INSERT INTO item(text) SELECT hex(zeroblob(500)) FROM n"
)

NOBODY = 65534
Arrange = Callable[[Path, ExitStack], None]


def count(reading: Reading) -> int:
    ((rows,),) = reading.connection.execute("SELECT count(*) FROM item").fetchall()
    assert isinstance(rows, int)
    return rows


def remove(path: Path, *suffixes: str) -> None:
    for suffix in suffixes:
        path.with_name(path.name + suffix).unlink()


def live_wal(path: Path, stack: ExitStack) -> None:
    stack.enter_context(writer(path, *WAL))


def live_wal_in_transaction(path: Path, stack: ExitStack) -> None:
    stack.enter_context(writer(path, *WAL, "BEGIN IMMEDIATE", "INSERT INTO item(text) VALUES ('unseen')"))


def crashed_wal(path: Path, _stack: ExitStack) -> None:
    crashed(path, *WAL)


def crashed_wal_with_a_torn_index(path: Path, _stack: ExitStack) -> None:
    crashed(path, *WAL)
    path.with_name(path.name + "-shm").write_bytes(b"x" * 32768)


def closed_wal(path: Path, _stack: ExitStack) -> None:
    written(path, *WAL)


def empty_wal(path: Path, _stack: ExitStack) -> None:
    written(path, *WAL)
    path.with_name(path.name + "-wal").touch()


def empty_wal_with_index(path: Path, _stack: ExitStack) -> None:
    crashed(path, *WAL, "PRAGMA wal_checkpoint(TRUNCATE)")


def header_of_a_wal(path: Path, _stack: ExitStack) -> None:
    """What a disk leaves that is full when the first frame is written."""
    crashed(path, *WAL)
    wal = path.with_name(path.name + "-wal")
    written_ahead = wal.read_bytes()
    crashed(path, "PRAGMA wal_checkpoint(TRUNCATE)")
    wal.write_bytes(written_ahead[:32])


def index_without_wal(path: Path, _stack: ExitStack) -> None:
    crashed(path, *WAL, "PRAGMA wal_checkpoint(TRUNCATE)")
    remove(path, "-wal")


def wal_without_index(path: Path, _stack: ExitStack) -> None:
    crashed(path, *WAL)
    remove(path, "-shm")


def exclusive_wal(path: Path, stack: ExitStack) -> None:
    stack.enter_context(writer(path, "PRAGMA locking_mode=EXCLUSIVE", *WAL))


def wal_holder_that_has_not_read(path: Path, stack: ExitStack) -> None:
    written(path, *WAL)
    stack.enter_context(writer(path))


def rollback_alone(path: Path, _stack: ExitStack) -> None:
    written(path, *ROLLBACK)


def rollback_held(path: Path, stack: ExitStack) -> None:
    stack.enter_context(writer(path, *ROLLBACK))


def rollback_held_in_transaction(path: Path, stack: ExitStack) -> None:
    begun = ("BEGIN IMMEDIATE", "INSERT INTO item(text) VALUES ('unseen')")
    stack.enter_context(writer(path, *ROLLBACK, *begun))


def persisted_journal(path: Path, _stack: ExitStack) -> None:
    written(path, "PRAGMA journal_mode=PERSIST", *ROLLBACK)


def truncated_journal(path: Path, _stack: ExitStack) -> None:
    written(path, "PRAGMA journal_mode=TRUNCATE", *ROLLBACK)


def rollback_beside_a_wal(path: Path, _stack: ExitStack) -> None:
    """A restored file beside the `-wal` of another: SQLite would make a `-shm` for it."""
    written(path, *ROLLBACK)
    path.with_name(path.name + "-wal").write_bytes(b"\x37\x7f\x06\x82" + b"\0" * 60)


def hot_journal(path: Path, _stack: ExitStack) -> None:
    crashed(path, *ROLLBACK, "PRAGMA cache_size=1", "BEGIN", BIG)


def deleted_wal(path: Path, stack: ExitStack) -> None:
    stack.enter_context(writer(path, *WAL, "PRAGMA wal_checkpoint(PASSIVE)"))
    remove(path, "-wal", "-shm")


def deleted_wal_with_a_new_one(path: Path, stack: ExitStack) -> None:
    stack.enter_context(writer(path, *WAL, "PRAGMA wal_checkpoint(PASSIVE)"))
    remove(path, "-wal", "-shm")
    path.with_name(path.name + "-wal").touch()


ROWS: tuple[tuple[Arrange, str, bool], ...] = (
    (live_wal, "live", True),
    (live_wal_in_transaction, "live", True),
    (crashed_wal, "live", True),
    (crashed_wal_with_a_torn_index, "live", True),
    (empty_wal_with_index, "immutable", True),
    (header_of_a_wal, "immutable", True),
    (closed_wal, "immutable", True),
    (empty_wal, "immutable", True),
    (index_without_wal, "immutable", True),
    (wal_holder_that_has_not_read, "immutable", True),
    (wal_without_index, "copy", True),
    (exclusive_wal, "copy", True),
    (rollback_alone, "immutable", True),
    (persisted_journal, "immutable", True),
    (truncated_journal, "immutable", True),
    (rollback_held, "copy", True),
    (rollback_held_in_transaction, "copy", True),
    (rollback_beside_a_wal, "copy", True),
    (hot_journal, "immutable", False),
    (deleted_wal, "immutable", False),
    (deleted_wal_with_a_new_one, "immutable", False),
)
EVERY_ROW = pytest.mark.parametrize(
    ("arrange", "how", "trusted"), ROWS, ids=[row[0].__name__ for row in ROWS]
)


@pytest.fixture(autouse=True)
def scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Where private copies go; nothing may be left in it."""
    folder = tmp_path / "scratch"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    yield folder
    assert list(folder.iterdir()) == []


@EVERY_ROW
def test_each_state_is_opened_as_the_table_says_and_stays_as_it_was(
    tmp_path: Path, arrange: Arrange, how: str, trusted: bool
) -> None:
    path = tmp_path / "state.db"
    with ExitStack() as stack:
        arrange(path, stack)
        before = files_of(path)
        seen = read(path, lambda reading: (reading.how, reading.rows_trusted, count(reading)))
        assert files_of(path) == before
    assert seen == (how, trusted, 2)


@EVERY_ROW
def test_an_error_of_the_body_leaves_no_trace_either(
    tmp_path: Path, arrange: Arrange, how: str, trusted: bool
) -> None:
    def fail(reading: Reading) -> None:
        assert (reading.how, reading.rows_trusted) == (how, trusted)
        reading.connection.execute("SELECT * FROM no_such_table")

    path = tmp_path / "state.db"
    with ExitStack() as stack:
        arrange(path, stack)
        before = files_of(path)
        with pytest.raises(apsw.SQLError, match="no_such_table"):
            read(path, fail)
        assert files_of(path) == before


@EVERY_ROW
def test_temporary_tables_work_and_the_file_cannot_be_written(
    tmp_path: Path, arrange: Arrange, how: str, trusted: bool
) -> None:
    def body(reading: Reading) -> list[tuple[object, ...]]:
        assert (reading.how, reading.rows_trusted) == (how, trusted)
        reading.connection.execute("CREATE TEMP TABLE suspect AS SELECT id FROM item")
        with pytest.raises(apsw.ReadOnlyError):
            reading.connection.execute("DELETE FROM item")
        return reading.connection.execute("SELECT id FROM suspect ORDER BY id").fetchall()

    path = tmp_path / "state.db"
    with ExitStack() as stack:
        arrange(path, stack)
        assert read(path, body) == [(1,), (2,)]


@pytest.mark.parametrize(
    "arrange", [live_wal, rollback_held, wal_without_index], ids=lambda case: case.__name__
)
def test_the_body_sees_one_state_while_others_write(tmp_path: Path, arrange: Arrange) -> None:
    path = tmp_path / "state.db"
    with ExitStack() as stack:
        arrange(path, stack)
        other = stack.enter_context(writer(path))

        def body(reading: Reading) -> tuple[int, int]:
            first = count(reading)
            other.sql("INSERT INTO item(text) VALUES ('three')")
            return first, count(reading)

        assert read(path, body) == (2, 2)
        assert read(path, count) == 3


def test_a_file_that_moves_under_an_immutable_read_is_read_again(tmp_path: Path) -> None:
    path = written(tmp_path / "state.db", *WAL)
    seen: list[tuple[str, int]] = []
    with ExitStack() as stack:

        def body(reading: Reading) -> int:
            seen.append((reading.how, count(reading)))
            if len(seen) == 1:
                stack.enter_context(writer(path, "INSERT INTO item(text) VALUES ('three')"))
            return count(reading)

        assert read(path, body) == 3
    assert seen == [("immutable", 2), ("live", 3)]


def test_an_error_under_a_file_that_moved_is_thrown_away(tmp_path: Path) -> None:
    path = written(tmp_path / "state.db", *WAL)
    calls: list[str] = []

    def body(reading: Reading) -> int:
        calls.append(reading.how)
        if len(calls) == 1:
            written(path, "INSERT INTO item(text) VALUES ('three')")
            raise apsw.CorruptError("what a torn read looks like")
        return count(reading)

    assert read(path, body) == 3
    assert calls == ["immutable", "immutable"]


def test_a_file_that_always_moves_is_given_up(tmp_path: Path) -> None:
    path = written(tmp_path / "state.db", *WAL)
    calls: list[int] = []

    def body(reading: Reading) -> None:
        calls.append(count(reading))
        written(path, TWO)

    with pytest.raises(CouldNotLook, match="written too often to be read"):
        read(path, body)
    assert calls == [2 + 2 * turn for turn in range(STARTS)]


def test_sidecars_that_go_between_the_look_and_the_open_are_not_made_again(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    with writer(path, *WAL) as other:
        state = examine(path)
        other.close()
    with pytest.raises(Moved), opened(state, pause_writers=False):
        pytest.fail("it must not be opened as it was")
    assert list(files_of(path)) == [""]


def test_a_writer_that_ends_during_a_live_read_leaves_the_reader_its_state(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    with writer(path, *WAL) as other:

        def body(reading: Reading) -> int:
            other.close()
            return count(reading)

        assert read(path, body) == 2
    assert read(path, count) == 2


def test_fifty_reads_beside_a_live_writer_give_it_no_error(tmp_path: Path) -> None:
    path = written(tmp_path / "state.db", *WAL)
    with writer(path, "SELECT * FROM item"), appender(path, 0.002) as result:
        counts = [read(path, count) for _ in range(50)]
    assert result["errors"] == []
    assert result["count"] > 0
    assert counts == sorted(counts)


def test_a_scan_does_not_stall_a_writer_with_a_rollback_journal(tmp_path: Path) -> None:
    path = written(tmp_path / "state.db", *ROLLBACK, "PRAGMA synchronous=OFF", *[BIG] * 8)
    with appender(path, 0.005) as alone:
        for _ in range(20):
            examine(path)
    outcomes: set[str] = set()
    with appender(path, 0.005) as beside:
        for _ in range(10):
            try:
                outcomes.add(read(path, lambda reading: reading.how))
            except CouldNotLook as error:
                outcomes.add("written too often" if "written too often" in str(error) else str(error))
    assert beside["errors"] == []
    assert beside["worst"] < alone["worst"] + 0.25
    assert outcomes <= {"copy", "written too often"}


def test_a_writer_who_comes_while_a_quiet_rollback_file_is_read_does_not_wait(tmp_path: Path) -> None:
    path = written(tmp_path / "state.db", *ROLLBACK)
    came: list[str] = []

    def body(reading: Reading) -> int:
        if not came:
            came.append(reading.how)
            with writer(path, "PRAGMA busy_timeout=0", "INSERT INTO item(text) VALUES ('meanwhile')"):
                pass
        return count(reading)

    assert read(path, body) == 3
    assert came == ["immutable"]


def test_a_file_written_faster_than_it_is_copied_could_not_be_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(copies, "STEP_PAGES", 4)
    monkeypatch.setattr(copies, "STEP_SECONDS", 0.0)
    path = written(tmp_path / "state.db", *ROLLBACK, BIG)
    with appender(path, 0.0) as result:
        with pytest.raises(CouldNotLook, match="written too often") as caught:
            read(path, count)
        assert read(path, lambda reading: reading.how, pause_writers=True) == "copy"
    assert "--pause-writers" in str(caught.value)
    assert result["errors"] == []


@pytest.mark.parametrize("mode", ["DELETE", "WAL"])
def test_a_locked_file_names_who_locks_it(tmp_path: Path, mode: str) -> None:
    path = written(tmp_path / "state.db", f"PRAGMA journal_mode={mode}", *ROLLBACK)
    locking = ("PRAGMA locking_mode=EXCLUSIVE", "BEGIN EXCLUSIVE", TWO)
    with writer(path, *locking) as other:
        before = files_of(path)
        if mode == "DELETE":
            with pytest.raises(CouldNotLook, match=rf"locked by .+ \(pid {other.pid}\)"):
                read(path, count)
        else:
            assert read(path, count) == 2
        assert files_of(path) == before


@pytest.mark.parametrize(
    "name",
    [
        b"a?b.db",
        b"a#b.db",
        b"50%25.db",
        b"with space.db",
        b"new\nline.db",
        b"caf\xe9.db",
        b"-wal",
        b"'q\".db",
    ],
)
@pytest.mark.parametrize("mode", ["DELETE", "WAL"])
def test_any_file_name_opens_that_file(tmp_path: Path, name: bytes, mode: str) -> None:
    path = tmp_path / os.fsdecode(name)
    with writer(path, f"PRAGMA journal_mode={mode}", *ROLLBACK):
        assert read(os.fsencode(path), count) == 2
    assert read(path, count) == 2
    assert sorted(entry.name for entry in tmp_path.iterdir() if entry.stat().st_size == 0) == []


def test_a_link_is_followed_to_the_sidecars_of_the_real_file(tmp_path: Path) -> None:
    real = tmp_path / "real.db"
    link = tmp_path / "state.db"
    link.symlink_to(real)
    with writer(real, *WAL):
        assert read(link, lambda reading: (reading.how, count(reading))) == ("live", 2)
    assert sorted(entry.name for entry in tmp_path.iterdir()) == [
        *("real.db", "real.db-shm", "real.db-wal"),
        *("scratch", "state.db"),
    ]


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda _path: None, "no such file"),
        (lambda path: path.mkdir(), "a folder"),
        (lambda path: os.mkfifo(path), "FIFO"),
        (lambda path: path.touch(), "0 bytes"),
        (lambda path: path.write_bytes(bytes(8192)), "zero bytes"),
        (lambda path: path.write_bytes(b"not a database, and long enough" * 9), "not an SQLite database"),
    ],
    ids=["missing", "folder", "fifo", "empty", "zeroes", "other"],
)
def test_what_is_no_database_is_one_line(tmp_path: Path, make: Callable[[Path], object], said: str) -> None:
    path = tmp_path / "state.db"
    make(path)
    with pytest.raises(CouldNotLook, match=said):
        read(path, count)


def test_an_empty_database_keeps_the_wal_that_sqlite_would_delete(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    crashed(path, *WAL)
    os.truncate(path, 0)
    before = files_of(path)
    with pytest.raises(CouldNotLook, match=r"0 bytes, and a -wal of [\d,]+ bytes"):
        read(path, count)
    assert files_of(path) == before
    assert "-wal" in before


def test_a_journal_that_nobody_alive_owns_is_noticed_by_sqlite_too(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    with ExitStack() as stack:
        hot_journal(path, stack)
        stack.enter_context(
            writer(path)
        )  # holds the file, but has not read it, so it has rolled nothing back
        before = files_of(path)
        assert not examine(path).hot_journal
        assert read(path, lambda reading: (reading.how, reading.rows_trusted)) == ("immutable", False)
        assert files_of(path) == before


def test_a_copy_needs_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "state.db"
    monkeypatch.setattr(copies, "free_bytes", lambda _folder: 100)
    with writer(path, *ROLLBACK), pytest.raises(CouldNotLook, match="set TMPDIR"):
        read(path, count)


def test_copies_are_for_this_user_only(tmp_path: Path) -> None:
    path = written(tmp_path / "state.db", *ROLLBACK)
    with copies.scratch_folder(1) as folder:
        copies.copy_plain(path, folder / "plain.db")
        copies.copy_beside_writers(examine(path), folder / "copy.db", pause_writers=False)
        modes = [entry.stat().st_mode & 0o777 for entry in (folder, *folder.iterdir())]
    assert modes == [0o700, 0o600, 0o600]


def test_the_file_itself_is_verified_without_a_trace(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    with writer(path, *WAL):
        before = files_of(path)
        problems, _search = read(path, lambda reading: whole_file(reading.connection))
        unreadable, _search, rows = read(path, lambda reading: tables(reading.connection))
        assert files_of(path) == before
    assert (problems, unreadable, rows) == ((), (), {"item": 2})


@pytest.fixture
def shared_folder() -> Iterator[Path]:
    """A folder that a user without rights can enter, unlike pytest's."""
    with tempfile.TemporaryDirectory(dir="/tmp") as name:
        folder = Path(name)
        folder.chmod(0o755)
        yield folder


READ_COUNT = """
try:
    answer = database.read(target, lambda reading: [
        reading.how, reading.connection.execute("SELECT count(*) FROM item").fetchall()[0][0]])
except ToolError as error:
    answer = str(error)
"""


@pytest.mark.parametrize(
    ("arrange", "how"),
    [
        (live_wal, "live"),
        (crashed_wal, "live"),
        (closed_wal, "immutable"),
        (wal_without_index, "copy"),
        (rollback_alone, "immutable"),
    ],
    ids=lambda case: getattr(case, "__name__", ""),
)
def test_a_folder_that_may_only_be_read_is_enough(shared_folder: Path, arrange: Arrange, how: str) -> None:
    path = shared_folder / "state.db"
    with ExitStack() as stack:
        arrange(path, stack)
        for entry in shared_folder.iterdir():
            entry.chmod(0o444)
            if os.geteuid() == 0:
                os.chown(
                    entry, NOBODY, NOBODY
                )  # root's programs cannot be looked into and would count as holders
        shared_folder.chmod(0o555)
        before = files_of(path)
        assert unprivileged(path, READ_COUNT) == [how, 2]
        assert files_of(path) == before
    shared_folder.chmod(0o755)


@pytest.mark.parametrize("closed", ["", "-wal", "-shm"])
def test_a_file_of_another_user_is_one_line(shared_folder: Path, closed: str) -> None:
    path = shared_folder / "state.db"
    crashed(path, *WAL)
    path.with_name(path.name + closed).chmod(0o000)
    said = unprivileged(path, READ_COUNT)
    assert isinstance(said, str)
    assert "run as the user who owns" in said


def test_the_helper_process_reports_its_errors(tmp_path: Path) -> None:
    process = Writer(written(tmp_path / "state.db", *ROLLBACK))
    with pytest.raises(AssertionError, match="no such table"):
        process.sql("SELECT * FROM no_such_table")
    process.close()
