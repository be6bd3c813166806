"""Bad values of every kind at once: each is found, none stops a class, one plan mends what can be mended, undo gives all back."""

from __future__ import annotations

from pathlib import Path

import apsw
import pytest

from hermes_dbtools import apply_plan, make_plan, scan, undo
from hermes_dbtools.apply import ApplyOptions
from hermes_dbtools.damage.values._owners import REFERENCES
from hermes_dbtools.home import resolve
from hermes_dbtools.model import DatabaseReport, Status
from hermes_dbtools.plan import PlanOptions
from hermes_dbtools.scanning import ScanOptions
from hermes_dbtools.undoing import UndoOptions
from tests.shapes.make import fill, make
from tests.test_cases import NOW, digest

LEAVE = PlanOptions(allow_lossy=True)

EVERYTHING = """
DROP INDEX idx_sessions_title_unique;
UPDATE sessions SET model_config = '{"a":' WHERE id = '20260528_222640_d4735e';
UPDATE messages SET tool_calls = '[{' WHERE id = 14;
UPDATE messages SET timestamp = timestamp * 1000 WHERE id = 2;
UPDATE messages SET timestamp = 'x' WHERE id = 3;
UPDATE sessions SET started_at = 8.4e252 WHERE id = '20260528_222640_d4735e';
UPDATE sessions SET billing_provider = CAST(x'a8e8' AS TEXT), title = CAST(x'ff' AS TEXT) WHERE id = '20260529_012640_ef2d12';
UPDATE messages SET content = CAST(x'6869ff' AS TEXT) WHERE id = 12;
UPDATE sessions SET estimated_cost_usd = 1.33e179, input_tokens = 'x' WHERE id = '20260528_212640_6b86b2';
UPDATE messages SET role = 'usr' WHERE id = 9;
UPDATE sessions SET title = 'Branch' WHERE id = '20260528_212640_6b86b2';
UPDATE sessions SET title = '' WHERE id = '20260529_002640_4b2277';
UPDATE sessions SET message_count = -1 WHERE id = '20260528_232640_4e0740';
UPDATE sessions SET cache_read_tokens = 5, cache_write_tokens = 5, reasoning_tokens = 5, input_tokens = 1
 WHERE id = '20260529_022640_e7f6c0';
UPDATE sqlite_sequence SET seq = 1 WHERE name = 'messages';
"""
MENDED = {"HDB401", "HDB402", "HDB403", "HDB406", "HDB501", "HDB502"}
"""The classes of which EVERYTHING holds something that a plan mends, by the leave to drop values."""
ONLY_SAID = {"HDB405", "HDB503"}

BAD = {
    "broken text": "CAST(x'61ff62' AS TEXT)",
    "text": "'{not json, no time, no number'",
    "empty": "''",
    "bytes": "x'00ff'",
    "infinite": "9e999",
    "huge": "8.4e252",
    "tiny": "3.9e-310",
    "negative": "-5",
    "NUL json": "char(0) || 'json:[{'",
}


def look(path: Path) -> DatabaseReport:
    (report,) = scan((path,), ScanOptions(limit=None, now=NOW)).databases
    assert report.error == ""
    unseen = {r.code: r.reason for r in report.results if r.status is Status.COULD_NOT_LOOK}
    assert unseen == {}
    return report


def codes(report: DatabaseReport) -> set[str]:
    return {result.code for result in report.results if result.status is Status.DAMAGED}


def damaged(path: Path, sql: str) -> None:
    connection = apsw.Connection(str(path))
    try:
        connection.execute("PRAGMA foreign_keys = OFF; PRAGMA ignore_check_constraints = ON")
        connection.execute(sql)
    finally:
        connection.close()


def store(folder: Path, shape: str) -> Path:
    folder.mkdir()
    path = make(folder / "state.db", shape, parts=("telegram", "deliveries"))
    fill(path)
    return path


