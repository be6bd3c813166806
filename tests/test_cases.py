"""The one loop over tests/cases: damage a healthy file, look, repair, look again, take it back."""

from __future__ import annotations

import hashlib
import re
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import apsw
import pytest

from hermes_dbtools import apply_plan, make_plan, scan, undo
from hermes_dbtools.apply import ApplyOptions, rehearse
from hermes_dbtools.damage import REGISTRY
from hermes_dbtools.home import Home, resolve
from hermes_dbtools.model import DatabaseReport, Plan, Status
from hermes_dbtools.plan import PlanOptions
from hermes_dbtools.scanning import ScanOptions
from hermes_dbtools.undoing import UndoOptions
from tests.shapes.make import fill, make

FOLDER = Path(__file__).with_name("cases")
NOW = 1_790_000_000.0
SITUATIONS = ("found", "repaired", "trap", "clean", "refused")
FIELDS = {
    "name", "shape", "parts", "situation", "damage", "files", "choose", "allow_lossy", "max_rows",
    "expect", "after", "holds", "refused", "now", "deep",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Case:
    """One table of a case file; `slug` is the damage class whose file it stands in."""

    slug: str
    table: Mapping[str, Any]

    @property
    def situation(self) -> str:
        return str(self.table["situation"])

    @property
    def now(self) -> float:
        return float(self.table.get("now", NOW))

    @property
    def plan_options(self) -> PlanOptions:
        choose = self.table.get("choose", {})
        choices = {self.slug: choose} if isinstance(choose, str) else choose
        return PlanOptions(choices, self.table.get("allow_lossy", False), self.table.get("max_rows"))


def _cases() -> list[Any]:
    found = []
    for path in sorted(FOLDER.glob("*/*.toml")):
        for table in tomllib.loads(path.read_text("utf-8"))["case"]:
            if "spoil" in table:  # what SQL cannot do to a file: tests/test_storage_classes.py
                continue
            case = Case(path.stem.replace("_", "-"), table)
            found.append(pytest.param(case, id=f"{path.stem}: {table['name']}"))
    return found


@pytest.mark.parametrize("case", _cases())
def test_case(case: Case, tmp_path: Path) -> None:
    assert set(case.table) <= FIELDS
    assert case.situation in SITUATIONS
    home = damaged_home(case, tmp_path)
    before = digest(home.database)
    report = _scan(home, case)
    assert _found(report) == _expected(case.table["expect"], report)
    plan = make_plan(report, case.plan_options)
    assert digest(home.database) == before, "a scan and a dry run write nothing"
    if case.situation in ("refused", "trap", "clean"):
        assert not [step for step in plan.steps if step.slug == case.slug]
        assert case.table.get("refused", "") in " | ".join(skip.reason for skip in plan.skipped)
    if case.situation == "repaired":
        assert [step for step in plan.steps if step.slug == case.slug]
        _repair(case, home, plan)


def test_case_files_belong_to_classes_and_name_each_case_once() -> None:
    known = {damage.path for damage in REGISTRY}
    for path in sorted(FOLDER.glob("*/*.toml")):
        name = path.relative_to(FOLDER).with_suffix("").as_posix()
        assert name in known
        tables = tomllib.loads(path.read_text("utf-8"))["case"]
        names = [table["name"] for table in tables]
        assert len(names) == len(set(names)), name
        assert any(table["expect"] for table in tables), f"{name}: no case is found"
        assert any(not table["expect"] for table in tables), f"{name}: no case is clean"


def _repair(case: Case, home: Home, plan: Plan) -> None:
    before, violations = digest(home.database), _violations(home.database)
    derived = any(step.search for step in plan.steps)
    rows_before = digest(home.database, search=not derived)
    rehearse(home, plan, ApplyOptions(now=case.now))
    assert digest(home.database) == before, "a rehearsal writes nothing"
    receipt = apply_plan(home, plan, ApplyOptions(now=case.now))
    assert receipt.status == "committed"
    report = _scan(home, case)
    assert _found(report) == _expected(case.table.get("after", []), report)
    for statement in case.table.get("holds", []):
        assert _rows(home.database, statement) == [(1,)], statement
    again = make_plan(report, case.plan_options)
    expected_again = {(finding["code"], finding["key"]) for finding in case.table.get("after", [])}
    assert {(step.code, step.key) for step in again.steps} <= expected_again
    assert not {(step.code, step.key) for step in plan.steps} & expected_again
    assert undo(home, receipt, UndoOptions(now=case.now)).status == "undone"
    assert digest(home.database, search=not derived) == rows_before, "an undo gives back every row"
    if derived:
        assert _found(_scan(home, case)) == _expected(case.table.get("after", []), report), (
            "indexes stay made"
        )
    assert _violations(home.database) == violations


def damaged_home(case: Case, folder: Path) -> Home:
    """A healthy home, damaged as the case says; fails when the damage changes nothing.

    In its SQL, `{home}` is the path of the home, and `sha256(text)` a digest.
    """
    home = folder / "home"
    for part in ("sessions", "cache/documents/native-inputs", "cache/transcript_media"):
        (home / part).mkdir(parents=True)
    path = make(home / "state.db", case.table["shape"], parts=case.table.get("parts", ()))
    fill(path)
    for name, content in case.table.get("files", {}).items():
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text(content, "utf-8")
    healthy = (digest(path), entries(path))
    if sql := case.table.get("damage", "").strip():
        connection = apsw.Connection(str(path))
        try:
            connection.execute("PRAGMA foreign_keys = OFF")
            connection.create_scalar_function(
                "sha256", lambda said: hashlib.sha256(said.encode()).hexdigest()
            )
            connection.execute(sql.replace("{home}", str(home)))
        finally:
            connection.close()
        assert (digest(path), entries(path)) != healthy, "the damage damages nothing"
    return resolve(home)


def _scan(home: Home, case: Case) -> DatabaseReport:
    (report,) = scan(
        (home.root,), ScanOptions(limit=None, now=case.now, deep=case.table.get("deep", False))
    ).databases
    assert report.error == ""
    unseen = [
        (result.code, result.reason) for result in report.results if result.status is Status.COULD_NOT_LOOK
    ]
    assert not unseen
    return report


def _found(report: DatabaseReport) -> list[tuple[str, str, str, str]]:
    return sorted(
        (finding.code, finding.key, finding.severity.word, finding.kind)
        for result in report.results
        for finding in result.findings
    )


def _expected(tables: list[dict[str, str]], report: DatabaseReport) -> list[tuple[str, str, str, str]]:
    """What a case expects; a kind that it does not name is the kind that was found."""
    kinds = {
        (finding.code, finding.key): finding.kind for result in report.results for finding in result.findings
    }
    return sorted(
        (t["code"], t["key"], t["severity"], t.get("kind", kinds.get((t["code"], t["key"]), "")))
        for t in tables
    )


def digest(path: Path, *, search: bool = True) -> str:
    """A digest of the schema and of every row but our own marks, sorted by value; the rows of search tables apart.

    Without `search` their schema and their marks are left out too: an undo leaves a mended index as it is.
    """
    total = hashlib.sha256()
    with _opened(path) as connection:
        schema = connection.execute(
            "SELECT type, name, sql FROM sqlite_schema ORDER BY type, name"
        ).fetchall()
        for kind, name, sql in schema:
            if not search and re.search(r"(^|_)(messages_fts|fts_v\d+)_|^messages_fts$", str(name)):
                continue
            total.update(repr((kind, name, sql)).encode())
            if kind != "table" or str(name).startswith(("messages_fts", "sqlite_")):
                continue
            columns = [row[1] for row in connection.execute(f'PRAGMA table_info("{name}")')]
            values = ", ".join(f'typeof("{column}"), CAST("{column}" AS BLOB)' for column in columns)
            ours = "WHERE key NOT GLOB 'hermes_dbtools.*'" if name == "state_meta" else ""
            if ours and not search:
                ours += " AND key NOT GLOB 'fts_*'"
            for row in sorted(map(repr, connection.execute(f'SELECT {values} FROM "{name}" {ours}'))):
                total.update(row.encode())
    return total.hexdigest()


def entries(path: Path) -> str:
    """A digest of the rows of the search tables, which FTS5 keeps as ordinary rows."""
    total = hashlib.sha256()
    shadows = "SELECT name FROM pragma_table_list WHERE type = 'shadow' ORDER BY name"
    with _opened(path) as connection:
        for (name,) in connection.execute(shadows).fetchall():
            columns = [row[1] for row in connection.execute(f'PRAGMA table_info("{name}")')]
            values = ", ".join(f'CAST("{column}" AS BLOB)' for column in columns)
            total.update(repr((name, list(connection.execute(f'SELECT {values} FROM "{name}"')))).encode())
    return total.hexdigest()


def _violations(path: Path) -> list[tuple[Any, ...]]:
    """The broken keys by table: row ids of tables with another key do not survive an undo."""
    return sorted(
        (table, parent, key) for table, _row, parent, key in _rows(path, "PRAGMA foreign_key_check")
    )


def _rows(path: Path, sql: str) -> list[tuple[Any, ...]]:
    with _opened(path) as connection:
        return list(connection.execute(sql))


@contextmanager
def _opened(path: Path) -> Iterator[apsw.Connection]:
    connection = apsw.Connection(str(path))
    try:
        yield connection
    finally:
        connection.close()
