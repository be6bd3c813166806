"""The search indexes after our engine changed messages another engine wrote, judged by both engines."""

from __future__ import annotations

import dataclasses
import random
import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import apsw
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hermes_dbtools import nul_tokenizer
from hermes_dbtools.model import Refused
from hermes_dbtools.search_decision import rebuilt_anew
from hermes_dbtools.search_definition import SearchIndex
from hermes_dbtools.search_index import (
    Upkeep,
    begin_change,
    decide,
    end_change,
    read_indexes,
    register_tokenizer,
    unavailable_tokenizers,
    watched_columns,
)
from hermes_dbtools.search_rule import unpacked
from hermes_dbtools.shape import read_shape
from tests.shapes.engines import Engine, Step, run
from tests.shapes.make import execute, make

SHAPES = ("22", "25", "30", "31")
WORDS = tuple(f"{a}{b}" for a in ("amber", "birch", "cedar", "delta") for b in ("one", "two", "six"))
FTS, TRIGRAM = "messages_fts", "messages_fts_trigram"
LAYOUT_2 = ("2",)
INSERT = """
    INSERT INTO messages (id, session_id, role, content, tool_name, tool_calls, timestamp)
    VALUES (?, ?, ?, ?, ?, ?, ?)
"""
SESSION = "INSERT INTO sessions (id, source, started_at) VALUES (?, ?, 1.0)"

Change = Callable[[apsw.Connection], object]


def message(id_: int, role: str, content: str, session: str = "plain") -> tuple[object, ...]:
    name = "read_file" if role == "tool" else None
    calls = '[{"name": "calling"}]' if role == "assistant" and id_ % 3 == 0 else None
    return (id_, session, role, content, name, calls, float(id_))


def rows(count: int = 40) -> list[tuple[object, ...]]:
    """Messages of every role; every fifth one holds a NUL byte, some in the middle."""
    chance = random.Random(7)
    found = []
    for id_ in range(1, count + 1):
        text = " ".join(chance.choices(WORDS, k=6))
        if id_ % 5 == 0:
            text = f'\0json:["{text}"]' if id_ % 10 else f"{text} tail\0hidden {text}"
        role = ("user", "assistant", "tool", "assistant")[id_ % 4]
        found.append(message(id_, role, text, "child" if id_ % 7 == 0 else "plain"))
    return found


def store(
    path: Path, shape: str, engine: Engine = "stdlib", messages: Iterable[tuple[object, ...]] | None = None
) -> Path:
    make(path, shape, journal_mode="delete", engine=engine)
    sessions = [("plain", "cli"), ("child", "subagent")]
    run(path, [Step(SESSION, sessions), Step(INSERT, list(rows() if messages is None else messages))], engine)
    return path


@contextmanager
def opened(path: Path) -> Iterator[apsw.Connection]:
    connection = apsw.Connection(str(path))
    try:
        connection.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, 1)
        connection.execute("PRAGMA trusted_schema = OFF")
        connection.execute("PRAGMA synchronous = OFF")
        yield connection
    finally:
        connection.close()


def changed(
    path: Path,
    touched: Iterable[int],
    change: str | Change,
    *,
    mode: str = "",
    regrouped: Iterable[int] = (),
    before: Change | None = None,
) -> Upkeep:
    """Change messages as `apply` and `undo` do; `mode` forces a rebuild."""
    with opened(path) as connection:
        if before is not None:
            before(connection)
        shape = read_shape(connection)
        connection.execute("CREATE TEMP TABLE touched_messages (id INTEGER PRIMARY KEY)")
        connection.execute("CREATE TEMP TABLE regrouped_messages (id INTEGER PRIMARY KEY)")
        connection.executemany("INSERT INTO touched_messages VALUES (?)", [(id_,) for id_ in touched])
        connection.executemany("INSERT INTO regrouped_messages VALUES (?)", [(id_,) for id_ in regrouped])
        connection.execute("BEGIN IMMEDIATE")
        upkeep = decide(connection, shape)
        if mode == "rebuild":
            items = [rebuilt_anew(connection, item, "asked for", "stops") for item in upkeep.indexes]
            upkeep = dataclasses.replace(upkeep, indexes=tuple(items))
        register_tokenizer(connection, upkeep)
        begin_change(connection, upkeep)
        if isinstance(change, str):
            connection.execute(change)
        else:
            change(connection)
        end_change(connection, upkeep)
        connection.execute("COMMIT")
    return upkeep


