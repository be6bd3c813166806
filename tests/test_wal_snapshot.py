"""A copy by bytes beside writers is the one state that its read transaction sees, whatever they do meanwhile."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import apsw
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hermes_dbtools import copies, database, opening, preflight, wal_snapshot
from hermes_dbtools.database import Reading
from tests.live_writers import Writer, crashed, files_of, writer

TABLE = "CREATE TABLE item (id INTEGER PRIMARY KEY, text TEXT)"
FILL = "INSERT INTO item(text) SELECT hex(randomblob(900)) FROM json_each(json_array(1,2,3,4,5,6,7,8))"
CHANGES = {
    "append": FILL,
    "change": "UPDATE item SET text = hex(randomblob(900)) WHERE id % 3 = 0",
    "delete": "DELETE FROM item WHERE id % 4 = 1",
    "table": "CREATE TABLE IF NOT EXISTS other AS SELECT * FROM item",
    "passive": "PRAGMA wal_checkpoint(PASSIVE)",
    "truncate": "PRAGMA wal_checkpoint(TRUNCATE)",
    "vacuum": "VACUUM",
    "roll back": f"BEGIN; {FILL}; ROLLBACK",
    "spill": f"BEGIN; {FILL}",
    "commit": "COMMIT",
}
"""What a writer may do. A checkpoint goes as far as readers let it."""

BEGUN = (
    "PRAGMA journal_mode=WAL",
    "PRAGMA cache_size=2",
    TABLE,
    FILL,
    FILL,
    FILL,
    FILL,
    "PRAGMA wal_checkpoint",
)
"""A database of some twenty pages, by a writer that keeps few of them in memory before it writes them into the log."""


def does(live: Writer, change: str) -> None:
    """Let the writer do one thing; nothing happens where its own transaction forbids it."""
    live.run(
        f"try:\n    connection.executescript({CHANGES[change]!r})\nexcept sqlite3.OperationalError:\n    pass"
    )


def rows(connection: apsw.Connection) -> list[object]:
    """Everything there is."""
    schema = connection.execute("SELECT name, sql FROM sqlite_schema ORDER BY name").fetchall()
    tables = [
        name
        for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY 1")
    ]
    return [schema, *(connection.execute(f"SELECT * FROM {name} ORDER BY 1").fetchall() for name in tables)]


def copied(path: Path, target: Path, meanwhile: Callable[[], None]) -> tuple[list[object], list[object]]:
    """What a read transaction sees, and what the copy of it holds; `meanwhile` is called for every part that is copied."""

    def body(reading: Reading) -> list[object]:
        assert reading.snapshot is not None
        copies.copy_snapshot(reading.snapshot, target, lambda _text: meanwhile())
        return rows(reading.connection)

    seen = database.read(path, body, to_copy=True)
    made = database.open_private(target)
    try:
        assert made.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        return seen, rows(made)
    finally:
        made.close()


@pytest.fixture
def parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Copy a few pages at a time, so that much can happen between them."""
    monkeypatch.setattr(copies, "_PART", 4096)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    before=st.lists(st.sampled_from(sorted(CHANGES)), max_size=6),
    during=st.lists(st.sampled_from(sorted(CHANGES)), max_size=8),
)
@pytest.mark.usefixtures("parts")
def test_whatever_writers_do_the_copy_is_what_the_transaction_sees(
    before: Sequence[str], during: Sequence[str], tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("copy")
    path = folder / "live.db"
    waiting = list(during)
    with writer(path, *BEGUN) as live:
        for change in before:
            does(live, change)
        seen, made = copied(path, folder / "copy.db", lambda: does(live, waiting.pop(0)) if waiting else None)
    assert made == seen


@pytest.mark.parametrize(
    ("before", "during"),
    [
        pytest.param(["append"], ["append", "passive", "change"], id="a checkpoint of what is seen"),
        pytest.param(["append", "passive"], ["append", "append"], id="a log that starts anew"),
        pytest.param(["append", "truncate"], ["append", "passive"], id="an empty log"),
        pytest.param(["append", "truncate", "vacuum"], ["vacuum", "delete"], id="a file made anew"),
        pytest.param(["delete", "vacuum", "passive"], ["append"], id="a file that became shorter"),
        pytest.param(["spill"], ["commit", "passive"], id="frames of a transaction that is not at its end"),
        pytest.param(["append", "roll back"], ["append"], id="frames of one that was rolled back"),
    ],
)
@pytest.mark.usefixtures("parts")
def test_moments_that_matter(before: list[str], during: list[str], tmp_path: Path) -> None:
    path = tmp_path / "live.db"
    waiting = list(during)
    with writer(path, *BEGUN) as live:
        for change in before:
            does(live, change)
        seen, made = copied(
            path, tmp_path / "copy.db", lambda: does(live, waiting.pop(0)) if waiting else None
        )
        assert made == seen
        live.sql(FILL)
    assert not waiting


def test_a_log_that_starts_anew_while_its_frames_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "live.db"
    newest = wal_snapshot.newest_frames
    with writer(path, *BEGUN) as live:

        def found(mark: wal_snapshot.Mark, wal: int) -> object:
            places = newest(mark, wal)
            assert places
            live.sql(CHANGES["change"], CHANGES["change"])
            return places

        monkeypatch.setattr(wal_snapshot, "newest_frames", found)
        seen, made = copied(path, tmp_path / "copy.db", lambda: None)
    assert made == seen


def test_a_log_that_nobody_keeps_true_is_copied_page_by_page(tmp_path: Path) -> None:
    path = tmp_path / "crashed.db"
    crashed(path, "PRAGMA journal_mode=WAL", TABLE, FILL)
    before = files_of(path)
    assert database.read(path, lambda reading: (reading.how, reading.snapshot), to_copy=True) == (
        "live",
        None,
    )
    assert preflight.copy_counted(path, tmp_path / "copy.db") == {"item": 8}
    assert files_of(path) == before


def test_only_who_asks_gets_one(tmp_path: Path) -> None:
    path = tmp_path / "live.db"
    with writer(path, "PRAGMA journal_mode=WAL", TABLE, FILL):
        assert database.read(path, lambda reading: reading.snapshot) is None


def test_a_transaction_begins_anew_until_no_commit_falls_into_its_beginning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "live.db"
    asked = wal_snapshot.mark_of
    looks = []
    with writer(path, "PRAGMA journal_mode=WAL", TABLE, FILL) as live:

        def mark_of(files: wal_snapshot.Files) -> wal_snapshot.Mark | None:
            mark = asked(files)
            looks.append(mark)
            if len(looks) in commits:
                live.sql(FILL)
            return mark

        monkeypatch.setattr(wal_snapshot, "mark_of", mark_of)
        commits: range | tuple[int, ...] = (1, 3, 5)
        seen, made = copied(path, tmp_path / "copy.db", lambda: None)
        assert made == seen
        assert len(looks) == 8
        looks.clear()
        commits = range(100)
        assert database.read(path, lambda reading: reading.snapshot, to_copy=True) is None
        assert len(looks) == 1 + 2 * opening.MARK_TRIES
        looks.clear()
        assert preflight.copy_counted(path, tmp_path / "busy.db")["item"] > 8


def test_shared_memory_that_says_what_the_log_does_not_hold(tmp_path: Path) -> None:
    path = tmp_path / "live.db"
    with writer(path, "PRAGMA journal_mode=WAL", TABLE, FILL):

        def body(reading: Reading) -> None:
            assert reading.snapshot is not None
            good = reading.snapshot
            for bad in (
                {"frames": good.mark.frames + 1},
                {"pages": good.mark.pages + 1},
                {"page_size": 2 * good.mark.page_size},
            ):
                mark = wal_snapshot.Mark(
                    **{name: getattr(good.mark, name) for name in good.mark.__slots__} | bad
                )
                with pytest.raises(wal_snapshot.NotWhole):
                    copies.copy_snapshot(wal_snapshot.Snapshot(good.files, mark), tmp_path / "bad.db")
                assert not (tmp_path / "bad.db").exists()

        database.read(path, body, to_copy=True)
