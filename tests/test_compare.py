"""Two states of a store: every row that is lost, gained or changed is named, and nothing else is."""

from __future__ import annotations

import json
import os
from itertools import pairwise
from pathlib import Path

import apsw
import msgspec
import pytest

from hermes_dbtools import holders, parallel
from hermes_dbtools.comparing import damages
from hermes_dbtools.comparing.compare import CompareOptions
from hermes_dbtools.comparing.conversions import MOVING
from hermes_dbtools.comparing.model import CompareDocument, RowName
from hermes_dbtools.model import CouldNotLook, Severity
from hermes_dbtools.report.compare import compare_text
from tests.comparing import NOW, WITH_DAMAGE, compared, differing, table, twins
from tests.live_writers import files_of, writer
from tests.running import tool_here
from tests.shapes.make import SHAPES, execute, fill, make


def sessions_of(path: Path) -> list[str]:
    return [str(key) for (key,) in execute(path, "SELECT id FROM sessions ORDER BY id")]


def test_one_row_deleted_one_changed_one_session_hidden(tmp_path: Path) -> None:
    before, after = twins(tmp_path)
    first, second, *_rest = sessions_of(before)
    ((gone,),) = execute(after, "SELECT MIN(id) FROM messages WHERE session_id = ?", (first,))
    ((other,),) = execute(after, "SELECT MAX(id) FROM messages WHERE session_id = ?", (second,))
    execute(after, "DELETE FROM messages WHERE id = ?", (gone,))
    execute(after, "UPDATE messages SET content = content || '!', role = 'tool' WHERE id = ?", (other,))
    execute(after, "UPDATE sessions SET archived = 1 WHERE id = ?", (first,))
    found = compared(before, after)
    assert found.exit_code == 1
    assert differing(found) == {"messages": (1, 0, 1), "sessions": (0, 0, 1)}
    assert table(found, "messages").lost_rows == (RowName(str(gone), first),)
    assert table(found, "messages").changed_rows == (RowName(str(other), second, ("content", "role")),)
    assert table(found, "messages").columns == {"content": 1, "role": 1}
    assert table(found, "sessions").changed_rows == (RowName(first, "", ("archived",)),)
    assert [(one.session, one.row, one.why) for one in found.out_of_view] == [
        (first, "there", "it is archived")
    ]
    text = compare_text(found)
    assert f"lost: 1 of messages\n  {gone} of {first}\n" in text
    assert f"  {other} of {second} (content, role)\n" in text
    assert f"  {first}: it is archived\n" in text


def test_the_command_says_it_as_text_and_as_json(tmp_path: Path) -> None:
    before, after = twins(tmp_path)
    execute(after, "DELETE FROM messages WHERE id = 1")
    said = tool_here("compare", str(before), str(after))
    assert said.code == 1
    assert said.out.endswith("\n1 row lost · 0 gained · 0 changed · 1 kind of new damage\n")
    shown = tool_here("compare", str(before), str(after), "--format", "json")
    assert shown.code == 1
    assert shown.out == tool_here("compare", str(before), str(after), "--format", "json").out
    document = msgspec.json.decode(shown.out, type=CompareDocument)
    assert table(document, "messages").lost_rows == (RowName("1", sessions_of(before)[0]),)


def test_the_other_way_round_the_lost_are_gained(tmp_path: Path) -> None:
    before, after = twins(tmp_path)
    execute(after, "DELETE FROM messages WHERE id IN (1, 2)")
    assert differing(compared(before, after)) == {"messages": (2, 0, 0)}
    found = compared(after, before)
    assert differing(found) == {"messages": (0, 2, 0)}
    assert found.exit_code == 0
    assert [row.key for row in table(found, "messages").gained_rows] == ["1", "2"]


def test_what_to_run_next_is_said_of_rows_lost_and_of_sessions_out_of_view(tmp_path: Path) -> None:
    before, after = twins(tmp_path)
    first, second = sessions_of(before)[:2]
    execute(after, "UPDATE sessions SET archived = 1 WHERE id = ?", (first,))
    execute(after, "UPDATE messages SET session_id = 'other' WHERE session_id = ?", (second,))
    execute(after, "UPDATE sessions SET id = 'other' WHERE id = ?", (second,))
    said = tool_here("compare", str(before), str(after), "--no-damage")
    assert f"  {first}: it is archived\n" in said.out
    assert " messages are of another session now\n" in said.out
    assert f"hermes-dbtools explain {after} {first}   why no list shows it\n" in said.err
    assert "hermes-dbtools runbook after-an-upgrade " in said.err