def ids(touched: Iterable[int]) -> str:
    return f"({', '.join(map(str, touched))})"


def checks(path: Path, *, compare: bool | None = None) -> list[Step]:
    """FTS5's own check of each index, against its text too.

    Layout 2 is the exception: it cuts what it indexes but names the uncut table as its text, so there the
    index of words can be compared only while the file has no answer of a tool that the cut changes.
    """
    names = [index.name for index in indexes(path) if index.name in (FTS, TRIGRAM)]
    if compare is None:
        compare = LAYOUT_2 not in execute(
            path, "SELECT value FROM state_meta WHERE key = 'fts_storage_version'"
        )
    ranks = {name: int(compare or name == TRIGRAM) for name in names}
    sql = "INSERT INTO {0} ({0}, rank) VALUES ('integrity-check', {1})"
    return [Step(sql.format(name, rank), [()]) for name, rank in ranks.items()]


def healthy_for_stdlib(path: Path, *, compare: bool | None = None) -> None:
    """The engine that wrote the file finds the index and its text alike; RuntimeError otherwise."""
    answer = run(path, [*checks(path, compare=compare), Step("PRAGMA integrity_check", [()])], "stdlib")
    assert answer == [("ok",)]


def healthy_for_us(path: Path, *, stops: bool) -> None:
    """Our engine, with the tokenizer where the index needs it, finds the same; apsw.Error otherwise."""
    steps = checks(path)
    with opened(path) as connection:
        if stops:
            nul_tokenizer.register(connection)
        for step in steps:
            connection.execute(step.sql)
        assert connection.execute("PRAGMA quick_check").fetchall() == [("ok",)]


def triggers(path: Path) -> list[tuple[object, ...]]:
    return execute(path, "SELECT name, tbl_name, sql FROM sqlite_schema WHERE type = 'trigger' ORDER BY name")


def entries(path: Path) -> list[tuple[object, ...]]:
    """Everything an index consists of, and the schema."""
    found: list[tuple[object, ...]] = []
    for name in (FTS, TRIGRAM):
        for tail, key in (("data", "id"), ("docsize", "id"), ("idx", "segid, term")):
            found += execute(path, f"SELECT * FROM {name}_{tail} ORDER BY {key}")
    return found + execute(path, "SELECT type, name, sql FROM sqlite_schema ORDER BY type, name")


def cohort(path: Path, name: str) -> list[tuple[int, str]]:
    """What an index should hold, by this test's own reading of the layouts."""
    trigram = name == TRIGRAM
    inline = not execute(path, "SELECT 1 FROM sqlite_schema WHERE name = 'messages_fts_trigram_src'")
    joined = bool(
        execute(
            path,
            "SELECT 1 FROM sqlite_schema WHERE sql LIKE '%json_extract%_src%' OR sql LIKE '%JOIN sessions%'",
        )
    )
    found = []
    sql = """SELECT m.id, role, content, tool_name, tool_calls, source
             FROM messages m LEFT JOIN sessions s ON s.id = m.session_id"""
    for id_, role, content, tool_name, tool_calls, source in execute(path, sql):
        if trigram and not inline and (role == "tool" or (joined and source != "cli")):
            continue
        if joined and role == "tool":
            content = content.partition("\0")[0]  # substr() ends there, in both engines
        columns = [content, tool_name, None if trigram and joined else tool_calls]
        parts = [" ".join(part or "" for part in columns)] if inline else [part or "" for part in columns]
        found.append((id_, "\n".join(part.partition("\0")[0] if trigram else part for part in parts)))
    return found


def matches(path: Path, name: str, word: str) -> list[int]:
    with opened(path) as connection:
        return matched(connection, name, word)


def matched(connection: apsw.Connection, name: str, word: str) -> list[int]:
    sql = f"SELECT rowid FROM {name} WHERE {name} MATCH ? ORDER BY rowid"
    return [id_ for (id_,) in connection.execute(sql, [f'"{word}"'])]


def finds_every_word(path: Path) -> None:
    held = {name: cohort(path, name) for name in (FTS, TRIGRAM)}
    with opened(path) as connection:
        for name in (FTS, TRIGRAM):
            for word in (*WORDS, "json", "hidden", "tail", "calling", "read_file"):
                expected = [id_ for id_, text in held[name] if word in text]
                assert matched(connection, name, word) == expected, (name, word)


