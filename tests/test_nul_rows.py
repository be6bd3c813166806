"""Rows whose text begins with a NUL byte: written by every store, indexed by the rule of its engine, never accused."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from hermes_dbtools.home import Home
from hermes_dbtools.model import Plan, Status
from tests.repairs import (
    ROOT,
    THIRD,
    look,
    new_home,
    plan_of,
    purge_of,
    repair,
    search_is_sound,
    state,
    take_back,
)
from tests.shapes.engines import Engine, Step, run
from tests.shapes.make import execute, fill_many

ORPHANED = (
    f"DELETE FROM sessions WHERE id = '{ROOT}'",
    "DELETE FROM sessions WHERE id LIKE '%3'",
)
# the flag as on files where the column was added later
NULLABLE = (
    "UPDATE sqlite_schema SET sql = replace(sql, 'active INTEGER NOT NULL DEFAULT 1', 'active INTEGER')"
    " WHERE name = 'messages'"
)
UNFLAGGED = f"UPDATE messages SET active = NULL WHERE session_id IN ('{ROOT}', '{THIRD}')"


def activated(home: Home) -> Plan:
    return plan_of(home, select=("null-active",))


def big_purge(home: Home) -> Plan:
    return purge_of(home, max_rows=1_000_000)


REPAIRS: dict[str, tuple[tuple[str, ...], Callable[[Home], Plan]]] = {
    "adopt": (ORPHANED, plan_of),
    "purge": (ORPHANED, big_purge),
    "purge nearly all": ((f"DELETE FROM sessions WHERE id <> '{THIRD}'",), big_purge),
    "activate": ((UNFLAGGED,), activated),
}


def store(folder: Path, shape: str, engine: Engine) -> Home:
    home = new_home(folder, shape, engine=engine)
    fill_many(home.database, 20, 20, 120, nul_every=7, engine=engine)
    return home


def test_the_other_engine_is_an_old_one() -> None:
    assert sqlite3.sqlite_version_info < (3, 43), "these tests need an engine that ends text at a NUL byte"


@pytest.mark.parametrize("engine", ["stdlib", "ours"])
@pytest.mark.parametrize("shape", ["11", "14", "19", "22", "25", "30", "31"])
def test_a_healthy_file_with_such_rows_is_not_accused(shape: str, engine: Engine, tmp_path: Path) -> None:
    home = store(tmp_path / "home", shape, engine)
    report = look(home)
    assert [
        (result.code, result.reason) for result in report.results if result.status is Status.DAMAGED
    ] == []
    assert [(r.code, r.reason) for r in report.results if r.status is Status.COULD_NOT_LOOK] == []


@pytest.mark.parametrize("kind", REPAIRS)
@pytest.mark.parametrize("engine", ["stdlib", "ours"])
@pytest.mark.parametrize("shape", ["22", "25", "30", "31"])
def test_both_engines_pass_both_indexes_after_each_repair_and_its_undo(
    shape: str, engine: Engine, kind: str, tmp_path: Path
) -> None:
    damages, plan = REPAIRS[kind]
    home = store(tmp_path / "home", shape, engine)
    if kind == "activate":
        run(home.database, [Step("PRAGMA writable_schema = ON", [()]), Step(NULLABLE, [()])])
    for damage in damages:
        execute(home.database, damage, engine=engine)
    before = state(home.database)
    for backup in (True, False):
        planned = plan(home)
        assert planned.steps, planned.skipped[:3]
        repair(home, planned, backup=backup)
        search_is_sound(home.database, tmp_path / "checks", writer=engine)
        take_back(home)
        assert state(home.database) == before
        search_is_sound(home.database, tmp_path / "checks", writer=engine)
