"""What history says of a home whose file is another one by now, whose receipts are damaged, or whose database is none."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from hermes_dbtools.backups import restoring, taking
from hermes_dbtools.home import Home
from hermes_dbtools.model import Receipt, Refused, UsageError
from hermes_dbtools.receipts import read_all
from hermes_dbtools.undoing import choose_receipt, history
from tests.repairs import COUNTERS, LOST_SESSION, NOW, digests, new_home, plan_of, repair, take_back
from tests.running import tool
from tests.shapes.make import execute


def status(home: Home) -> list[str]:
    return [receipt.status for receipt in history(home)]


def restore(home: Home, word: str, later: float) -> str:
    """Restore; the name of the file that was there before."""
    done = restoring.restore(home, restoring.prepare(home, word), NOW + later)
    return Path(done.replaced).stem


def break_receipt(home: Home, receipt: Receipt) -> None:
    path = home.dbtools_dir / receipt.id / "receipt.json"
    path.write_bytes(path.read_bytes()[:50])


def two_repairs(folder: Path) -> tuple[Home, Receipt, Receipt]:
    """A home with two repairs that touch no common row."""
    home = new_home(folder, "22", LOST_SESSION, COUNTERS)
    first = repair(home, plan_of(home, select=("references",)))
    second = repair(home, plan_of(home, select=("counters",)), later=60)
    return home, first, second


def test_a_repair_that_a_restore_took_away_is_gone_and_comes_back_with_its_file(tmp_path: Path) -> None:
    home = new_home(tmp_path / "home", "22", LOST_SESSION, COUNTERS)
    before = digests(home.database)
    copy = Path(taking.back_up(home, taking.BackupOptions(now=NOW)).path)
    receipt = repair(home, later=1)
    replaced = restore(home, copy.stem, 2)
    assert status(home) == ["gone"]
    assert [one.status for one in read_all(home)] == ["committed"], "nothing is written"
    told = tool("history", home.root)
    assert (told.code, told.err) == (0, "")
    assert f"{receipt.id}  gone" in told.out
    assert "gone: the database that is there now holds nothing of it" in told.out
    (document,) = json.loads(tool("history", home.root, "--format", "json").out)["receipts"]
    assert document["status"] == "gone"
    plan = json.loads((home.dbtools_dir / receipt.id / "plan.json").read_bytes())
    there = {str(id_) for (id_,) in execute(home.database, "SELECT id FROM sessions")}
    session = next(id_ for step in plan["steps"] for id_ in step["session_ids"] if id_ in there)
    (applied,) = json.loads(tool("sessions", "show", session, "--home", home.root, "--format", "json").out)[
        "receipts"
    ]
    assert applied["status"] == "gone"
    with pytest.raises(Refused, match="nothing to undo"):
        choose_receipt(home, None)
    with pytest.raises(Refused, match="is gone: there is nothing to undo"):
        choose_receipt(home, receipt.id)
    restore(home, replaced, 3)
    assert status(home) == ["committed"]
    take_back(home)
    assert {name: found for name, found in digests(home.database).items() if name != "state_meta"} == {
        name: found for name, found in before.items() if name != "state_meta"
    }


def test_an_undo_that_a_restore_took_away_can_be_made_again(tmp_path: Path) -> None:
    home = new_home(tmp_path / "home", "22", LOST_SESSION, COUNTERS)
    repair(home)
    repaired = digests(home.database)
    copy = Path(taking.back_up(home, taking.BackupOptions(now=NOW)).path)
    take_back(home)
    undone = digests(home.database)
    restore(home, copy.stem, 2)
    assert digests(home.database) == repaired
    assert status(home) == ["committed"]
    take_back(home)
    assert digests(home.database) == undone
    assert status(home) == ["undone"]


def test_a_repair_after_a_restore_leaves_the_older_receipt_as_it_was(tmp_path: Path) -> None:
    home = new_home(tmp_path / "home", "22", LOST_SESSION, COUNTERS)
    copy = Path(taking.back_up(home, taking.BackupOptions(now=NOW)).path)
    repair(home, later=1)
    restore(home, copy.stem, 2)
    second = repair(home, later=3)
    assert status(home) == ["gone", "committed"]
    assert [one.status for one in read_all(home)] == ["committed", "committed"]
    assert choose_receipt(home, None).id == second.id


def test_one_malformed_receipt_hides_no_other(tmp_path: Path) -> None:
    home, first, second = two_repairs(tmp_path / "home")
    break_receipt(home, first)
    for form in ("table", "json"):
        told = tool("history", home.root, "--format", form)
        assert told.code == 3
        assert second.id in told.out
        assert first.id not in told.out
        assert told.err.count("\n") == 1
        assert f"{first.id}/receipt.json: not a receipt" in told.err
    execute(home.database, COUNTERS.replace("99", "98"))
    before = digests(home.database)
    third = tool("repair", home.root, "--apply", "--yes", "--select", "counters")
    assert third.code == 0, third.err
    undone = tool("undo", home.root, "--apply", "--yes")
    assert undone.code == 0, undone.err
    assert first.id not in undone.out
    assert {name: one for name, one in digests(home.database).items() if name != "state_meta"} == {
        name: one for name, one in before.items() if name != "state_meta"
    }


def test_no_older_repair_is_undone_where_the_newest_cannot_be_read(tmp_path: Path) -> None:
    home, first, second = two_repairs(tmp_path / "home")
    break_receipt(home, second)
    before = digests(home.database)
    for words in ((), ("--apply", "--yes")):
        ran = tool("undo", home.root, *words)
        assert ran.code == 2
        assert f"{second.id}/receipt.json: not a receipt" in ran.err
        assert "this one may be newer" in ran.err
    with pytest.raises(UsageError, match="not a receipt"):
        choose_receipt(home, second.id)
    assert digests(home.database) == before
    assert tool("undo", home.root, first.id, "--apply", "--yes").code == 0
    assert status(home) == ["undone"]


def test_a_malformed_receipt_in_a_folder_of_any_name_may_be_the_newest(tmp_path: Path) -> None:
    home = new_home(tmp_path / "home", "22", COUNTERS)
    receipt = repair(home)
    strange = home.dbtools_dir / "0 moved here"
    strange.mkdir()
    (strange / "receipt.json").write_text("[]", "utf-8")
    with pytest.raises(UsageError, match="may be newer"):
        choose_receipt(home, None)
    assert choose_receipt(home, receipt.id).id == receipt.id


NONE = ["text", "fifo", "folder", "other database", "empty", "missing"]


@pytest.mark.parametrize(
    ("command", "what"), [*(("history", what) for what in NONE), ("undo", "text"), ("undo", "fifo")]
)
def test_what_is_no_store_has_no_history(command: str, what: str, tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    if what == "text":
        path.write_text("words " * 100, "utf-8")
    elif what == "fifo":
        os.mkfifo(path)
    elif what == "folder":
        path.mkdir()
    elif what == "other database":
        execute(path, "CREATE TABLE notes (id INTEGER PRIMARY KEY)")
    elif what == "empty":
        path.touch()
    ran = tool(command, path)
    assert (ran.code, ran.out, ran.err.count("\n")) == (3, "", 1), ran
    assert ran.err.startswith("hermes-dbtools: ")