def goes_on_in_stdlib(path: Path) -> None:
    """The store's own triggers still work on what we left."""
    last = execute(path, "SELECT MAX(id) FROM messages WHERE instr(CAST(content AS BLOB), x'00')")[0][0]
    steps = [
        Step(INSERT, [message(901, "user", "\0json:later"), message(902, "assistant", "later")]),
        Step("DELETE FROM messages WHERE id IN (?, 901)", [(last,)]),
        Step("UPDATE messages SET content = 'much later' WHERE id = 902", [()]),
    ]
    run(path, steps, "stdlib")
    healthy_for_stdlib(path)


@pytest.mark.parametrize("mode", ["touch", "rebuild"])
@pytest.mark.parametrize("shape", SHAPES)
def test_deleted_rows_leave(tmp_path: Path, shape: str, mode: str) -> None:
    path = store(tmp_path / "state.db", shape)
    healthy_for_stdlib(path)
    before = triggers(path)
    gone = (4, 5, 7, 10, 15, 20, 21)
    upkeep = changed(path, gone, f"DELETE FROM messages WHERE id IN {ids(gone)}", mode=mode)
    assert upkeep.mode == mode
    assert upkeep.rebuilt == ((FTS, TRIGRAM) if mode == "rebuild" else ())
    assert [item.index.name for item in upkeep.indexes if item.stopped] == [TRIGRAM]
    assert upkeep.needs_tokenizer == (mode == "touch" and shape == "22")
    assert triggers(path) == before
    healthy_for_stdlib(path)
    healthy_for_us(path, stops=True)
    finds_every_word(path)
    goes_on_in_stdlib(path)


@pytest.mark.parametrize("shape", SHAPES)
def test_undone_delete_brings_every_entry_back(tmp_path: Path, shape: str) -> None:
    path = store(tmp_path / "state.db", shape)
    gone = [id_ for id_ in range(1, 41) if id_ % 3]
    changed(path, gone, f"DELETE FROM messages WHERE id IN {ids(gone)}")
    back = [row for row in rows() if row[0] in gone]
    upkeep = changed(path, gone, lambda connection: connection.executemany(INSERT, back))
    assert upkeep.mode == "touch"
    healthy_for_stdlib(path)
    healthy_for_us(path, stops=True)
    finds_every_word(path)
    goes_on_in_stdlib(path)


@pytest.mark.parametrize("mode", ["touch", "rebuild"])
@pytest.mark.parametrize("shape", SHAPES)
def test_changed_text_is_indexed_anew(tmp_path: Path, shape: str, mode: str) -> None:
    path = store(tmp_path / "state.db", shape)
    held = (3, 5, 6, 10, 12)
    sql = f"""UPDATE messages
              SET content = CASE id WHEN 5 THEN 'cedarsix' ELSE char(0) || 'json:cedartwo' END,
                  role = 'user' WHERE id IN {ids(held)}"""
    changed(path, held, sql, mode=mode)
    healthy_for_stdlib(path)
    healthy_for_us(path, stops=True)
    finds_every_word(path)
    goes_on_in_stdlib(path)


@pytest.mark.parametrize("shape", SHAPES)
def test_other_columns_touch_no_entry(tmp_path: Path, shape: str) -> None:
    path = store(tmp_path / "state.db", shape)
    before = entries(path)
    upkeep = changed(path, (), "UPDATE messages SET active = 0, compacted = 1")
    assert upkeep.mode == "suspend"
    assert sorted(map(repr, entries(path))) == sorted(map(repr, before))


@pytest.mark.parametrize("mode", ["touch", "rebuild"])
@pytest.mark.parametrize("shape", SHAPES)
def test_rollback_leaves_everything_as_it_was(tmp_path: Path, shape: str, mode: str) -> None:
    path = store(tmp_path / "state.db", shape)
    before = path.read_bytes()

    def broken(_connection: apsw.Connection) -> None:
        raise InterruptedError

    with pytest.raises(InterruptedError):
        changed(path, range(1, 30), broken, mode=mode)
    assert path.read_bytes() == before


