"""Damaged search indexes: the right verdict for any damaged page, mended in place or refused, and never a row the worse."""

from __future__ import annotations

import random
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import apsw
import pytest

from hermes_dbtools import apply_plan, database, documents, make_plan, plan_documents, preflight, scan
from hermes_dbtools.apply import ApplyOptions
from hermes_dbtools.home import resolve
from hermes_dbtools.model import DatabaseReport, Holder, Plan, Refused, Report, Status
from hermes_dbtools.plan import PlanOptions, totals
from hermes_dbtools.report.next_steps import plan_next, scan_next
from hermes_dbtools.report.scans import scan_text
from hermes_dbtools.scanning import ScanOptions
from hermes_dbtools.search_check import check
from hermes_dbtools.search_definition import definitions
from hermes_dbtools.shape import read_shape
from tests.damage_bytes import flip
from tests.shapes.engines import Step, run
from tests.shapes.make import fill, fill_many, make

NOW = 1_790_000_000.0
PAGE = 4096
FTS, TRIGRAM = "messages_fts", "messages_fts_trigram"
PLACES = (0, 3, 5, 8, 40, 2000)
"""Bytes of a page: its kind, the number of its cells, where they begin, the last child, a cell, the middle."""


def look(home: Path, *select: str, deep: bool = False) -> DatabaseReport:
    words = select or ("search", "structural-damage")
    (report,) = scan((home,), ScanOptions(select=words, deep=deep, now=NOW)).databases
    assert report.error == ""
    return report


def found(report: DatabaseReport) -> set[tuple[str, str]]:
    return {(finding.code, finding.key) for result in report.results for finding in result.findings}


def mend(home: Path, plan: Plan) -> None:
    assert apply_plan(resolve(home), plan, ApplyOptions(now=NOW)).status == "committed"


def answer(path: Path, sql: str) -> list[tuple[object, ...]]:
    with opened(path) as connection:
        return list(connection.execute(sql))


@contextmanager
def opened(path: Path) -> Iterator[apsw.Connection]:
    connection = apsw.Connection(str(path))
    try:
        yield connection
    finally:
        connection.close()


