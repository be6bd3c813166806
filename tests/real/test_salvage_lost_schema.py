"""Whichever page of its schema a released file loses, the rows of all its tables are salvaged."""

from __future__ import annotations

import shutil
from contextlib import closing
from pathlib import Path

import apsw
import pytest

from hermes_dbtools.salvage.salvaging import salvage
from tests import damage_bytes
from tests.real.lives import copy_of
from tests.salvaging import all_rows


def schema_pages(path: Path) -> list[int]:
    with closing(apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)) as connection:
        find = "SELECT pageno FROM dbstat WHERE name = 'sqlite_schema' ORDER BY pageno"
        return [number for (number,) in connection.execute(find)]


@pytest.mark.parametrize("kind", ["0.13.0", "0.16.0", "0.18.2", "0.19.0", "0.20.4.1"])
def test_every_row_is_there_whichever_page_of_the_schema_is_lost(kind: str, tmp_path: Path) -> None:
    healthy = copy_of(kind, tmp_path / "healthy").path
    rows = all_rows(healthy)
    pages = schema_pages(healthy)
    assert len(pages) > 2
    for page in pages:
        path, output = tmp_path / f"{page}.db", tmp_path / f"new-{page}.db"
        shutil.copyfile(healthy, path)
        damage_bytes.flip_page(path, page)
        salvage(path, output)
        found = all_rows(output)
        lost = {
            table
            for table in rows
            if sorted(map(repr, rows[table])) != sorted(map(repr, found.get(table, [])))
        }
        assert lost == set(), page