@pytest.mark.parametrize("mode", ["touch", "rebuild"])
@pytest.mark.parametrize("shape", SHAPES)
def test_file_of_an_engine_that_reads_past_nul_keeps_that_rule(tmp_path: Path, shape: str, mode: str) -> None:
    path = store(tmp_path / "state.db", shape, "ours")
    gone = (5, 8, 9, 10)
    upkeep = changed(path, gone, f"DELETE FROM messages WHERE id IN {ids(gone)}", mode=mode)
    assert not any(item.stopped for item in upkeep.indexes)
    assert not upkeep.needs_tokenizer
    healthy_for_us(path, stops=False)
    assert matches(path, TRIGRAM, "hidden")
    back = [row for row in rows() if row[0] in gone]
    changed(path, gone, lambda connection: connection.executemany(INSERT, back))
    healthy_for_us(path, stops=False)


def test_inline_file_of_two_engines_is_rebuilt(tmp_path: Path) -> None:
    path = store(tmp_path / "state.db", "22")
    run(path, [Step(INSERT, [message(60, "user", "\0json:newer"), message(61, "user", "newest")])], "ours")
    upkeep = changed(path, (5, 60), "DELETE FROM messages WHERE id IN (5, 60)")
    assert upkeep.rebuilt == (TRIGRAM,)
    changed(path, (61,), "DELETE FROM messages WHERE id = 61")
    healthy_for_us(path, stops=False)


@pytest.mark.parametrize("shape", ["25", "30", "31"])
def test_external_file_of_two_engines_is_mended_row_by_row(tmp_path: Path, shape: str) -> None:
    path = store(tmp_path / "state.db", shape)
    later = [message(id_, "user", f"\0json:newer{id_}") for id_ in (60, 61)]
    run(path, [Step(INSERT, later)], "ours")
    gone = (5, 60, 61)
    upkeep = changed(path, gone, f"DELETE FROM messages WHERE id IN {ids(gone)}")
    assert upkeep.mode == "touch"
    healthy_for_stdlib(path)
    finds_every_word(path)


def test_entry_that_fits_no_rule_makes_a_rebuild(tmp_path: Path) -> None:
    path = store(tmp_path / "state.db", "25")
    execute(path, f"UPDATE {TRIGRAM}_docsize SET sz = x'050101' WHERE id = 5")
    upkeep = changed(path, (5,), "DELETE FROM messages WHERE id = 5")
    assert upkeep.rebuilt == (TRIGRAM,)
    healthy_for_stdlib(path)
    finds_every_word(path)


def test_entry_without_a_message_makes_a_rebuild(tmp_path: Path) -> None:
    path = store(tmp_path / "state.db", "25")
    drop = [Step(f"DROP TRIGGER {name}_delete", [()]) for name in (FTS, TRIGRAM)]
    texts = {str(name): str(sql) for name, _, sql in triggers(path)}
    make_again = [Step(texts[f"{name}_delete"], [()]) for name in (FTS, TRIGRAM)]
    run(path, [*drop, Step("DELETE FROM messages WHERE id = 9", [()]), *make_again])
    upkeep = changed(path, (9,), lambda connection: connection.execute(INSERT, message(9, "user", "again")))
    assert upkeep.rebuilt == (FTS, TRIGRAM)
    healthy_for_stdlib(path)
    finds_every_word(path)


LONG = " ".join(f"long{n}" for n in range(2000))
HEAVY = message(48, "user", "delta " * 20_000)
"""So much stays that no rebuild is cheaper."""


@pytest.mark.parametrize("mode", ["touch", "rebuild"])
@pytest.mark.parametrize("shape", ["25", "30", "31"])
def test_long_answers_of_tools(tmp_path: Path, shape: str, mode: str) -> None:
    long = [message(id_, "tool", f"start{id_} {LONG} end{id_}") for id_ in (50, 51, 52)]
    long.append(message(53, "tool", "\0json:" + LONG))
    path = store(tmp_path / "state.db", shape, messages=[*rows(), HEAVY, *long])
    upkeep = changed(path, (50, 53), "DELETE FROM messages WHERE id IN (50, 53)", mode=mode)
    assert upkeep.mode == mode
    healthy_for_stdlib(path)
    assert bool(matches(path, FTS, "end51")) == (shape == "25")
    assert matches(path, FTS, "start51") == [51]
    assert matches(path, FTS, "start50") == []
    answers = [int(str(row[0])) for row in rows() if row[2] == "tool"]
    changed(path, (51, 52, *answers), f"DELETE FROM messages WHERE id IN {ids((51, 52, *answers))}")
    healthy_for_stdlib(path, compare=True)