@pytest.mark.parametrize("shape", ["22", "25", "31", "runtime", "media"])
def test_every_bad_value_at_once_gives_every_finding_and_one_plan_mends_them(
    shape: str, tmp_path: Path
) -> None:
    path = store(tmp_path / "home", shape)
    damaged(path, EVERYTHING)
    home, before = resolve(path), digest(path)
    report = look(path)
    assert codes(report) >= MENDED | ONLY_SAID
    plan = make_plan(report, LEAVE)
    assert {step.code for step in plan.steps} >= MENDED
    receipt = apply_plan(home, plan, ApplyOptions(now=NOW))
    after = look(path)
    planned = {(step.code, step.key) for step in plan.steps}
    assert not planned & {(f.code, f.key) for result in after.results for f in result.findings}
    left = make_plan(after, LEAVE)
    assert {step.key for step in left.steps} == {"idx_sessions_title_unique"}, "titles are unique again"
    second = apply_plan(home, left, ApplyOptions(now=NOW + 1))
    assert make_plan(look(path), LEAVE).steps == ()
    undo(home, second, UndoOptions(now=NOW + 1))
    undo(home, receipt, UndoOptions(now=NOW))
    assert digest(path) == before


@pytest.mark.parametrize("kind", BAD)
@pytest.mark.parametrize("shape", ["22", "media"])
def test_a_bad_value_in_every_column_stops_no_class(shape: str, kind: str, tmp_path: Path) -> None:
    path = store(tmp_path / "home", shape)
    connection = apsw.Connection(str(path))
    connection.execute("PRAGMA foreign_keys = OFF; PRAGMA ignore_check_constraints = ON")
    spoilt = 0
    tables = "SELECT name FROM pragma_table_list WHERE schema = 'main' AND type = 'table' AND name NOT LIKE 'sqlite_%'"
    for (table,) in connection.execute(tables).fetchall():
        columns = connection.execute(f"SELECT name, pk FROM pragma_table_info('{table}')").fetchall()
        for column, key in columns:
            if not key and table not in ("schema_version", "runtime_epoch"):
                connection.execute(f'UPDATE OR IGNORE "{table}" SET "{column}" = {BAD[kind]}')
                spoilt += connection.changes()
    connection.close()
    assert spoilt > 300
    report = look(path)
    assert codes(report) & {"HDB401", "HDB402", "HDB403", "HDB405"}
    assert make_plan(report, LEAVE) == make_plan(look(path), LEAVE)


def test_a_bad_value_of_one_column_at_a_time_is_found_in_every_table(tmp_path: Path) -> None:
    """Text that is not UTF-8, in each column that keeps text: one finding that names table and column, whatever it is.

    A column that names another row is apart: the classes of references say that the row is missing.
    """
    path = store(tmp_path / "home", "media")
    known = look(path)
    connection = apsw.Connection(str(path))
    connection.execute("PRAGMA foreign_keys = OFF; PRAGMA ignore_check_constraints = ON")
    tables = "SELECT name FROM pragma_table_list WHERE schema = 'main' AND type = 'table' AND name NOT LIKE 'sqlite_%'"
    places = [
        (table, column)
        for (table,) in connection.execute(tables).fetchall()
        for (column,) in connection.execute(
            "SELECT name FROM pragma_table_info(?) WHERE type = 'TEXT'", (table,)
        ).fetchall()
        if connection.execute(f'SELECT rowid FROM "{table}" LIMIT 1').fetchone()
    ]
    connection.close()
    assert len(places) > 80
    assert "HDB403" not in codes(known)
    only = ScanOptions(select=("HDB403",), limit=None, now=NOW)
    for table, column in places:
        connection = apsw.Connection(str(path))
        connection.execute("PRAGMA foreign_keys = OFF; PRAGMA ignore_check_constraints = ON; BEGIN")
        ((row, kept),) = connection.execute(f'SELECT rowid, "{column}" FROM "{table}" LIMIT 1').fetchall()
        spoil = f'UPDATE "{table}" SET "{column}" = CAST(x\'22ff22\' AS TEXT) WHERE rowid = ?'
        connection.execute(spoil, (row,))
        connection.execute("COMMIT")
        connection.close()
        (report,) = scan((path,), only).databases
        found = [finding for result in report.results for finding in result.findings]
        named = [
            (finding.table, name)
            for finding in found
            for name in finding.evidence["columns"]  # type: ignore[attr-defined]
        ]
        # A prompt whose own name is broken is used by nobody: that row belongs to unreferenced-system-prompts.
        apart = {("system_prompts", "hash"), *((table, column) for column in REFERENCES.get(table, ()))}
        assert set(named) == {(table, column)} - apart
        connection = apsw.Connection(str(path))
        connection.execute("PRAGMA foreign_keys = OFF; PRAGMA ignore_check_constraints = ON")
        connection.execute(f'UPDATE "{table}" SET "{column}" = ? WHERE rowid = ?', (kept, row))
        connection.close()
