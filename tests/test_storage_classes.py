"""The classes that look at the file itself: what lies on disk, its structure, its sidecars.

The cases of tests/cases/storage say by `spoil` what is done to the bytes of a file; SQL cannot do it.
"""

from __future__ import annotations

import hashlib
import tempfile
import tomllib
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import apsw
import pytest

from hermes_dbtools import make_plan, scan
from hermes_dbtools.damage._declare import Damage, ScanContext
from hermes_dbtools.damage.storage.split_wal import DAMAGE as SPLIT_WAL
from hermes_dbtools.damage.storage.structural_damage import DAMAGE as STRUCTURE
from hermes_dbtools.damage.storage.unreadable_file import DAMAGE as UNREADABLE
from hermes_dbtools.file_state import FileState, examine
from hermes_dbtools.holders import Holders
from hermes_dbtools.model import Finding, Holder, Severity
from hermes_dbtools.scanning import ScanOptions
from hermes_dbtools.shape import Shape
from hermes_dbtools.structure import Gate, StructuralDamage
from hermes_dbtools.verification import verify_copy
from tests.damage_bytes import swap_pages
from tests.live_writers import crashed, writer
from tests.looking import findings
from tests.shapes.make import execute, fill, make

CASES = Path(__file__).with_name("cases") / "storage"
PAGES = {
    "index-page": "idx_sessions_source",
    "table-page": "compression_locks",
    "search-page": "messages_fts_data",
}
SCHEMAS = {
    "index-twice": "INSERT INTO sqlite_schema SELECT * FROM sqlite_schema WHERE name = 'messages_fts'",
    "half-a-trigger": (
        "UPDATE sqlite_schema SET name = NULL, sql = substr(sql, 1, 30) WHERE name = 'messages_fts_insert'"
    ),
}
MODES = {"open-to-others": 0o666, "readable-by-others": 0o644}
GROWN = "CREATE TABLE plugin_notes (id INTEGER PRIMARY KEY, note TEXT)"
MARK = "INSERT INTO state_meta (key, value) VALUES ('test', '1')"


def look(damage: Damage, state: FileState, gate: Gate | None = None) -> list[Finding]:
    """What a class says of a file that no SQLite connection was opened on."""
    nothing: MappingProxyType[str, str] = MappingProxyType({})
    shape = Shape(None, MappingProxyType({}), nothing, MappingProxyType({}), nothing)
    connection = apsw.Connection(":memory:")
    try:
        return list(damage.find(ScanContext(connection, shape, None, state, gate or Gate(), now=0.0)))
    finally:
        connection.close()


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """A filled store."""
    path = make(tmp_path / "state.db", "22")
    fill(path)
    return path