@pytest.mark.parametrize(("written_under", "moved_to"), [(0, 99), (99, 0)])
def test_moved_mark_of_long_answers(tmp_path: Path, written_under: int, moved_to: int) -> None:
    """Layout 2: entries came in cut or whole under another mark than the file holds now."""
    path = make(tmp_path / "state.db", "30", journal_mode="delete", engine="stdlib")
    mark = "UPDATE state_meta SET value = ? WHERE key = 'fts_tool_full_content_high_water'"
    unbroken = "x" * 9000
    long = [message(50, "tool", LONG), message(51, "tool", unbroken), message(52, "tool", LONG)]
    few = [row for row in rows() if row[2] != "tool"]
    steps = [Step(mark, [(str(written_under),)]), Step(SESSION, [("plain", "cli"), ("child", "subagent")])]
    run(path, [*steps, Step(INSERT, [*few, HEAVY, *long]), Step(mark, [(str(moved_to),)])], "stdlib")
    upkeep = changed(path, (50, 52), "DELETE FROM messages WHERE id IN (50, 52)")
    assert upkeep.mode == "touch"
    run(
        path,
        [Step(mark, [(str(written_under),)]), Step("DELETE FROM messages WHERE id = 51", [()])],
        "stdlib",
    )
    healthy_for_stdlib(path, compare=True)


@pytest.mark.parametrize("mode", ["touch", "rebuild"])
@pytest.mark.parametrize("shape", ["25", "30", "31"])
def test_rows_that_wait_for_a_refill_are_left_to_it(tmp_path: Path, shape: str, mode: str) -> None:
    path = make(tmp_path / "state.db", shape, journal_mode="delete", engine="stdlib")
    marks = [("fts_rebuild_high_water", "30"), ("fts_rebuild_progress", "12")]
    steps = [
        Step("INSERT INTO state_meta (key, value) VALUES (?, ?)", marks),
        Step(SESSION, [("plain", "cli"), ("child", "subagent")]),
        Step(INSERT, rows()),
    ]
    run(path, steps, "stdlib")
    gone = (5, 10, 15, 20, 25, 35, 40)
    upkeep = changed(path, gone, f"DELETE FROM messages WHERE id IN {ids(gone)}", mode=mode)
    assert upkeep.mode == mode
    back = [row for row in rows() if row[0] in (10, 20, 35)]
    changed(path, (10, 20, 35), lambda connection: connection.executemany(INSERT, back))
    held = {id_ for (id_,) in execute(path, f"SELECT id FROM {FTS}_docsize")}
    assert held == {id_ for id_ in (*range(1, 13), *range(31, 41)) if id_ not in {5, 40}}
    run(path, [*refill(path), Step("DELETE FROM state_meta WHERE key LIKE 'fts_rebuild%'", [()])], "stdlib")
    healthy_for_stdlib(path)
    finds_every_word(path)


def refill(path: Path) -> list[Step]:
    """What the store does to finish: layout 2 cuts answers of tools, layout 3 reads them cut."""
    steps = []
    for index in indexes(path):
        columns = ", ".join(index.columns)
        texts = columns
        if index.head_limit:
            texts = columns.replace("content", "iif(role = 'tool', substr(content, 1, 8192), content)")
        source = f"SELECT id, {texts} FROM {index.content} WHERE id > 12 AND id <= 30"
        steps.append(Step(f"INSERT INTO {index.name} (rowid, {columns}) {source}", [()]))
    return steps


def indexes(path: Path) -> tuple[SearchIndex, ...]:
    with opened(path) as connection:
        return read_indexes(connection, read_shape(connection))


@pytest.mark.parametrize(
    "spoil", ["DROP TRIGGER messages_fts_trigram_delete", "INSERT INTO state_meta VALUES ('fts_stale', '1')"]
)
@pytest.mark.parametrize("shape", ["22", "31"])
def test_index_the_store_will_refill_is_left_alone(tmp_path: Path, shape: str, spoil: str) -> None:
    path = store(tmp_path / "state.db", shape)
    execute(path, spoil)
    before, held = triggers(path), execute(path, f"SELECT * FROM {TRIGRAM}_data ORDER BY id")
    upkeep = changed(path, (5, 10), "DELETE FROM messages WHERE id IN (5, 10)")
    assert {item.index.name: item.mode for item in upkeep.indexes}[TRIGRAM] == "suspend"
    assert triggers(path) == before
    assert execute(path, f"SELECT * FROM {TRIGRAM}_data ORDER BY id") == held


