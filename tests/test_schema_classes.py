"""The schema family: known shapes against the fixtures, indexes and triggers made, dropped and taken back, newer files."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import apsw
import msgspec
import pytest

from hermes_dbtools import apply_plan, known_shapes, make_plan, queries, scan, undo
from hermes_dbtools.apply import ApplyOptions
from hermes_dbtools.damage.schema import dangling_triggers, missing_indexes
from hermes_dbtools.damage.schema._stand_in import Dangling
from hermes_dbtools.damage.schema._stand_in import dangling_triggers as compiled
from hermes_dbtools.database import examine
from hermes_dbtools.holders import Holders
from hermes_dbtools.home import Home, resolve
from hermes_dbtools.model import Holder, Plan, Receipt, Refused, RolledBack, SchemaChange, StalePlan
from hermes_dbtools.plan import PlanOptions
from hermes_dbtools.preflight import refuse_held
from hermes_dbtools.queries import resource
from hermes_dbtools.scanning import ScanOptions
from hermes_dbtools.schema_changes import bring_dropped
from hermes_dbtools.shape import Shape, read_shape
from hermes_dbtools.undoing import UndoOptions
from tests.looking import findings
from tests.running import tool_here
from tests.shapes.make import PARTS, SHAPES, execute, fill, make, script

NOW = 1_790_000_000.0
SESSION = "20260528_212640_6b86b2"
GONE = (
    "CREATE TABLE gone (id INTEGER)",
    "CREATE TRIGGER plugin AFTER INSERT ON messages BEGIN DELETE FROM gone; END",
    "DROP TABLE gone",
)


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """A filled home of shape 22."""
    folder = tmp_path / "home"
    folder.mkdir()
    fill(make(folder / "state.db", "22"))
    return resolve(folder)


def shape_of(name: str, *parts: str) -> Shape:
    """An empty store of a shape."""
    connection = apsw.Connection(":memory:")
    try:
        for one in (f"shape_{name}", *parts):
            connection.execute(script(one))
        return read_shape(connection)
    finally:
        connection.close()


def plan_of(home: Home) -> Plan:
    (report,) = scan((home.root,), ScanOptions(limit=None, now=NOW)).databases
    return make_plan(report, PlanOptions())


def applied(home: Home) -> Receipt:
    return apply_plan(home, plan_of(home), ApplyOptions(now=NOW))


def schema(home: Home) -> list[tuple[object, ...]]:
    return list(
        execute(home.database, "SELECT type, name, tbl_name, sql FROM sqlite_schema ORDER BY type, name")
    )


@pytest.mark.parametrize("name", SHAPES)
def test_every_fixture_has_what_its_number_asks_for(name: str) -> None:
    shape = shape_of(name)
    assert shape.schema_version is not None
    expected = known_shapes.expected(shape.schema_version)
    assert expected is not None
    known = known_shapes.facts()
    for table, columns in expected.columns.items():
        assert columns <= set(shape.tables[table].columns), table
    for table, form in shape.tables.items():
        if table in known.keys:
            assert frozenset(form.primary_key) == known.keys[table], table
        for column, default in known.defaults.get(table, {}).items():
            if column in form.columns:
                assert (form.columns[column].not_null, form.columns[column].default) == (True, default), (
                    table,
                    column,
                )
    found = {table: frozenset(form.columns) for table, form in shape.tables.items()}
    for table, indexes in known_shapes.indexes_of(shape.schema_version, found).items():
        for index in indexes:
            assert shape.indexes[index] == table


def test_the_facts_know_every_column_of_the_fixtures_and_no_other() -> None:
    found: dict[str, set[str]] = {}
    for shape in (*(shape_of(name) for name in SHAPES), *(shape_of("22", part) for part in PARTS)):
        for name in shape.canonical_tables:
            found.setdefault(name, set()).update(shape.tables[name].columns)
    known = {table: set(columns) for table, columns in known_shapes.columns().items()}
    assert {table: names - found.get(table, set()) for table, names in known.items()} == {
        t: set() for t in known
    }
    assert {table: names - known.get(table, set()) for table, names in found.items()} == {
        t: set() for t in found
    }


def test_every_not_null_default_of_the_fixtures_is_known() -> None:
    known = known_shapes.facts()
    for name in SHAPES:
        for table, form in shape_of(name).tables.items():
            told = {c.name for c in form.columns.values() if c.not_null and c.default is not None}
            assert told <= set(known.defaults.get(table, {})), (name, table)


def test_every_known_index_can_be_made_and_is_the_one_of_the_fixture() -> None:
    text = (resource("sql") / "damage" / "schema" / "missing_indexes.sql").read_text("utf-8")
    names = {
        index for shape in known_shapes.facts().shapes for some in shape.indexes.values() for index in some
    }
    assert {f"-- name: create-{name}" in text for name in names} == {True}
    for name in ("22", "media"):
        connection = apsw.Connection(":memory:")
        connection.execute(script(f"shape_{name}"))
        shape = read_shape(connection)
        for index in sorted(names & set(shape.indexes)):
            before = connection.execute(f"PRAGMA index_xinfo({index})").fetchall()
            listed = 'SELECT name, "unique", partial FROM pragma_index_list(?) WHERE name = ?'
            kind = connection.execute(listed, (shape.indexes[index], index)).fetchall()
            connection.execute(f"DROP INDEX {index}")
            block = queries.choose(missing_indexes.DAMAGE.sql, f"create-{index}", shape.has)
            assert block is not None
            connection.execute(block.sql)
            assert connection.execute(f"PRAGMA index_xinfo({index})").fetchall() == before, index
            assert connection.execute(listed, (shape.indexes[index], index)).fetchall() == kind, index
        connection.close()


def test_a_number_that_several_shapes_share_asks_for_what_all_of_them_have() -> None:
    thirty_one = known_shapes.expected(31)
    assert thirty_one is not None
    assert "message_uid" not in thirty_one.columns["messages"]
    assert "session_admissions" not in thirty_one.columns
    assert "tool_names" in thirty_one.columns["sessions"]
    assert known_shapes.expected(29) == known_shapes.expected(25)
    assert known_shapes.expected(10) is None


def test_an_index_that_hdb002_calls_damaged_is_not_missing(home: Home) -> None:
    ((root,),) = execute(
        home.database, "SELECT rootpage FROM sqlite_schema WHERE name = 'idx_sessions_source'"
    )
    with home.database.open("r+b") as file:
        file.seek((root - 1) * 4096)
        file.write(b"\xff" * 64)
    (report,) = scan((home.root,), ScanOptions(now=NOW)).databases
    found = {result.code: result.count for result in report.results if result.count}
    assert found == {"HDB002": 1}


def test_what_was_made_and_dropped_is_taken_back_byte_for_byte(home: Home) -> None:
    for sql in ("DROP INDEX idx_messages_session", *GONE):
        execute(home.database, sql)
    before = schema(home)
    receipt = applied(home)
    assert {(change.type, change.name, bool(change.after)) for change in receipt.schema} == {
        ("index", "idx_messages_session", True),
        ("trigger", "plugin", False),
    }
    assert receipt.changed == {}
    assert undo(home, receipt, UndoOptions(now=NOW)).status == "undone"
    assert schema(home) == before


def test_an_index_that_was_changed_since_stays(home: Home) -> None:
    execute(home.database, "DROP INDEX idx_messages_session")
    receipt = applied(home)
    execute(home.database, "DROP INDEX idx_messages_session")
    execute(home.database, "CREATE INDEX idx_messages_session ON messages (session_id)")
    before = schema(home)
    with pytest.raises(RolledBack, match="idx_messages_session was changed since"):
        undo(home, receipt, UndoOptions(now=NOW))
    assert schema(home) == before


def test_an_index_that_is_gone_since_is_no_conflict(home: Home) -> None:
    execute(home.database, "DROP INDEX idx_messages_session")
    receipt = applied(home)
    execute(home.database, "DROP INDEX idx_messages_session")
    assert undo(home, receipt, UndoOptions(now=NOW)).status == "undone"


def test_a_trigger_whose_name_is_taken_again_stops_the_undo(home: Home) -> None:
    for sql in GONE:
        execute(home.database, sql)
    receipt = applied(home)
    execute(home.database, "CREATE TRIGGER plugin AFTER DELETE ON messages BEGIN SELECT 1; END")
    with pytest.raises(RolledBack, match="another trigger plugin"):
        undo(home, receipt, UndoOptions(now=NOW))


@pytest.mark.parametrize(
    "text",
    [
        "DROP TABLE messages",
        "CREATE TRIGGER plugin AFTER INSERT ON messages BEGIN SELECT 1; END; DROP TABLE messages",
        "CREATE TRIGGER other AFTER INSERT ON messages BEGIN SELECT 1; END",
        "DELETE FROM messages",
    ],
)
def test_a_text_of_a_receipt_can_make_one_trigger_and_do_nothing_else(home: Home, text: str) -> None:
    for sql in GONE:
        execute(home.database, sql)
    receipt = applied(home)
    before = schema(home)
    edited = msgspec.structs.replace(
        receipt, schema=(SchemaChange("trigger", "plugin", "messages", text, ""),)
    )
    connection = apsw.Connection(str(home.database))
    try:
        connection.execute("BEGIN")
        with pytest.raises((RolledBack, apsw.Error)):
            bring_dropped(connection, edited)
        connection.execute("ROLLBACK")
    finally:
        connection.close()
    assert schema(home) == before


def test_an_index_that_came_since_makes_the_plan_stale(home: Home) -> None:
    execute(home.database, "DROP INDEX idx_messages_session")
    plan = plan_of(home)
    execute(home.database, "CREATE INDEX idx_messages_session ON messages (session_id, timestamp)")
    with pytest.raises(StalePlan):
        apply_plan(home, plan, ApplyOptions(now=NOW))


def test_a_trigger_is_only_dropped_while_nobody_has_the_file(home: Home) -> None:
    for sql in GONE:
        execute(home.database, sql)
    (found,) = findings(dangling_triggers.DAMAGE, home.database)
    assert found.remedies[0].step is not None
    state = replace(examine(home.database), holders=Holders((Holder(7, "hermes"),), 0))
    (held,) = dangling_triggers._finding(  # noqa: SLF001 - what a holder changes
        next(iter(_compiled(home))), dangling_triggers.HELD
    ).remedies[:1]
    assert held.step is None
    assert held.refused == dangling_triggers.HELD
    with pytest.raises(Refused):
        refuse_held(state, plan_of(home), online=False, limit_seconds=2.0)


def _compiled(home: Home) -> list[Dangling]:
    connection = apsw.Connection(str(home.database))
    try:
        return list(compiled(connection, read_shape(connection)))
    finally:
        connection.close()


def test_a_trigger_of_an_index_without_its_tokenizer_is_not_accused(home: Home) -> None:
    connection = apsw.Connection(str(home.database))
    try:
        connection.execute("PRAGMA writable_schema = ON")
        connection.execute(
            "UPDATE sqlite_schema SET sql = replace(sql, 'trigram''', 'nobodys''') WHERE name = 'messages_fts_trigram'"
        )
    finally:
        connection.close()
    assert findings(dangling_triggers.DAMAGE, home.database) == []


def test_triggers_of_a_search_index_that_is_gone_are_dropped(home: Home) -> None:
    connection = apsw.Connection(str(home.database))
    try:
        connection.execute("DROP TABLE messages_fts_trigram")
    finally:
        connection.close()
    names = {finding.key for finding in findings(dangling_triggers.DAMAGE, home.database)}
    assert names == {f"messages_fts_trigram_{event}" for event in ("insert", "delete", "update")}


def newer(home: Home) -> None:
    execute(home.database, "UPDATE schema_version SET version = 32")


@pytest.mark.parametrize(
    "words",
    [
        ("repair", "--home", "HOME", "--apply", "--yes"),
        ("undo", "--home", "HOME", "--apply", "--yes"),
        ("sessions", "delete", "--home", "HOME", SESSION, "--apply", "--yes"),
        ("sessions", "prune", "--home", "HOME", "--older-than", "1d", "--apply", "--yes"),
        ("sessions", "rebuild", "--home", "HOME", "lost", "--apply", "--yes"),
    ],
    ids=lambda words: " ".join(words[:2]),
)
def test_every_command_that_writes_refuses_a_newer_file(home: Home, words: tuple[str, ...]) -> None:
    execute(home.database, "DROP INDEX idx_messages_session")
    applied(home)
    newer(home)
    (home.sessions_dir).mkdir()
    (home.sessions_dir / "lost.jsonl").write_text('{"role": "user", "content": "hello"}\n')
    before = home.database.read_bytes()
    ran = tool_here(*(str(home.root) if word == "HOME" else word for word in words))
    assert ran.code == 4
    assert "update hermes-dbtools" in ran.err
    assert home.database.read_bytes() == before


def test_what_reads_a_newer_file_says_what_to_do(home: Home) -> None:
    execute(home.database, "DROP INDEX idx_messages_session")
    newer(home)
    for command in ("scan", "repair"):
        ran = tool_here(command, str(home.root))
        assert "update hermes-dbtools" in ran.out + ran.err, command
        assert "hermes-dbtools repair" not in (ran.out + ran.err).replace(
            "hermes-dbtools repair --help", ""
        ), command