def test_files_in_the_wrong_order_are_noticed(tmp_path: Path) -> None:
    old, new = make(tmp_path / "old.db", "11"), make(tmp_path / "new.db", "22")
    fill(old)
    fill(new)
    said = tool_here("compare", str(new), str(old), "--no-damage")
    assert f"next:  hermes-dbtools compare {old} {new}" in said.err


@pytest.mark.parametrize("link", ["itself", "symlink", "hard link"])
def test_the_same_file_twice_is_the_same(link: str, tmp_path: Path) -> None:
    path, other = twins(tmp_path)
    other.unlink()
    if link == "itself":
        other = path
    elif link == "symlink":
        other.symlink_to(path)
    else:
        os.link(path, other)
    content = path.read_bytes()
    found = compared(path, other, WITH_DAMAGE)
    assert found.same_file
    assert found.exit_code == 0
    assert "both are the same file" in compare_text(found)
    assert path.read_bytes() == content
    assert sorted(one.name for one in tmp_path.iterdir()) == sorted({path.name, other.name})


@pytest.mark.parametrize("shape", SHAPES)
def test_two_equal_files_do_not_differ(shape: str, tmp_path: Path) -> None:
    before, after = twins(tmp_path, shape)
    found = compared(before, after)
    assert found.exit_code == 0
    assert differing(found) == {}
    assert found.blind == ()
    assert found.out_of_view_count == 0
    assert not any(msgspec.structs.astuple(found.shape))
    assert {one.table for one in found.tables if one.status == "left-out"} <= set(MOVING)
    assert sum(one.before for one in found.tables) > 10


@pytest.mark.parametrize("pair", list(pairwise(SHAPES[2:])), ids="-".join)
def test_the_same_rows_in_two_shapes_do_not_differ(pair: tuple[str, str], tmp_path: Path) -> None:
    before, after = (make(tmp_path / f"{shape}.db", shape) for shape in pair)
    fill(before)
    fill(after)
    found = compared(before, after)
    assert {name: counts for name, counts in differing(found).items() if counts[0] or counts[2]} == {}
    assert found.out_of_view_count == 0
    assert found.blind == ()


@pytest.mark.parametrize("side", ["before", "after"])
@pytest.mark.parametrize("what", ["no store", "nothing", "empty", "folder", "text"])
def test_what_is_no_store_is_one_clear_line(what: str, side: str, tmp_path: Path) -> None:
    path, other = twins(tmp_path)
    other.unlink()
    if what == "no store":
        apsw.Connection(str(other)).execute("CREATE TABLE t (a)")
    elif what == "empty":
        other.touch()
    elif what == "folder":
        other.mkdir()
    elif what == "text":
        other.write_text("no database " * 100)
    files = (other, path) if side == "before" else (path, other)
    with pytest.raises(CouldNotLook) as raised:
        compared(*files)
    assert other.name in str(raised.value)
    assert "\n" not in str(raised.value)


def test_big_values_are_compared_to_the_last_byte(tmp_path: Path) -> None:
    before, after = twins(tmp_path)
    big = "a" * 8_000_000
    for path, end in ((before, "x"), (after, "y")):
        execute(path, "DROP TRIGGER messages_fts_update")
        execute(path, "DROP TRIGGER messages_fts_trigram_update")
        execute(path, "UPDATE messages SET content = ? WHERE id = 2", (big + end,))
        execute(path, "UPDATE messages SET api_content = ? WHERE id = 3", (big,))
    found = compared(before, after)
    assert differing(found) == {"messages": (0, 0, 1)}
    assert table(found, "messages").columns == {"content": 1}