def test_file_without_search_needs_nothing(tmp_path: Path) -> None:
    path = store(tmp_path / "state.db", "22")
    names = [name for name, _, _ in triggers(path) if str(name).startswith("messages_fts")]
    run(path, [Step(f"DROP TRIGGER {name}", [()]) for name in names])
    run(path, [Step(f"DROP TABLE {TRIGRAM}", [()])])
    assert changed(path, (5,), "DELETE FROM messages WHERE id = 5").mode == "suspend"
    run(path, [Step(f"DROP TABLE {FTS}", [()])])
    assert changed(path, (6,), "DELETE FROM messages WHERE id = 6").mode == "none"


def cjk(connection: apsw.Connection) -> None:
    plain = apsw.Connection(":memory:").fts5_tokenizer("unicode61", [])
    connection.register_fts5_tokenizer("cjk_unicode61", lambda _connection, _arguments: plain)


def add_cjk(path: Path) -> None:
    """A third index like the second one, by a tokenizer that only an extension has."""
    with opened(path) as connection:
        cjk(connection)
        found = connection.execute(
            "SELECT sql FROM sqlite_schema WHERE name LIKE 'messages_fts_trigram%' AND sql IS NOT NULL"
        )
        texts = [sql for (sql,) in found if not sql.startswith("CREATE TABLE")]
        for text in sorted(texts, key=lambda sql: ["VIE", "VIR", "TRI"].index(sql.split()[1][:3])):
            text = text.replace("messages_fts_trigram", "messages_fts_cjk").replace(
                "'trigram'", '"cjk_unicode61"'
            )
            connection.execute(text.replace("fts_rebuild", "fts_cjk_rebuild"))
        connection.execute("INSERT INTO messages_fts_cjk (messages_fts_cjk) VALUES ('rebuild')")


def test_tokenizer_that_is_not_here_is_named_and_never_needed_for_other_columns(tmp_path: Path) -> None:
    path = store(tmp_path / "state.db", "25")
    assert len(indexes(path)) == 2
    add_cjk(path)
    with opened(path) as connection:
        missing = unavailable_tokenizers(connection, read_shape(connection))
    assert missing == (("messages_fts_cjk", "cjk_unicode61"),)
    with pytest.raises(Refused, match="messages_fts_cjk needs the tokenizer cjk_unicode61"):
        changed(path, (5,), "DELETE FROM messages WHERE id = 5")
    before = triggers(path)
    changed(path, (), "UPDATE messages SET active = 0")
    assert triggers(path) == before
    upkeep = changed(path, (5, 6), "DELETE FROM messages WHERE id IN (5, 6)", before=cjk)
    assert {item.index.name: item.mode for item in upkeep.indexes}["messages_fts_cjk"] == "touch"
    with opened(path) as connection:
        cjk(connection)
        connection.execute(
            "INSERT INTO messages_fts_cjk (messages_fts_cjk, rank) VALUES ('integrity-check', 1)"
        )
    execute(path, "INSERT INTO state_meta VALUES ('fts_cjk_stale', '1')")
    upkeep = changed(path, (7,), "DELETE FROM messages WHERE id = 7")
    assert {item.index.name: item.mode for item in upkeep.indexes}["messages_fts_cjk"] == "suspend"
    healthy_for_stdlib(path)


@pytest.mark.parametrize("shape", ["30", "31"])
def test_session_that_appears_brings_its_messages_in(tmp_path: Path, shape: str) -> None:
    orphans = [
        message(id_, "user", f"cedarone {id_}" if id_ % 2 else "\0json:lost", "lost") for id_ in (50, 51, 52)
    ]
    path = store(tmp_path / "state.db", shape, messages=[*rows(), *orphans])
    upkeep = changed(
        path, (), lambda connection: connection.execute(SESSION, ("lost", "cli")), regrouped=(50, 51, 52)
    )
    assert {item.index.name: item.mode for item in upkeep.indexes}[TRIGRAM] == "touch"
    healthy_for_stdlib(path)
    finds_every_word(path)


