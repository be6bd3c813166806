"""An upgrade by the released stores loses no row, and nothing that it converts reads as a change."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from hermes_dbtools.comparing.compare import CompareOptions
from hermes_dbtools.comparing.model import Comparison
from tests.comparing import compared, differing, table
from tests.real.lives import copy_of
from tests.real.store import Store

MARKED = "delegate marker added (step 16)"
MOVED = "prompt moved to system_prompts (step 25)"
NOTES = "notes of the store about itself"

UPGRADES = (("0.13.0", "0.19.0"), ("0.13.0", "0.20.4.1"), ("0.16.0", "0.18.2"), ("0.19.0", "0.20.4.1"))


def opened_by(folder: Path, release: str, newer: str) -> tuple[Path, Path]:
    """A copy of a busy life, and that life after a newer release has opened it once."""
    healthy = copy_of(release, folder / "home")
    before = folder / "before.db"
    shutil.copyfile(healthy.path, before)
    with Store(healthy.path, newer):
        pass
    return before, healthy.path


def converted(found: Comparison) -> dict[str, set[str]]:
    return {one.table: set(one.converted) for one in found.tables if one.converted}


@pytest.mark.parametrize("upgrade", UPGRADES, ids="-".join)
def test_an_upgrade_loses_and_changes_nothing(upgrade: tuple[str, str], tmp_path: Path) -> None:
    found = compared(*opened_by(tmp_path, *upgrade), CompareOptions())
    assert found.exit_code == 0
    assert found.blind == ()
    added = {"session_model_usage", "system_prompts"}
    assert set(differing(found)) <= added
    assert all((lost, changed) == (0, 0) for lost, _gained, changed in differing(found).values())
    assert table(found, "messages").before == table(found, "messages").after > 100
    steps: dict[str, set[str]] = {}
    if upgrade[0] in ("0.13.0", "0.16.0"):
        steps.setdefault("sessions", set()).add(MARKED)
    if upgrade[1] == "0.20.4.1":
        steps.setdefault("sessions", set()).add(MOVED)
        steps["state_meta"] = {NOTES}
    assert converted(found) == steps
    assert found.before.shape.schema_version != found.after.shape.schema_version
    gone = (found.shape.tables_gone, found.shape.columns_gone, found.shape.indexes_gone)
    assert gone == ((), (), ())


def test_a_chat_that_the_upgrade_hides_is_named(tmp_path: Path) -> None:
    before, after = opened_by(tmp_path, "0.13.0", "0.19.0")
    found = compared(before, after, CompareOptions())
    hidden = {one.session for one in found.out_of_view}
    assert hidden
    assert {one.row for one in found.out_of_view} == {"there"}
    assert {
        key.partition(" ")[2] for new in found.damage if new.code == "HDB315" for key in new.keys
    } == hidden


def test_what_the_newer_release_then_does_is_told_row_by_row(tmp_path: Path) -> None:
    before, after = opened_by(tmp_path, "0.18.2", "0.19.0")
    with Store(after, "0.19.0") as store:
        store.call("append", session_id="current", role="user", content="after the upgrade")
        store.call("delete", session_id="untitled")
    found = compared(before, after, CompareOptions())
    assert found.exit_code == 1
    assert [row.key for row in table(found, "sessions").lost_rows] == ["untitled"]
    assert {row.session for row in table(found, "messages").lost_rows} == {"untitled"}
    assert [row.session for row in table(found, "messages").gained_rows] == ["current"]
    assert {row.key for row in table(found, "sessions").changed_rows} == {"current"}
    why = {one.session: one.why for one in found.out_of_view}
    assert set(why) == {"untitled"}
    assert why["untitled"].startswith("its row is gone, and its ")