def test_text_that_becomes_bytes_has_changed(tmp_path: Path) -> None:
    before, after = twins(tmp_path)
    execute(after, "UPDATE messages SET reasoning = 'thought' WHERE id = 2")
    execute(before, "UPDATE messages SET reasoning = x'74686f75676874' WHERE id = 2")
    assert table(compared(before, after), "messages").columns == {"reasoning": 1}
    for path in (before, after):  # the careful reading must tell the same
        execute(path, "UPDATE messages SET reasoning = CAST(x'ff' AS TEXT) WHERE id = 4")
    found = table(compared(before, after), "messages")
    assert (found.status, found.columns) == ("compared", {"reasoning": 1})


def test_a_column_may_have_any_name(tmp_path: Path) -> None:
    before, after = twins(tmp_path)
    for path, value in ((before, 1), (after, 2)):
        execute(path, 'CREATE TABLE odd ("{table}" TEXT PRIMARY KEY, "a""b" INT, place INT, rowid TEXT)')
        execute(path, "INSERT INTO odd VALUES ('one', 1, 1, 'x'), ('two', ?, 2, 'y')", (value,))
    found = table(compared(before, after), "odd")
    assert (found.lost, found.gained, found.changed, found.columns) == (0, 0, 1, {'a"b': 1})


def test_rows_without_a_key_are_compared_as_they_stand(tmp_path: Path) -> None:
    before, after = twins(tmp_path)
    for path, values in ((before, (1, 1, 2, None)), (after, (1, 2, 2, 3))):
        execute(path, "CREATE TABLE loose (a)")
        for value in values:
            execute(path, "INSERT INTO loose VALUES (?)", (value,))
    found = table(compared(before, after), "loose")
    assert (found.before, found.after, found.lost, found.gained, found.changed) == (4, 4, 2, 2, 0)
    assert found.lost_rows == ()


def test_a_table_that_is_gone_has_lost_its_rows(tmp_path: Path) -> None:
    before, after = twins(tmp_path)
    ((rows,),) = execute(before, "SELECT count(*) FROM session_model_usage")
    execute(after, "DROP TABLE session_model_usage")
    found = compared(before, after)
    assert table(found, "session_model_usage").lost == rows
    assert found.shape.tables_gone == ("session_model_usage",)
    assert found.exit_code == 1


def test_a_widened_key_is_the_same_key(tmp_path: Path) -> None:
    before, after = twins(tmp_path)
    execute(before, "ALTER TABLE session_model_usage RENAME TO wide")
    ((columns,),) = execute(
        before, "SELECT group_concat(name) FROM pragma_table_info('wide') WHERE name <> 'task'"
    )
    keys = "session_id, model, billing_provider, billing_base_url, billing_mode"
    execute(before, f"CREATE TABLE session_model_usage ({columns}, PRIMARY KEY ({keys}))")
    execute(before, f"INSERT INTO session_model_usage SELECT {columns} FROM wide WHERE task = ''")
    execute(before, "DROP TABLE wide")
    execute(after, "DELETE FROM session_model_usage WHERE task <> ''")
    execute(after, "UPDATE session_model_usage SET input_tokens = 77 WHERE rowid = 1")
    found = table(compared(before, after), "session_model_usage")
    assert found.before == found.after > 1
    assert (found.lost, found.gained, found.changed, found.columns) == (0, 0, 1, {"input_tokens": 1})


def test_notes_of_the_store_about_itself_are_no_loss(tmp_path: Path) -> None:
    before, after = twins(tmp_path)
    execute(before, "INSERT INTO state_meta VALUES ('fts_rebuild_progress', '1'), ('goal:x', '{}')")
    execute(after, "INSERT INTO state_meta VALUES ('hermes_dbtools.repair.1', 'applied')")
    execute(after, "UPDATE schema_version SET version = 23")
    found = compared(before, after)
    assert differing(found) == {"state_meta": (1, 0, 0)}
    assert [row.key for row in table(found, "state_meta").lost_rows] == ["goal:x"]
    assert table(found, "state_meta").converted == {"notes of the store about itself": 2}


def test_a_moved_prompt_counts_only_where_it_arrived(tmp_path: Path) -> None:
    before, after = make(tmp_path / "22.db", "22"), make(tmp_path / "25.db", "25")
    fill(before)
    fill(after)
    prompts = len(execute(before, "SELECT 1 FROM sessions WHERE system_prompt IS NOT NULL"))
    assert table(compared(before, after), "sessions").changed == 0
    execute(after, "UPDATE sessions SET system_prompt_hash = NULL WHERE id = (SELECT MIN(id) FROM sessions)")
    found = table(compared(before, after), "sessions")
    assert (found.changed, found.columns) == (1, {"system_prompt": 1})
    assert found.converted == {"prompt moved to system_prompts (step 25)": prompts - 1}