@pytest.mark.parametrize("shape", ["30", "31"])
@pytest.mark.parametrize(
    "change",
    ["UPDATE sessions SET source = 'cron' WHERE id = 'plain'", "DELETE FROM sessions WHERE id = 'plain'"],
)
def test_session_that_changes_or_goes_takes_its_messages_out(tmp_path: Path, shape: str, change: str) -> None:
    path = store(tmp_path / "state.db", shape)
    plain = [int(str(row[0])) for row in rows() if row[1] == "plain"]
    changed(path, (), f"PRAGMA foreign_keys = OFF; {change}", regrouped=plain)
    healthy_for_stdlib(path)
    finds_every_word(path)


@pytest.mark.parametrize("shape", ["30", "31"])
def test_orphans_that_were_indexed_leave_by_their_own_text(tmp_path: Path, shape: str) -> None:
    path = store(tmp_path / "state.db", shape)
    execute(path, "DELETE FROM sessions WHERE id = 'plain'")
    gone = [int(str(row[0])) for row in rows() if row[1] == "plain"]
    changed(path, gone[:9], f"DELETE FROM messages WHERE id IN {ids(gone[:9])}")
    upkeep = changed(
        path, (), lambda connection: connection.execute(SESSION, ("plain", "cli")), regrouped=gone[9:]
    )
    assert upkeep.rebuilt == ()
    healthy_for_stdlib(path)
    finds_every_word(path)


def test_columns_that_decide_what_an_index_holds(tmp_path: Path) -> None:
    found = {}
    for shape in SHAPES:
        with opened(store(tmp_path / f"{shape}.db", shape, "ours")) as connection:
            found[shape] = watched_columns(read_shape(connection))
    texts = {"content", "tool_name", "tool_calls"}
    assert found["22"] == {"messages": texts}
    assert found["25"] == {"messages": texts | {"role"}}
    for shape in ("30", "31"):
        assert found[shape] == {
            "messages": texts | {"role", "session_id"},
            "sessions": {"source", "model_config"},
        }


def test_odd_quoting_is_read_as_sqlite_reads_it(tmp_path: Path) -> None:
    path = make(tmp_path / "state.db", "25", journal_mode="delete")
    run(path, [Step(f"DROP TABLE {FTS}", [()])])
    sql = """CREATE VIRTUAL TABLE "messages_fts" USING fts5( "content" , [tool_name], `tool_calls`,
             CONTENT = "messages", content_rowid=[id],
             tokenize = "porter 'unicode61' tokenchars '-_,='" , prefix='2 3')"""
    run(path, [Step(sql, [()]), Step(SESSION, [("plain", "cli"), ("child", "cli")]), Step(INSERT, rows())])
    index = indexes(path)[0]
    assert index.columns == ("content", "tool_name", "tool_calls")
    assert (index.content, index.content_rowid) == ("messages", "id")
    assert (index.tokenizer, index.tokenizer_arguments) == ("porter", ("unicode61", "tokenchars", "-_,="))
    changed(path, range(3, 9), "DELETE FROM messages WHERE id BETWEEN 3 AND 8", mode="rebuild")
    healthy_for_us(path, stops=False)


def test_settings_of_a_rebuilt_index_stay(tmp_path: Path) -> None:
    path = store(tmp_path / "state.db", "22")
    execute(path, f"INSERT INTO {FTS} ({FTS}, rank) VALUES ('automerge', 7)")
    changed(path, (5,), "DELETE FROM messages WHERE id = 5", mode="rebuild")
    assert execute(path, f"SELECT v FROM {FTS}_config WHERE k = 'automerge'") == [(7,)]


def test_index_of_unknown_columns_is_refused(tmp_path: Path) -> None:
    path = store(tmp_path / "state.db", "25")
    run(
        path,
        [
            Step(f"DROP TABLE {FTS}", [()]),
            Step(f"CREATE VIRTUAL TABLE {FTS} USING fts5(content, reasoning)", [()]),
        ],
    )
    with pytest.raises(Refused, match="messages_fts cannot be kept right"):
        changed(path, (5,), "DELETE FROM messages WHERE id = 5")


