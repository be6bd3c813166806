"""What the recorder writes is what an undo reads: every batch, backwards, or none at all."""

from __future__ import annotations

import io
from pathlib import Path
from typing import BinaryIO

import apsw
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hermes_dbtools import recorder
from hermes_dbtools.model import Refused
from hermes_dbtools.recorder import MAGIC, Recorder, batches_backwards

SCHEMA = """
CREATE TABLE a (id INTEGER PRIMARY KEY, x);
CREATE TABLE b (id TEXT PRIMARY KEY, of INTEGER REFERENCES a(id) ON DELETE CASCADE);
WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 50) INSERT INTO a SELECT i, 'row ' || i FROM n;
INSERT INTO b SELECT 'b' || id, id FROM a;
"""
Row = tuple[object, ...]


def database() -> apsw.Connection:
    connection = apsw.Connection(":memory:")
    connection.execute(SCHEMA)
    connection.execute("PRAGMA foreign_keys = ON")
    return connection


def rows(connection: apsw.Connection) -> list[list[Row]]:
    return [connection.execute(f"SELECT * FROM {name} ORDER BY id").fetchall() for name in ("a", "b")]


def take_back(connection: apsw.Connection, path: Path, sha256: str) -> None:
    connection.execute("PRAGMA foreign_keys = OFF")
    for changeset in batches_backwards(path, sha256):
        apsw.Changeset.apply(apsw.Changeset.invert(changeset), connection)


def run(recording: Recorder, connection: apsw.Connection, sql: str) -> None:
    before = connection.total_changes()
    connection.execute(sql)
    recording.note("a", connection.changes(), connection.total_changes() - before)


def written(
    folder: Path, *statements: str, flush: bool = True
) -> tuple[apsw.Connection, Path, str, Recorder]:
    """A database after these statements, the undo file and its digest."""
    connection, path = database(), folder / "undo"
    with path.open("wb") as file:
        recording = Recorder(connection, ("a", "b"), file)
        for sql in statements:
            run(recording, connection, sql)
            if flush:
                recording.flush()
        digest = recording.finish()
    return connection, path, digest, recording


STATEMENTS = st.lists(
    st.one_of(
        st.integers(1, 50).map(lambda n: f"DELETE FROM a WHERE id = {n}"),
        st.integers(1, 50).map(lambda n: f"UPDATE a SET x = x || '!' WHERE id >= {n}"),
        st.integers(51, 60).map(lambda n: f"INSERT OR IGNORE INTO a VALUES ({n}, 'new')"),
        st.integers(1, 50).map(lambda n: f"UPDATE b SET of = NULL WHERE id = 'b{n}'"),
    ),
    max_size=12,
)


@given(STATEMENTS, st.booleans())
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_whatever_happened_is_taken_back(tmp_path: Path, statements: list[str], flush: bool) -> None:
    connection, path, digest, _recording = written(tmp_path, *statements, flush=flush)
    take_back(connection, path, digest)
    assert rows(connection) == rows(database())


def test_each_flush_is_a_batch_and_an_empty_one_is_none(tmp_path: Path) -> None:
    _connection, path, digest, _recording = written(
        tmp_path,
        "DELETE FROM a WHERE id = 1",
        "DELETE FROM a WHERE id = 1",
        "UPDATE a SET x = 0 WHERE id = 2",
    )
    found = list(batches_backwards(path, digest))
    assert [{change.op for change in apsw.Changeset.iter(one)} for one in found] == [{"UPDATE"}, {"DELETE"}]
    assert [recorder.count(one) for one in found] == [1, 2]
    assert path.read_bytes().startswith(MAGIC)


def test_nothing_recorded_is_an_empty_undo(tmp_path: Path) -> None:
    _connection, path, digest, _recording = written(tmp_path)
    assert list(batches_backwards(path, digest)) == []


def test_what_cascades_is_counted_apart(tmp_path: Path) -> None:
    _connection, _path, _digest, recording = written(
        tmp_path, "DELETE FROM a WHERE id < 4", "UPDATE a SET x = 1"
    )
    assert recording.changes.direct == {"a": 50}
    assert recording.changes.indirect == {("b", "DELETE"): 3}
    assert recording.changes.tables == {"a", "b"}


@pytest.mark.parametrize("place", [0, 5, len(MAGIC), len(MAGIC) + 3, 60, -1])
def test_one_altered_byte_is_refused_before_anything_is_given(place: int, tmp_path: Path) -> None:
    _connection, path, digest, _recording = written(tmp_path, "DELETE FROM a WHERE id < 9", "DELETE FROM a")
    content = bytearray(path.read_bytes())
    content[place] ^= 1
    path.write_bytes(bytes(content))
    with pytest.raises(Refused, match="not the one that was written"):
        next(batches_backwards(path, digest))


@given(st.integers(0, 200))
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_file_cut_short_is_refused(tmp_path: Path, left: int) -> None:
    _connection, path, digest, _recording = written(tmp_path, "DELETE FROM a WHERE id < 9", "DELETE FROM a")
    content = path.read_bytes()
    path.write_bytes(content[: min(left, len(content) - 1)])
    with pytest.raises(Refused):
        next(batches_backwards(path, digest))


def test_a_batch_is_full_by_what_it_holds_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    connection, file = database(), io.BytesIO()
    monkeypatch.setattr(recorder, "BATCH_BYTES", 4_000)
    recording = Recorder(connection, ("a", "b"), file)
    assert not recording.batch_full()
    connection.execute("DELETE FROM a")
    assert recording.batch_full()
    recording.close()


class _Full(io.BytesIO):
    def write(self, _data: object) -> int:
        raise OSError(28, "No space left on device")


def test_a_full_disk_is_not_passed_over() -> None:
    full: BinaryIO = _Full()
    with pytest.raises(OSError, match="No space left"):
        Recorder(database(), ("a", "b"), full).finish()