def test_a_stale_index_does_not_make_rows_read_as_lost(tmp_path: Path) -> None:
    before, after = twins(tmp_path)
    execute(after, "CREATE TABLE spare (a TEXT, b TEXT)")
    execute(after, "CREATE UNIQUE INDEX spare_index ON spare (a)")
    connection = apsw.Connection(str(after))
    connection.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, 0)
    connection.execute("PRAGMA writable_schema = ON")
    connection.execute(
        "UPDATE sqlite_schema SET rootpage = (SELECT rootpage FROM sqlite_schema WHERE name = 'spare_index')"
        " WHERE name = 'sqlite_autoindex_sessions_1'"
    )
    connection.close()
    assert execute(after, "SELECT id FROM sessions ORDER BY id") == []
    found = compared(before, after)
    assert differing(found) == {}
    assert table(found, "sessions").before > 0
    assert (found.out_of_view, found.exit_code) == ((), 3)
    assert "an index of sessions is stale" in found.blind[0]


def damage_leaf(path: Path, table_name: str) -> None:
    """Flip every bit of the head of the last page of a table's tree."""
    ((page, size),) = execute(
        path,
        "SELECT MAX(pageno), MAX(pgsize) FROM dbstat WHERE name = ? AND pagetype = 'leaf'",
        (table_name,),
    )
    data = bytearray(path.read_bytes())
    start = (page - 1) * size
    data[start : start + 16] = bytes(byte ^ 0xFF for byte in data[start : start + 16])
    path.write_bytes(data)


