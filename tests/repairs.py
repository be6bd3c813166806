"""Damaged homes, their repair and what must be the same before and after; starts no process but stdlib's engine and a writer."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import apsw

from hermes_dbtools import apply_plan, make_plan, nul_tokenizer, scan, undo
from hermes_dbtools.apply import ApplyOptions
from hermes_dbtools.dbhash import table_digests
from hermes_dbtools.home import Home, resolve
from hermes_dbtools.model import DatabaseReport, Plan, Receipt
from hermes_dbtools.plan import PlanOptions
from hermes_dbtools.scanning import ScanOptions
from hermes_dbtools.shape import read_shape
from hermes_dbtools.undoing import UndoOptions, choose_receipt
from tests.shapes.engines import Engine, Step, run
from tests.shapes.make import execute, fill, make

NOW = 1_790_000_000.0
INDEXES = ("messages_fts", "messages_fts_trigram")

# what fill makes with its defaults
ROOT, SECOND, THIRD = "20260528_202640_5feceb", "20260528_212640_6b86b2", "20260528_222640_d4735e"
BRANCH, DELEGATE = "20260528_232640_4e0740", "20260529_002640_4b2277"
COMPRESSED, CONTINUATION, CHAT = (
    "20260529_012640_ef2d12",
    "20260529_022640_e7f6c0",
    "20260529_032640_790269",
)

LOST_SESSION = f"DELETE FROM sessions WHERE id = '{THIRD}'"
COUNTERS = f"UPDATE sessions SET message_count = 99, tool_call_count = 7 WHERE id = '{SECOND}'"


WRITER = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("BEGIN IMMEDIATE")
print("locked", flush=True)
input()
"""


def new_home(folder: Path, shape: str, *damages: str, engine: Engine = "ours") -> Home:
    """A filled home of one shape, damaged by these statements, foreign keys off."""
    folder.mkdir()
    path = make(folder / "state.db", shape, engine=engine)
    fill(path, engine=engine)
    for damage in damages:
        execute(path, damage, engine=engine)
    return resolve(folder)


def look(home: Home, **options: Any) -> DatabaseReport:
    """One scan with all its findings."""
    (report,) = scan((home.root,), ScanOptions(limit=None, now=NOW, **options)).databases
    assert report.error == ""
    return report


def plan_of(
    home: Home,
    *,
    choose: dict[str, str] | None = None,
    allow_lossy: bool = False,
    max_rows: int | None = None,
    select: tuple[str, ...] = (),
) -> Plan:
    """The plan of a fresh scan."""
    return make_plan(look(home, select=select), PlanOptions(choose or {}, allow_lossy, max_rows))


def purge_of(home: Home, max_rows: int | None = None) -> Plan:
    """The plan that removes orphaned messages instead of adopting them."""
    return plan_of(home, choose={"orphaned-messages": "purge"}, allow_lossy=True, max_rows=max_rows)


def repair(home: Home, plan: Plan | None = None, *, later: float = 0, **options: Any) -> Receipt:
    """Apply a plan, that of a fresh scan by default; `later` by so many seconds."""
    plan = plan_of(home) if plan is None else plan
    return apply_plan(home, plan, ApplyOptions(now=NOW + later, **options))


def take_back(home: Home, receipt_id: str | None = None) -> Receipt:
    """Undo a receipt, the newest by default."""
    return undo(home, choose_receipt(home, receipt_id), UndoOptions(now=NOW))


def digests(path: Path) -> dict[str, str]:
    """A digest of the rows of each canonical table."""
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        return table_digests(connection, read_shape(connection))
    finally:
        connection.close()


def broken_keys(path: Path) -> list[tuple[Any, ...]]:
    """Every foreign key violation, told by the key of its row: row ids do not outlive a row."""
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        found = []
        for table, rowid, parent, number in connection.execute("PRAGMA foreign_key_check").fetchall():
            names = [row[1] for row in connection.execute(f'PRAGMA table_info("{table}")') if row[5]]
            columns = ", ".join(f'CAST("{name}" AS BLOB)' for name in names or ["rowid"])
            sql = f'SELECT {columns} FROM "{table}" WHERE rowid = ?'
            found.append((table, connection.execute(sql, (rowid,)).fetchone(), parent, number))
        return sorted(found, key=repr)
    finally:
        connection.close()


def schema(path: Path) -> list[tuple[Any, ...]]:
    """Every object of the file with its text."""
    return execute(path, "SELECT type, name, tbl_name, sql FROM sqlite_schema ORDER BY type, name")


def state(path: Path) -> tuple[Any, ...]:
    """All that an undo must give back: rows, violations and schema."""
    return digests(path), broken_keys(path), schema(path)


def bytes_of(path: Path) -> dict[str, bytes]:
    """The bytes of the database and of each of its sidecars."""
    names = [path.name + tail for tail in ("", "-wal", "-shm", "-journal")]
    return {name: path.with_name(name).read_bytes() for name in names if path.with_name(name).exists()}


def search_is_sound(path: Path, folder: Path, *, writer: Engine = "stdlib") -> None:
    """Both engines pass both indexes of a copy, against their text too; `writer` made the NUL rows of the file."""
    folder.mkdir(exist_ok=True)
    for engine in ("stdlib", "ours"):
        target = folder / f"{engine}.db"
        target.unlink(missing_ok=True)
        execute(path, "VACUUM INTO ?", (str(target),))
        _check(target, engine, writer)
        target.unlink()


def leftovers(home: Home, before: set[str]) -> set[str]:
    """Files that are new in a home, receipts apart."""
    return files(home) - before - {"dbtools", "state.db.repair.lock", "state.db-wal", "state.db-shm"}


def files(home: Home) -> set[str]:
    """Every file of a home by its path in it, receipts apart."""
    found = {str(path.relative_to(home.root)) for path in home.root.rglob("*")}
    return {name for name in found if not name.startswith("dbtools/")}


def search_compares_text(path: Path) -> bool:
    """Whether the index of words names as its text what it indexes; layout 2 names the uncut table."""
    marks = execute(path, "SELECT value FROM state_meta WHERE key = 'fts_storage_version'")
    return ("2",) not in marks


def _check(path: Path, engine: Engine, writer: Engine) -> None:
    compare = search_compares_text(path)
    steps = [
        f"INSERT INTO {name} ({name}, rank) VALUES ('integrity-check', {int(compare or 'trigram' in name)})"
        for name in INDEXES
    ]
    if engine == "stdlib":
        # Text behind a NUL byte is none to this engine, so rows that ours wrote are checked by ours alone.
        if writer == "stdlib":
            answer = run(
                path, [*(Step(sql, [()]) for sql in steps), Step("PRAGMA integrity_check", [()])], engine
            )
            assert answer == [("ok",)]
        return
    connection = apsw.Connection(str(path))
    try:
        if writer == "stdlib":
            nul_tokenizer.register(connection)
        for sql in steps:
            connection.execute(sql)
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    finally:
        connection.close()


def remove(folder: Path) -> None:
    """Remove a folder with what is in it."""
    shutil.rmtree(folder)


@contextmanager
def writer(path: Path) -> Iterator[int]:
    """Another process that holds the write lock."""
    command = [sys.executable, "-c", WRITER, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "locked\n"
        try:
            yield child.pid
        finally:
            child.communicate("\n")