@pytest.mark.parametrize("shape", SHAPES)
def test_cheaper_way_is_taken(tmp_path: Path, shape: str) -> None:
    path = store(
        tmp_path / "state.db",
        shape,
        messages=[message(id_, "user", "birchsix " * 9) for id_ in range(1, 401)],
    )
    assert changed(path, range(1, 6), "DELETE FROM messages WHERE id < 6").mode == "touch"
    assert changed(path, range(10, 395), "DELETE FROM messages WHERE id BETWEEN 10 AND 394").rebuilt == (
        FTS,
        TRIGRAM,
    )
    healthy_for_stdlib(path)


def test_a_huge_message_outweighs_many_small_ones(tmp_path: Path) -> None:
    small = [message(id_, "user", "birchsix") for id_ in range(1, 101)]
    path = store(tmp_path / "state.db", "25", messages=[*small, message(200, "user", LONG * 20)])
    assert changed(path, range(1, 91), "DELETE FROM messages WHERE id < 91").mode == "touch"
    assert changed(path, (200,), "DELETE FROM messages WHERE id = 200").rebuilt == (FTS, TRIGRAM)


def test_forgotten_tokenizer_is_an_error_and_not_a_broken_index(tmp_path: Path) -> None:
    path = store(tmp_path / "state.db", "22")
    with opened(path) as connection:
        connection.execute("CREATE TEMP TABLE touched_messages (id INTEGER PRIMARY KEY)")
        connection.execute("INSERT INTO touched_messages VALUES (5)")
        upkeep = decide(connection, read_shape(connection))
        with pytest.raises(RuntimeError, match="register_tokenizer"):
            begin_change(connection, upkeep)
    healthy_for_stdlib(path)


@pytest.mark.parametrize("text", ["aé€😀" * 40_000, "word " * 90_000, "é" * 131_071 + "abc", "ab", ""])
def test_long_text_gives_the_tokens_of_the_whole(text: str) -> None:
    plain = apsw.Connection(":memory:").fts5_tokenizer("trigram", [])
    connection = apsw.Connection(":memory:")
    nul_tokenizer.register(connection)
    ours = connection.fts5_tokenizer("trigram", [])
    data = text.encode()
    assert ours(data, apsw.FTS5_TOKENIZE_DOCUMENT, None) == plain(data, apsw.FTS5_TOKENIZE_DOCUMENT, None)
    assert ours(data + b"\0more", apsw.FTS5_TOKENIZE_DOCUMENT, None) == ours(
        data, apsw.FTS5_TOKENIZE_DOCUMENT, None
    )


def test_packed_sizes() -> None:
    assert unpacked(bytes.fromhex("05818000ff7f")) == [5, 16384, 16383]
    assert unpacked(b"") == []


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("stores")
    return {shape: store(folder / f"{shape}.db", shape) for shape in SHAPES}


@pytest.mark.parametrize("shape", SHAPES)
@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_any_change_keeps_every_word_findable(
    stores: dict[str, Path], tmp_path: Path, shape: str, data: st.DataObject
) -> None:
    path = tmp_path / "state.db"
    shutil.copy(stores[shape], path)
    texts = st.lists(st.sampled_from((*WORDS, "\0json:", "é", "日本語", "")), max_size=5).map(" ".join)
    gone = data.draw(st.sets(st.integers(1, 40)), label="gone")
    edited = data.draw(st.dictionaries(st.integers(1, 40), texts, max_size=6), label="edited")
    roles = data.draw(
        st.dictionaries(st.integers(1, 40), st.sampled_from(("user", "tool")), max_size=4), label="roles"
    )

    def change(connection: apsw.Connection) -> None:
        connection.executemany("DELETE FROM messages WHERE id = ?", [(id_,) for id_ in gone])
        connection.executemany(
            "UPDATE messages SET content = ? WHERE id = ?", [(t, i) for i, t in edited.items()]
        )
        connection.executemany(
            "UPDATE messages SET role = ? WHERE id = ?", [(r, i) for i, r in roles.items()]
        )

    mode = data.draw(st.sampled_from(("", "rebuild")), label="mode")
    changed(path, gone | edited.keys() | roles.keys(), change, mode=mode)
    healthy_for_stdlib(path)
    healthy_for_us(path, stops=True)
    finds_every_word(path)
    back = [row for row in rows() if row[0] in gone]
    changed(path, gone, lambda connection: connection.executemany(INSERT, back))
    healthy_for_stdlib(path)
    finds_every_word(path)
