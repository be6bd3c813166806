"""Bad values of every kind in rows of their own hide no damage of any class: one case of each, with them beside it."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import apsw
import pytest

from hermes_dbtools import scan
from hermes_dbtools.damage import REGISTRY
from hermes_dbtools.damage._declare import Damage
from hermes_dbtools.model import Status
from hermes_dbtools.scanning import ScanOptions
from tests.test_cases import FOLDER, Case, damaged_home
from tests.test_values import BAD

ODD = "beside"
"""The session whose rows are bad."""
TABLES = {
    "sessions": "id",
    "messages": "id",
    "session_model_usage": "session_id",
    "gateway_routing": "session_key",
}
"""Tables that get a row of each kind of bad value, with the column that is kept apart."""
UNWRITABLE = {"HDB805": ("messages",), "HDB502": ("messages",), "HDB107": ("messages",)}
"""Where no message can be written, or where writing one mends the damage."""


def found_case(damage: Damage) -> Case:
    """The first case of a class that shows it."""
    tables = tomllib.loads((FOLDER / f"{damage.path}.toml").read_text("utf-8"))["case"]
    shown = (one for one in tables if any(finding["code"] == damage.code for finding in one["expect"]))
    return Case(damage.slug, next(shown))


@pytest.mark.parametrize(
    "damage", [pytest.param(damage, id=damage.slug) for damage in REGISTRY if damage.stage == "rows"]
)
def test_a_damage_is_found_beside_every_bad_value(damage: Damage, tmp_path: Path) -> None:
    case = found_case(damage)
    home = damaged_home(case, tmp_path)
    tables = {table: key for table, key in TABLES.items() if table not in UNWRITABLE.get(damage.code, ())}
    assert spoil(home.database, tables) > 15
    deep = case.table.get("deep", False)
    (report,) = scan((home.root,), ScanOptions(limit=None, now=case.now, deep=deep)).databases
    assert report.error == ""
    assert {r.code: r.reason for r in report.results if r.status is Status.COULD_NOT_LOOK} == {}
    found = {(f.code, f.key) for result in report.results for f in result.findings}
    wanted = {(one["code"], one["key"]) for one in case.table["expect"] if one["code"] == damage.code}
    assert wanted - found == set()


def spoil(path: Path, tables: Mapping[str, str]) -> int:
    """Add rows whose every column that takes it holds a bad value, one row of each kind; returns how many."""
    connection = apsw.Connection(str(path))
    connection.execute("PRAGMA foreign_keys = OFF; PRAGMA ignore_check_constraints = ON")
    before = connection.total_changes()
    for table, key in tables.items():
        columns = [row[1] for row in connection.execute(f'PRAGMA table_info("{table}")')]
        for number, value in enumerate(BAD.values()):
            values = [own(table, key, column, number) or value for column in columns]
            names = ", ".join(f'"{column}"' for column in columns)
            if columns:
                connection.execute(f'INSERT OR IGNORE INTO "{table}" ({names}) VALUES ({", ".join(values)})')
    for number, value in enumerate(BAD.values()):
        connection.execute(f"INSERT INTO state_meta (key, value) VALUES ('goal:{ODD}-{number}', {value})")
    done = connection.total_changes() - before
    connection.close()
    return done


def own(table: str, key: str, column: str, number: int) -> Any:
    """What a column must hold so that the row can be there and belongs to a session of its own."""
    if table == "messages" and column == "id":
        return str(900_000 + number)
    if column in (key, "session_id"):
        return f"'{ODD}-{number}'"
    return f"'{ODD}-title-{number}'" if column == "title" else None