@pytest.mark.parametrize("elsewhere", [False, True], ids=["here", "processes"])
@pytest.mark.parametrize("side", ["before", "after"])
def test_rows_of_damaged_pages_are_not_called_lost(
    side: str, elsewhere: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if elsewhere:
        monkeypatch.setattr(damages, "_cores", lambda: 2)
        monkeypatch.setattr(damages, "LARGE", 0)
    before, after = twins(tmp_path)
    damage_leaf(before if side == "before" else after, "messages")
    found = compared(before, after)
    messages = table(found, "messages")
    assert (messages.status, messages.lost) == ("could-not-look", 0)
    assert side in messages.reason
    assert [one.table for one in found.tables if one.status == "could-not-look"] == ["messages"]
    assert found.exit_code == 3
    with_damage = compared(before, after, WITH_DAMAGE)
    assert with_damage.tables == found.tables
    assert with_damage.exit_code == (3 if side == "before" else 1)


@pytest.mark.parametrize(
    ("fail_on", "code"), [(Severity.ERROR, 1), (Severity.NOTE, 1), (None, 0)], ids=["error", "note", "never"]
)
def test_damage_that_is_new_is_told(fail_on: Severity | None, code: int, tmp_path: Path) -> None:
    before, after = twins(tmp_path)
    for path in (before, after):
        execute(
            path, "INSERT INTO messages (session_id, role, timestamp) VALUES ('old', 'user', 1780000000.0)"
        )
    execute(after, "INSERT INTO messages (session_id, role, timestamp) VALUES ('new', 'user', 1780000000.0)")
    found = compared(before, after, CompareOptions(fail_on=fail_on, now=NOW))
    (orphans,) = (one for one in found.damage if one.code == "HDB201")
    assert (orphans.severity, orphans.new, orphans.before, orphans.keys) == ("error", 1, 1, ("messages new",))
    assert found.exit_code == code
    assert all(one.new for one in found.damage)


def test_damage_of_before_is_not_new(tmp_path: Path) -> None:
    before, _after = twins(tmp_path)
    execute(before, "INSERT INTO messages (session_id, role, timestamp) VALUES ('old', 'user', 1780000000.0)")
    after = tmp_path / "copy.db"
    after.write_bytes(before.read_bytes())
    found = compared(before, after, WITH_DAMAGE)
    assert (found.damage, found.exit_code) == ((), 0)


@pytest.mark.parametrize("change", ["nothing", "orphans", "search"])
def test_processes_of_their_own_find_the_same_damage(
    change: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, after = twins(tmp_path)
    monkeypatch.setattr(damages, "_cores", lambda: 2)
    for path in (before, after):
        execute(
            path, "INSERT INTO messages (session_id, role, timestamp) VALUES ('old', 'user', 1780000000.0)"
        )
    if change == "orphans":
        execute(
            after, "INSERT INTO messages (session_id, role, timestamp) VALUES ('new', 'user', 1780000000.0)"
        )
    if change == "search":
        execute(after, "DROP TRIGGER messages_fts_insert")
    in_turn = compared(before, after, WITH_DAMAGE)
    monkeypatch.setattr(damages, "LARGE", 0)
    assert compared(before, after, WITH_DAMAGE) == in_turn
    expected = {"nothing": set(), "orphans": {"HDB201"}, "search": {"HDB804"}}
    assert {one.code for one in in_turn.damage} >= expected[change]
    assert all(one.new for one in in_turn.damage)
    assert bool(in_turn.damage) == (change != "nothing")
    assert set() == holders._FELLOWS, "whoever may write later has none"  # noqa: SLF001


def test_a_process_that_ends_is_no_clean_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before, after = twins(tmp_path)
    monkeypatch.setattr(damages, "_cores", lambda: 2)
    monkeypatch.setattr(damages, "LARGE", 0)
    monkeypatch.setattr(parallel, "_work", _dies)
    found = compared(before, after, WITH_DAMAGE)
    assert found.exit_code == 3
    assert found.blind == (f"damage after: {after}: the process that looked at it ended",)


def _dies(connection: object, options: object) -> None:
    del connection, options
    os._exit(9)


def test_a_copy_elsewhere_is_looked_at_as_the_database_of_the_same_home(tmp_path: Path) -> None:
    before, after = twins(tmp_path)
    home, copies = tmp_path / "home", tmp_path / "copies"
    (home / "sessions").mkdir(parents=True)
    copies.mkdir()
    message = json.dumps({"role": "user", "content": "hello", "timestamp": 1_780_000_000.0})
    (home / "sessions" / "lost.jsonl").write_text(message + "\n")
    found = compared(before.rename(copies / "state.db"), after.rename(home / "state.db"), WITH_DAMAGE)
    assert (found.damage, found.exit_code) == ((), 0)


def test_why_a_session_is_gone(tmp_path: Path) -> None:
    before, after = twins(tmp_path, "runtime")
    plain = sessions_of(before)
    for path in (before, after):
        execute(path, "INSERT INTO sessions (id, source, started_at) VALUES ('empty', 'cli', 1780000000.0)")
    tombstoned, orphaned, *_rest = plain
    execute(after, "DELETE FROM messages WHERE session_id = ?", (tombstoned,))
    for one in (tombstoned, orphaned, "empty"):
        execute(after, "DELETE FROM sessions WHERE id = ?", (one,))
    key = f"gateway.retired_session.v1.{tombstoned}"
    execute(after, "INSERT INTO state_meta VALUES (?, '{}')", (key,))
    why = {one.session: one.why for one in compared(before, after).out_of_view}
    assert why["empty"] == "its row is gone; it held no messages"
    assert why[tombstoned] == "it was deleted on purpose: a tombstone names it"
    assert why[orphaned].endswith(" messages are still there")


def test_reading_leaves_no_trace(tmp_path: Path) -> None:
    before, after = twins(tmp_path)
    execute(after, "DELETE FROM messages WHERE id = 3")
    contents = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    compared(before, after, WITH_DAMAGE)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == contents


@pytest.mark.parametrize("journal_mode", ["wal", "delete"])
def test_beside_a_process_that_has_written_and_still_has_the_file(journal_mode: str, tmp_path: Path) -> None:
    before, after = twins(tmp_path)
    delete = ("DELETE FROM messages WHERE id = 1", "PRAGMA wal_autocheckpoint = 0")
    with writer(after, f"PRAGMA journal_mode = {journal_mode}", *delete):
        files = files_of(after)
        found = compared(before, after, WITH_DAMAGE)
        assert files_of(after) == files
    assert [row.key for row in table(found, "messages").lost_rows] == ["1"]
    assert found.blind == ()
