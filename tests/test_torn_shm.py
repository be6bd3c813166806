"""A `-shm` that a crash or a disk tore, and nobody who holds it: the rows of the `-wal` are read, and no byte is changed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from hermes_dbtools import database
from hermes_dbtools.backups import taking
from tests.old_files import with_wal
from tests.repairs import NOW, bytes_of, new_home
from tests.shapes.make import execute

ANYTHING = b"\xff" * 8
TORN: dict[str, Callable[[bytes], bytes]] = {
    "nothing": lambda whole: whole[:0],
    "its beginning": lambda whole: whole[:100],
    "zeroes": lambda whole: bytes(len(whole)),
    "its version": lambda whole: ANYTHING + whole[8:],
    "one of its headers": lambda whole: whole[:10] + ANYTHING + whole[18:],
    "the other header": lambda whole: whole[:58] + ANYTHING + whole[66:],
    "both headers": lambda whole: whole[:10] + ANYTHING + whole[18:58] + ANYTHING + whole[66:],
    "its index": lambda whole: whole[:136] + ANYTHING * ((len(whole) - 136) // 8),
}


def messages(path: Path) -> int:
    def count(reading: database.Reading) -> int:
        ((found,),) = reading.connection.execute("SELECT count(*) FROM messages").fetchall()
        assert reading.rows_trusted
        return int(str(found))

    return database.read(path, count)


@pytest.mark.parametrize("torn", TORN)
def test_a_torn_shm_without_a_process_hides_no_row(torn: str, tmp_path: Path) -> None:
    home = new_home(tmp_path / "home", "14")
    ((before,),) = execute(home.database, "SELECT count(*) FROM messages")
    with_wal(home.database)
    shm = home.database.with_name("state.db-shm")
    shm.write_bytes(TORN[torn](shm.read_bytes()))
    found = bytes_of(home.database)
    assert messages(home.database) == before + 400
    copy = tmp_path / "copy.db"
    taking.back_up(home, taking.BackupOptions(output=copy, now=NOW))
    assert messages(copy) == before + 400
    assert bytes_of(home.database) == found