@pytest.fixture(scope="module", params=["22", "31"])
def whole(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A healthy store whose search tables have several pages."""
    path = make(tmp_path_factory.mktemp("whole") / "state.db", request.param, journal_mode="delete")
    fill(path)
    fill_many(path, 10, 30, 300)
    return path


def pages(path: Path, names: str) -> dict[tuple[str, str], list[int]]:
    """The pages of each table and kind."""
    kept: dict[tuple[str, str], list[int]] = {}
    rows = answer(
        path, f"SELECT name, pagetype, pageno FROM dbstat WHERE name GLOB '{names}' ORDER BY pageno"
    )
    for name, kind, page in rows:
        kept.setdefault((str(name), str(kind)), []).append(int(str(page)))
    return kept


def spoilt(path: Path, home: Path, page: int, place: int) -> Path:
    home.mkdir(parents=True)
    data = bytearray(path.read_bytes())
    data[(page - 1) * PAGE + place] ^= 0xFF
    (home / "state.db").write_bytes(data)
    return home


def test_a_damaged_page_of_an_index_is_never_damage_of_the_rows(whole: Path, tmp_path: Path) -> None:
    """Every kind of page of every table of both indexes: named or harmless, mended whole or refused before a write."""
    chance = random.Random(5)
    rows = answer(whole, "SELECT * FROM messages ORDER BY id")
    outcomes = set()
    for (name, kind), numbers in pages(whole, "messages_fts*").items():
        for place in chance.sample(PLACES, 2):
            home = spoilt(whole, tmp_path / f"{name}-{kind}-{place}", chance.choice(numbers), place)
            report = look(home)
            assert found(report) <= {("HDB802", FTS), ("HDB802", TRIGRAM)}
            plan = make_plan(report)
            if plan.steps:
                mend(home, plan)
                assert answer(home / "state.db", "PRAGMA integrity_check") == [("ok",)]
                assert found(look(home)) == set()
            else:
                assert all("salvage" in skipped.reason for skipped in plan.skipped)
            outcomes.add((bool(found(report)), bool(plan.steps)))
            assert answer(home / "state.db", "SELECT * FROM messages ORDER BY id") == rows
    assert {(True, True), (True, False)} <= outcomes


def test_nothing_is_mended_while_a_table_of_the_messages_is_damaged(whole: Path, tmp_path: Path) -> None:
    page = pages(whole, "messages")["messages", "leaf"][1]
    home = spoilt(whole, tmp_path / "home", page, 0)
    with opened(home / "state.db") as connection:
        connection.execute("UPDATE messages_fts_data SET block = zeroblob(length(block)) WHERE id > 10")
    report = look(home)
    assert {("HDB002", "messages"), ("HDB802", FTS)} <= found(report)
    plan = make_plan(report)
    assert plan.steps == ()
    assert {skipped.reason for skipped in plan.skipped if skipped.code == "HDB802"} == {
        "structural-damage (HDB002) comes first: no row of this file may be changed"
    }


def test_an_index_that_shares_a_page_with_the_messages_is_not_dropped(whole: Path, tmp_path: Path) -> None:
    """Its drop would give back a page of the messages: the next insert would overwrite them."""
    shared = pages(whole, "messages")["messages", "leaf"][2]
    home = tmp_path / "home"
    home.mkdir()
    shutil.copy(whole, home / "state.db")
    with opened(home / "state.db") as connection:
        connection.execute("PRAGMA writable_schema = ON")
        connection.execute(
            "UPDATE sqlite_schema SET rootpage = ? WHERE name = 'messages_fts_docsize'", (shared,)
        )
    report = look(home)
    assert found(report) == {("HDB801", FTS)}, "no table by itself is damaged"
    before = (home / "state.db").read_bytes()
    with pytest.raises(Refused, match="structurally damaged"):
        apply_plan(resolve(home), make_plan(report), ApplyOptions(now=NOW))
    assert (home / "state.db").read_bytes() == before


def test_a_plan_of_indexes_survives_its_file_and_is_refused_beside_a_holder(tmp_path: Path) -> None:
    home = damaged(tmp_path / "home", "DELETE FROM messages_fts WHERE rowid IN (2, 3)")
    plan = make_plan(look(home))
    saved = documents.encode(plan_documents.plan_document(plan, totals(plan)))
    assert plan_documents.decode_plan(saved, "plan.json") == plan
    with pytest.raises(Refused, match="only while nobody holds the file"):
        refuse_beside_holder(home, plan)
    mend(home, plan_documents.decode_plan(saved, "plan.json"))
    assert found(look(home)) == set()


def refuse_beside_holder(home: Path, plan: Plan) -> None:
    state = database.examine(resolve(home).database)
    holders = replace(state.holders, processes=(Holder(1, "gateway"),))
    preflight.refuse_held(replace(state, holders=holders), plan, online=True, limit_seconds=9.0)


def damaged(home: Path, sql: str, shape: str = "22") -> Path:
    home.mkdir(parents=True)
    path = make(home / "state.db", shape, journal_mode="delete")
    fill(path)
    with opened(path) as connection:
        connection.execute(sql)
    return home


def test_a_purge_and_an_index_made_anew_go_into_one_plan(tmp_path: Path) -> None:
    """The index is filled once, with what is left."""
    home = damaged(
        tmp_path / "home",
        """
        DELETE FROM session_model_usage WHERE session_id = '20260528_222640_d4735e';
        DELETE FROM sessions WHERE id = '20260528_222640_d4735e';
        UPDATE messages_fts_data SET block = zeroblob(length(block)) WHERE id > 10;
        """,
    )
    report = look(home, "search", "orphaned-messages")
    plan = make_plan(report, PlanOptions({"orphaned-messages": "purge"}, allow_lossy=True, max_rows=100))
    assert [step.code for step in plan.steps] == ["HDB802", "HDB201"]
    mend(home, plan)
    assert found(look(home, deep=True)) == set()
    path = home / "state.db"
    assert answer(path, "SELECT COUNT(*) FROM messages_fts") == answer(path, "SELECT COUNT(*) FROM messages")


@pytest.mark.parametrize("shape", ["22", "25", "31"])
def test_a_file_that_two_engines_wrote_is_healthy(shape: str, tmp_path: Path) -> None:
    """The older one ends a text at its NUL byte, ours does not."""
    path = make(tmp_path / "state.db", shape, journal_mode="delete")
    fill(path)
    insert = Step(
        "INSERT INTO messages (session_id, role, content, timestamp) SELECT id, 'user', ?, 1.78e9 FROM sessions LIMIT 1",
        [("\0json:[1]hidden words",), ("before\0behind it",)],
    )
    run(path, [insert], "stdlib")
    run(path, [insert], "ours")
    report = look(tmp_path, deep=True)
    assert found(report) == set()
    with opened(path) as connection:
        trigram = next(index for index in definitions(read_shape(connection)) if index.name == TRIGRAM)
        checked = check(connection, trigram)
    assert (checked.whole, checked.stopped) == (3, 2), "one of `fill` is among them"


def test_a_few_gaps_are_brought_in_without_making_the_index_anew(tmp_path: Path) -> None:
    home = tmp_path
    path = make(home / "state.db", "25", journal_mode="delete")
    fill_many(path, 10, 50, 100)
    with opened(path) as connection:
        connection.execute("""
            INSERT INTO messages_fts (messages_fts, rowid, content, tool_name, tool_calls)
            SELECT 'delete', id, content, tool_name, tool_calls FROM messages WHERE id % 40 = 0
        """)
    report = look(home)
    (gaps,) = (finding for result in report.results for finding in result.findings)
    assert gaps.evidence["missing"] == 12
    assert gaps.evidence["missing_ranges"] == tuple((id_, id_, 1) for id_ in range(40, 500, 40))
    receipt = apply_plan(resolve(home), make_plan(report), ApplyOptions(now=NOW))
    assert receipt.search_rebuilt == ()
    assert found(look(home, deep=True)) == set()


def test_two_rows_of_one_index_in_the_schema_are_named_and_nothing_is_planned(tmp_path: Path) -> None:
    home = damaged(
        tmp_path / "home",
        "PRAGMA writable_schema = ON;"
        "INSERT INTO sqlite_schema SELECT * FROM sqlite_schema WHERE name = 'messages_fts'",
    )
    report = look(home)
    assert found(report) == {("HDB002", "sqlite_schema")}
    blind = {result.code for result in report.results if result.status is Status.COULD_NOT_LOOK}
    assert {"HDB801", "HDB802", "HDB803", "HDB804"} <= blind
    assert make_plan(report).steps == ()


def test_a_report_says_of_each_index_what_it_is(tmp_path: Path) -> None:
    home = damaged(
        tmp_path / "home",
        """
        DROP TRIGGER messages_fts_trigram_insert;
        DROP TRIGGER messages_fts_trigram_delete;
        DROP TRIGGER messages_fts_trigram_update;
        DROP TABLE messages_fts_trigram;
        DELETE FROM messages_fts WHERE rowid IN (2, 3, 7);
        """,
    )
    words, pieces = look(home).search
    assert (words.name, words.layout, words.columns, words.verdict) == (FTS, "inline", ("content",), "stale")
    assert (words.expected, words.indexed, words.missing, words.gaps) == (31, 28, 3, ((2, 3, 2), (7, 7, 1)))
    assert len(words.triggers) == 3
    assert words.engine == apsw.sqlite_lib_version()
    assert (pieces.name, pieces.present, pieces.verdict) == (TRIGRAM, False, "degraded")
    assert found(look(home)) == {("HDB801", FTS)}


def test_what_to_run_next_leads_to_a_repair_that_sees_the_damage(tmp_path: Path) -> None:
    """What only a deep look finds, a repair of everything would not find again."""
    home = damaged(tmp_path / "home", "UPDATE messages_fts SET content = 'said before' WHERE rowid = 4")
    report = look(home, deep=True)
    assert found(report) == {("HDB802", FTS)}
    first, _runbook = scan_next(report, [r for r in report.results if r.counts])
    assert f"repair {report.path} --select search-index-damage " in first


def test_damage_that_no_repair_can_take_away_leads_to_salvage(whole: Path, tmp_path: Path) -> None:
    page = pages(whole, "messages_fts_data")["messages_fts_data", "internal"][0]
    home = spoilt(whole, tmp_path / "home", page, 3)
    for place in range(PAGE):
        if place != 3:
            flip(home / "state.db", (page - 1) * PAGE + place)
    with opened(home / "state.db") as connection:
        connection.execute("INSERT INTO sessions (id, source, started_at) VALUES ('empty', 'cli', 1.0)")
    report = look(home, "search", "structural-damage", "counters", "empty-sessions")
    plan = make_plan(report, PlanOptions(allow_lossy=True))
    assert plan.steps == ()
    assert {skipped.code for skipped in plan.skipped} == {"HDB802", "HDB313"}
    for lines in (scan_next(report, [r for r in report.results if r.counts]), plan_next(plan, report)):
        assert f"hermes-dbtools salvage {report.path} NEW.db " in lines[0]


def test_a_scan_says_without_verbose_which_index_is_not_well(tmp_path: Path) -> None:
    healthy = damaged(tmp_path / "healthy", "SELECT 1")
    assert "verdict" not in scan_text(Report((look(healthy),), 0))
    gaps = damaged(tmp_path / "gaps", "DELETE FROM messages_fts WHERE rowid IN (2, 3, 7)")
    text = scan_text(Report((look(gaps),), 1))
    assert "31      28         stale\n" in text
    assert "messages_fts: 3 rows missing, 0 left (ids 2 to 3, 7)\n" in text
