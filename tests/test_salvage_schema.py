"""A salvage where the rows are whole and something around them is not: the schema, the order of columns, the values."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import apsw
import pytest

from hermes_dbtools.salvage.salvaging import salvage
from hermes_dbtools.scanning import ScanOptions, scan
from tests import damage_bytes
from tests.running import tool_here
from tests.salvaging import all_rows
from tests.shapes.make import execute, fill, make
from tests.test_storage_classes import SCHEMAS, half_schema

NOW = 1_790_000_000.0


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """A filled store without sidecars."""
    (tmp_path / "home").mkdir()
    path = make(tmp_path / "home" / "state.db", "22", journal_mode="delete")
    fill(path)
    return path


def found(path: Path) -> list[tuple[str, str]]:
    """The damage that a scan finds in the values of a file."""
    (report,) = scan((path,), ScanOptions(now=NOW, select=("values",))).databases
    assert report.error == ""
    return [(finding.code, finding.key) for result in report.results for finding in result.findings]


@pytest.mark.parametrize("change", SCHEMAS.values(), ids=SCHEMAS.keys())
def test_a_schema_that_nobody_reads_gives_all_its_rows(change: str, store: Path, tmp_path: Path) -> None:
    rows = all_rows(store)
    half_schema(store, change)
    with closing(apsw.Connection(str(store))) as connection, pytest.raises(apsw.CorruptError):
        connection.execute("SELECT count(*) FROM messages")
    salvage(store, tmp_path / "new.db")
    assert all_rows(tmp_path / "new.db") == rows


@pytest.mark.parametrize("lost", ["idx_sessions_source", "sqlite_schema"])
def test_rows_keep_their_columns_where_an_upgrade_put_them_in_another_order(
    lost: str, store: Path, tmp_path: Path
) -> None:
    with closing(apsw.Connection(str(store))) as connection:
        for column, kind in (("model", "TEXT"), ("cwd", "TEXT")):
            kept = connection.execute(f"SELECT {column}, id FROM sessions").fetchall()
            connection.execute(f"ALTER TABLE sessions DROP COLUMN {column}")
            connection.execute(f"ALTER TABLE sessions ADD COLUMN {column} {kind}")
            connection.executemany(f"UPDATE sessions SET {column} = ? WHERE id = ?", kept)
    rows = all_rows(store)
    root = execute(store, "SELECT rootpage FROM sqlite_schema WHERE name = ?", (lost,))
    damage_bytes.flip_page(store, root[0][0] if root else 1)
    salvage(store, tmp_path / "new.db")
    assert all_rows(tmp_path / "new.db") == rows


def test_whole_pages_are_not_taken_for_good_values(store: Path, tmp_path: Path) -> None:
    execute(store, "UPDATE sessions SET model_config = ? WHERE id = '20260528_212640_6b86b2'", ('{"a":',))
    execute(store, "UPDATE sessions SET started_at = 8.4e252 WHERE id = '20260528_222640_d4735e'")
    bad = found(store)
    assert {code for code, _key in bad} == {"HDB401", "HDB402"}
    output = tmp_path / "new.db"
    ran = tool_here("salvage", store, output)
    assert "everything was read" in ran.out
    assert "verified" not in ran.out
    assert f"hermes-dbtools scan {output}" in ran.err
    assert found(output) == bad