@contextmanager
def reachable_folder() -> Iterator[Path]:
    """A folder that every user of the machine can get to."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name).resolve()
        folder.chmod(0o755)
        if not all(one.stat().st_mode & 0o001 for one in folder.parents):
            pytest.skip("the folder of temporary files is private")
        yield folder


def overwrite(path: Path, name: str) -> None:
    """Overwrite the start of the root page of a table or index."""
    ((root,),) = execute(path, "SELECT rootpage FROM sqlite_schema WHERE name = ?", (name,))
    page_size = examine(path).page_size
    with path.open("r+b") as file:
        file.seek((root - 1) * page_size)
        file.write(b"\xff" * 64)


def half_schema(path: Path, change: str) -> None:
    """Change the rows of the schema, so that nothing can be read any more."""
    with closing(apsw.Connection(str(path))) as connection:
        connection.execute("PRAGMA writable_schema = ON")
        connection.execute(change)


def replaced(path: Path) -> None:
    """Take a file and its sidecars away and make another, as an update does that sets all unknown files aside."""
    for tail in ("", "-wal", "-shm"):
        path.with_name(path.name + tail).unlink()
    fill(make(path, "22"))


def damaged(path: Path, kind: str) -> None:
    """Make the file unreadable in one of the four ways."""
    content = path.read_bytes()
    path.write_bytes(
        {
            "empty": b"",
            "zeroes": bytes(len(content)),
            "wrong-header": b"not a database at all" + content[21:],
            "truncated": content[: len(content) // 2],
        }[kind]
    )


def foreign_wal(path: Path, proof: str) -> None:
    """Put a database in the place of the one that a crash left with its `-wal`, as a restore by `cp` does.

    `proof` is what tells them apart.
    """
    crashed(path, GROWN)
    other = make(path.with_name("other.db"), "22")
    fill(other)
    if proof == "application-id":
        path.unlink()
        path.with_name("state.db-wal").unlink()
        make(path, "22")
        execute(path, "PRAGMA application_id = 1522790880")
        crashed(path, GROWN)
        execute(other, "PRAGMA application_id = 77")
    elif proof == "schema":
        for _ in range(3):
            execute(other, "CREATE INDEX plugin ON messages (role)")
            execute(other, "DROP INDEX plugin")
    else:
        connection = apsw.Connection(str(other))
        for pragma in ("journal_mode = delete", "page_size = 8192"):
            connection.execute(f"PRAGMA {pragma}").fetchall()
        connection.execute("VACUUM")
        connection.execute("PRAGMA journal_mode = wal").fetchall()
        connection.close()
    other.replace(path)


def spoil(path: Path, how: str, stack: ExitStack) -> None:
    """Do to a file what a case says; processes live until `stack` is left."""
    if how in PAGES:
        overwrite(path, PAGES[how])
    elif how in MODES:
        path.chmod(MODES[how])
    elif how == "crashed":
        crashed(path, GROWN)
    elif how in SCHEMAS:
        half_schema(path, SCHEMAS[how])
    elif how in ("deleted-wal", "open-wal", "replaced"):
        stack.enter_context(writer(path, MARK))
        if how == "deleted-wal":
            path.with_name("state.db-wal").unlink()
        elif how == "replaced":
            replaced(path)
    elif how.startswith("foreign-wal"):
        foreign_wal(path, how.removeprefix("foreign-wal "))
    elif how == "hot-journal":
        many = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 3000) "
        many += "INSERT INTO state_meta (key, value) SELECT 'test' || i, hex(zeroblob(500)) FROM n"
        crashed(path, "PRAGMA journal_mode=DELETE", "PRAGMA cache_size=1", "BEGIN", many)
    else:
        damaged(path, how)


def cases() -> Iterator[Any]:
    """The cases that SQL cannot make."""
    for path in sorted(CASES.glob("*.toml")):
        for table in tomllib.loads(path.read_text("utf-8"))["case"]:
            if "spoil" in table:
                yield pytest.param(table, id=f"{path.stem}: {table['name']}")


@pytest.mark.parametrize("case", list(cases()))
def test_spoiled_file(case: dict[str, Any], tmp_path: Path) -> None:
    with ExitStack() as stack:
        folder = stack.enter_context(reachable_folder()) if case["spoil"] in MODES else tmp_path
        path = make(folder / "state.db", case["shape"])
        fill(path)
        spoil(path, case["spoil"], stack)
        before = {one.name: hashlib.sha256(one.read_bytes()).hexdigest() for one in folder.iterdir()}
        (report,) = scan((folder,), ScanOptions(now=1_790_000_000.0)).databases
        found = [(f.code, f.key, f.severity.word, f.kind) for r in report.results for f in r.findings]
        assert found == [(e["code"], e["key"], e["severity"], e["kind"]) for e in case["expect"]]
        assert make_plan(report).steps == ()
        after = {one.name: hashlib.sha256(one.read_bytes()).hexdigest() for one in folder.iterdir()}
        assert after == before


@pytest.mark.parametrize("kind", ["empty", "zeroes", "wrong-header", "truncated"])
def test_unreadable_file_is_an_error_of_its_kind(store: Path, kind: str) -> None:
    damaged(store, kind)
    (found,) = look(UNREADABLE, examine(store))
    assert (found.kind, found.key, found.severity) == (kind, "state.db", Severity.ERROR)
    assert found.evidence["bytes"] == store.stat().st_size
    assert found.remedies == ()
    assert found.next == "hermes-dbtools runbook unreadable-file"


def test_truncated_file_says_how_long_it_should_be(store: Path) -> None:
    size = store.stat().st_size
    damaged(store, "truncated")
    (found,) = look(UNREADABLE, examine(store))
    assert found.evidence["expected_bytes"] == size


def test_healthy_missing_and_foreign_places_are_no_findings(store: Path, tmp_path: Path) -> None:
    for path in (store, tmp_path / "none.db", tmp_path):
        assert look(UNREADABLE, examine(path)) == []
        assert look(SPLIT_WAL, examine(path)) == []


def test_damaged_table_page_names_table_and_object(store: Path) -> None:
    overwrite(store, "state_meta")
    index, table = findings(STRUCTURE, store)
    assert (table.kind, table.table, table.key) == ("table", "state_meta", "state_meta")
    assert table.evidence["object"] == "state_meta"
    assert table.evidence["canonical"] is True
    assert "cannot be relied on" in table.message
    assert (index.kind, index.table) == ("index", "state_meta")
    assert "still read" not in index.message


def test_damaged_index_page_says_that_rows_are_still_read(store: Path) -> None:
    overwrite(store, "idx_sessions_source")
    (found,) = findings(STRUCTURE, store)
    assert (found.kind, found.table, found.key) == ("index", "sessions", "idx_sessions_source")
    assert "still read" in found.message


def test_an_entry_that_reaches_into_another_is_damage_of_its_index_alone(store: Path) -> None:
    """SQLite names the page and not the tree, and cannot walk that tree any more."""
    ((root,),) = execute(store, "SELECT rootpage FROM sqlite_schema WHERE name = 'idx_messages_session'")
    size = examine(store).page_size
    with store.open("r+b") as file:
        file.seek((root - 1) * size + 8)
        file.seek((root - 1) * size + int.from_bytes(file.read(2), "big"))
        file.write(b"\xff")
    (found,) = findings(STRUCTURE, store)
    assert (found.kind, found.key, found.evidence["canonical"]) == ("index", "idx_messages_session", False)


def test_an_index_that_lacks_rows_is_no_damage_of_its_table(store: Path) -> None:
    with closing(apsw.Connection(str(store))) as connection:
        connection.execute("PRAGMA writable_schema = ON")
        connection.execute(
            "UPDATE sqlite_schema SET sql = sql || ' WHERE started_at < 0' WHERE name = 'idx_sessions_started'"
        )
        connection.execute("PRAGMA writable_schema = RESET")
        connection.execute("INSERT INTO sessions (id, source, started_at) VALUES ('not in it', 'cli', 1.0)")
        connection.execute("PRAGMA writable_schema = ON")
        connection.execute(
            "UPDATE sqlite_schema SET sql = replace(sql, ' WHERE started_at < 0', '') WHERE name = 'idx_sessions_started'"
        )
    (found,) = findings(STRUCTURE, store)
    assert (found.kind, found.key) == ("index", "idx_sessions_started")


@pytest.mark.parametrize(
    ("index", "as_many"),
    [("sqlite_autoindex_gateway_routing_1", "schema_version"), ("idx_messages_platform_msg_id", "")],
)
def test_a_first_page_of_another_kind_is_damage_of_its_index(store: Path, index: str, as_many: str) -> None:
    """`quick_check` passes over it where both have as many entries, and every write of the table fails."""
    size = examine(store).page_size
    roots: dict[str, int] = dict(execute(store, "SELECT name, rootpage FROM sqlite_schema"))
    start = (roots.get(as_many, 1) - 1) * size
    page = store.read_bytes()[start : start + size] if as_many else b"\x0d"  # a leaf of a table
    with store.open("r+b") as file:
        file.seek((roots[index] - 1) * size)
        file.write(page)
    assert execute(store, "PRAGMA quick_check") == [("ok",)]
    (found,) = findings(STRUCTURE, store)
    assert (found.kind, found.evidence["object"], found.evidence["canonical"]) == ("index", index, False)
    assert any(line.startswith(f"index {index} of ") for line in verify_copy(store).problems)


def test_an_index_of_another_page_is_no_damage_of_its_table(store: Path) -> None:
    """It names rows that the table lacks; the other indexes of the table do not."""
    size = examine(store).page_size
    roots: dict[str, int] = dict(
        execute(store, "SELECT name, rootpage FROM sqlite_schema WHERE type = 'index'")
    )
    content = store.read_bytes()
    foreign = (roots["idx_messages_session"] - 1) * size
    with store.open("r+b") as file:
        file.seek((roots["sqlite_autoindex_sessions_1"] - 1) * size)
        file.write(content[foreign : foreign + size])
    (found,) = findings(STRUCTURE, store)
    assert (found.kind, found.key) == ("index", "sqlite_autoindex_sessions_1")
    assert (
        found.message == "the index of a key of sessions does not fit its rows; salvage says which there are"
    )


def test_an_index_of_wrong_entries_is_found_by_a_deep_look(store: Path) -> None:
    """Two indexes of one table have changed places: each is whole and has an entry for every row."""
    roots: dict[str, int] = dict(execute(store, "SELECT name, rootpage FROM sqlite_schema"))
    swap_pages(store, roots["idx_sessions_source"], roots["idx_sessions_source_id"])
    for deep in (False, True):
        (report,) = scan((store,), ScanOptions(select=("structural-damage",), deep=deep)).databases
        found = {finding.key for result in report.results for finding in result.findings}
        assert found == ({"idx_sessions_source", "idx_sessions_source_id"} if deep else set())


def test_unreadable_schema_is_one_finding(store: Path) -> None:
    gate = Gate((StructuralDamage("sqlite_schema", "schema", "", 1, "malformed database schema"),))
    (found,) = look(STRUCTURE, examine(store), gate)
    assert (found.kind, found.key) == ("schema", "sqlite_schema")


def test_healthy_structure_is_clean(store: Path) -> None:
    assert findings(STRUCTURE, store) == []


def test_deleted_sidecar_names_the_process(store: Path) -> None:
    guilty = Holder(4121, "hermes", deleted_sidecar=True)
    state = replace(examine(store), holders=Holders((Holder(7, "python"), guilty), 2))
    (found,) = look(SPLIT_WAL, state)
    assert (found.kind, found.severity, found.remedies) == ("deleted-sidecar", Severity.ERROR, ())
    assert found.evidence == {"pids": [4121], "wal_bytes": None, "uninspected_processes": 2}
    assert "hermes (pid 4121)" in found.message


def test_hot_journal_is_found_beside_its_holders(store: Path) -> None:
    state = replace(examine(store), hot_journal=True, holders=Holders((Holder(7, "python"),), 0))
    (found,) = look(SPLIT_WAL, state)
    assert (found.kind, found.key) == ("hot-journal", "state.db-journal")


def test_large_sidecar_under_its_name_is_no_damage(store: Path) -> None:
    state = replace(examine(store), wal_mode=True, wal_size=900_000_000, shm=True)
    assert look(SPLIT_WAL, state) == []
