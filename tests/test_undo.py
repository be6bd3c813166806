"""An undo gives back every row and every violation, or changes nothing and names what is in its way."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from hermes_dbtools import preflight, transaction
from hermes_dbtools.home import Home
from hermes_dbtools.model import Plan, Refused, RolledBack, UsageError
from hermes_dbtools.undoing import choose_receipt, history
from tests.repairs import (
    BRANCH,
    COMPRESSED,
    CONTINUATION,
    COUNTERS,
    LOST_SESSION,
    SECOND,
    THIRD,
    digests,
    files,
    new_home,
    plan_of,
    purge_of,
    repair,
    search_is_sound,
    state,
    take_back,
    writer,
)
from tests.shapes.make import execute, fill_many, script

NEWER = ("22", "25", "30", "31", "runtime", "media")
LOST_PROMPT = f"UPDATE sessions SET system_prompt_hash = '{'00' * 31}aa' WHERE id IN ('{SECOND}', '{BRANCH}')"
LOST_PARENT = f"UPDATE sessions SET parent_session_id = 'gone' WHERE id = '{CONTINUATION}'"
LOST_USAGE = f"UPDATE session_model_usage SET session_id = 'gone' WHERE session_id = '{SECOND}'"
LOST_CLOSED = f"DELETE FROM sessions WHERE id = '{COMPRESSED}'"


def drops(home: Home) -> Plan:
    return plan_of(home, allow_lossy=True)


KINDS: dict[str, tuple[tuple[str, ...], tuple[str, ...], Callable[[Home], Plan]]] = {
    "purge": ((LOST_SESSION,), NEWER, purge_of),
    "purge with usage and topics": ((LOST_SESSION, LOST_CLOSED), NEWER, purge_of),
    "adopt": ((LOST_SESSION, LOST_CLOSED), NEWER, plan_of),
    "detach": ((LOST_PARENT,), NEWER, plan_of),
    "null": ((LOST_PROMPT,), NEWER[1:], plan_of),
    "drop": ((LOST_USAGE,), NEWER, drops),
    "counters": ((COUNTERS,), NEWER, plan_of),
    "everything": ((LOST_SESSION, LOST_CLOSED, LOST_PARENT, LOST_USAGE, COUNTERS), NEWER, drops),
}


@pytest.mark.parametrize(
    ("kind", "shape"), [(kind, shape) for kind, (_damage, shapes, _plan) in KINDS.items() for shape in shapes]
)
def test_every_kind_of_repair_comes_back_row_by_row(kind: str, shape: str, tmp_path: Path) -> None:
    damages, _shapes, plan = KINDS[kind]
    home = new_home(tmp_path / "home", shape, *damages)
    before = state(home.database)
    repair(home, plan(home))
    after = state(home.database)
    assert after[0] != before[0]
    search_is_sound(home.database, tmp_path / "checks", writer="ours")
    assert take_back(home).status == "undone"
    assert state(home.database) == before
    search_is_sound(home.database, tmp_path / "checks", writer="ours")
    repair(home, plan(home))
    assert state(home.database) == after, "it can be repaired again, to the same rows"


@pytest.mark.parametrize("shape", NEWER)
def test_no_trigger_fires_while_rows_come_back(shape: str, tmp_path: Path) -> None:
    home = new_home(tmp_path / "home", shape, LOST_SESSION, COUNTERS)
    before = digests(home.database)
    repair(home, purge_of(home))
    bodies = "INSERT INTO state_meta VALUES ('fired', '1'); UPDATE sessions SET title = 'fired'"
    for event in (
        "INSERT ON messages",
        "UPDATE ON sessions",
        "DELETE ON sessions",
        "INSERT ON session_model_usage",
    ):
        name = event.replace(" ", "_")
        execute(home.database, f"CREATE TRIGGER spy_{name} AFTER {event} BEGIN {bodies}; END")
    planted = state(home.database)[2]
    take_back(home)
    assert digests(home.database) == before
    assert state(home.database)[2] == planted, "the triggers are there again"


def test_a_repair_of_many_batches_comes_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = new_home(tmp_path / "home", "31", LOST_SESSION, LOST_CLOSED, LOST_USAGE, COUNTERS)
    before = state(home.database)
    monkeypatch.setattr(transaction, "BATCH_ROWS", 3)
    monkeypatch.setattr("hermes_dbtools.recorder.BATCH_BYTES", 1)
    repair(home, purge_of(home))
    take_back(home)
    assert state(home.database) == before
    search_is_sound(home.database, tmp_path / "checks", writer="ours")


def stacked(tmp_path: Path) -> tuple[Home, list[object], str, str]:
    """Two repairs of different tables on one file: its states and the two receipts."""
    home = new_home(tmp_path / "home", "31", LOST_SESSION, LOST_PROMPT, COUNTERS)
    states: list[object] = [state(home.database)]
    first = repair(home, plan_of(home, select=("orphaned-messages", "missing-parent-session")))
    states.append(state(home.database))
    second = repair(home, plan_of(home))
    states.append(state(home.database))
    return home, states, first.id, second.id


def test_two_repairs_come_back_in_reverse_order(tmp_path: Path) -> None:
    home, states, first, second = stacked(tmp_path)
    take_back(home, second)
    assert state(home.database) == states[1]
    take_back(home, first)
    assert state(home.database) == states[0]
    assert [receipt.status for receipt in history(home)] == ["undone", "undone"]


def test_two_repairs_that_touch_no_common_row_come_back_in_any_order(tmp_path: Path) -> None:
    home, states, first, second = stacked(tmp_path)
    take_back(home, first)
    take_back(home, second)
    assert state(home.database) == states[0]


def test_a_repair_of_a_row_that_a_later_one_changed_is_a_named_conflict(tmp_path: Path) -> None:
    home = new_home(tmp_path / "home", "31", LOST_SESSION)
    before = state(home.database)
    first = repair(home)
    execute(home.database, APPENDED)
    second = repair(home)
    refused(home, rf"sessions {THIRD} was changed since", first.id)
    take_back(home, second.id)
    refused(home, "is newer than the repair", first.id)
    execute(home.database, f"DELETE FROM messages WHERE session_id = '{THIRD}' AND content = 'new'")
    take_back(home, first.id)
    assert state(home.database) == before


Kinds = type[Exception] | tuple[type[Exception], ...]


def refused(home: Home, words: str, receipt_id: str | None = None, kind: Kinds = RolledBack) -> None:
    """An undo that must not happen: it names its reason in one line, and no row, file or receipt changes."""
    before, here = state(home.database), files(home)
    said = [receipt.status for receipt in history(home)]
    with pytest.raises(kind, match=words) as caught:
        take_back(home, receipt_id)
    assert "\n" not in str(caught.value)
    assert state(home.database) == before
    assert files(home) - here <= {"state.db-wal", "state.db-shm", "state.db.repair.lock"}
    assert [receipt.status for receipt in history(home)] == said


APPENDED = f"INSERT INTO messages (session_id, role, content, timestamp) VALUES ('{THIRD}', 'user', 'new', 1780000000.0)"
USED = f"INSERT INTO session_model_usage (session_id, model) VALUES ('{THIRD}', 'm')"
CHILD = f"UPDATE sessions SET parent_session_id = '{THIRD}' WHERE id = '{BRANCH}'"
NEWER_ROWS = {
    "message": (APPENDED, "messages 3[0-9] is newer than the repair and points at a row of sessions"),
    "usage": (USED, f"session_model_usage {THIRD} is newer than the repair"),
    "child": (CHILD, f"sessions {BRANCH} is newer than the repair"),
    "title": (
        f"UPDATE sessions SET title = 'new' WHERE id = '{THIRD}'",
        f"sessions {THIRD} was changed since",
    ),
    "gone": (f"DELETE FROM sessions WHERE id = '{THIRD}'", f"sessions {THIRD} is gone"),
}


@pytest.mark.parametrize(("change", "words"), NEWER_ROWS.values(), ids=NEWER_ROWS.keys())
@pytest.mark.parametrize("shape", ["22", "31"])
def test_what_came_to_an_adopted_session_since_forbids_the_undo(
    change: str, words: str, shape: str, tmp_path: Path
) -> None:
    home = new_home(tmp_path / "home", shape, LOST_SESSION)
    repair(home)
    execute(home.database, change)
    refused(home, words)


def test_a_purged_message_whose_id_is_taken_again_forbids_the_undo(tmp_path: Path) -> None:
    home = new_home(tmp_path / "home", "31", LOST_SESSION)
    ((taken,),) = execute(home.database, f"SELECT min(id) FROM messages WHERE session_id = '{THIRD}'")
    repair(home, purge_of(home))
    execute(
        home.database,
        f"INSERT INTO messages (id, session_id, role, content, timestamp) VALUES ({taken}, '{SECOND}', 'user', 'x', 1.0)",
    )
    refused(home, f"messages {taken} is there again")


def test_a_chat_id_is_not_printed_by_a_conflict(tmp_path: Path) -> None:
    home = new_home(tmp_path / "home", "22", LOST_SESSION, *script("telegram").split("\n\n"))
    repair(home)
    execute(
        home.database,
        "INSERT INTO telegram_dm_topic_bindings"
        " (chat_id, thread_id, user_id, session_key, session_id, linked_at, updated_at)"
        f" VALUES ('sealed-chat', 'sealed-thread', 'sealed-user', 'sealed-key', '{THIRD}', 1.0, 1.0)",
    )
    with pytest.raises(RolledBack, match="telegram_dm_topic_bindings is newer") as caught:
        take_back(home)
    assert "sealed" not in str(caught.value)


def test_thousands_of_conflicts_are_one_line(tmp_path: Path) -> None:
    home = new_home(tmp_path / "home", "22")
    fill_many(home.database, 3, 500, 20)
    execute(home.database, "DELETE FROM sessions WHERE rowid > 8")
    repair(home, purge_of(home, max_rows=2000))
    execute(
        home.database,
        "WITH RECURSIVE n (i) AS (SELECT 100 UNION ALL SELECT i + 1 FROM n WHERE i < 1700)"
        f" INSERT INTO messages (id, session_id, role, content, timestamp) SELECT i, '{SECOND}', 'user', 'x', 1.0 FROM n",
    )
    refused(home, r"messages \d+ is there again \(and 1,\d+ more\)")


def edit_bytes(path: Path, content: Callable[[bytes], bytes]) -> None:
    path.write_bytes(content(path.read_bytes()))


FILES = ("undo", "violations", "touched", "plan.json")
EDITS: dict[str, Callable[[Path], None]] = {
    "altered": lambda path: edit_bytes(path, lambda old: old[:-3] + bytes([old[-3] ^ 1]) + old[-2:]),
    "truncated": lambda path: edit_bytes(path, lambda old: old[: len(old) // 2]),
    "emptied": lambda path: edit_bytes(path, lambda _old: b""),
    "longer": lambda path: edit_bytes(path, lambda old: old + b"\0" * 8),
    "missing": lambda path: path.unlink(),
}


@pytest.mark.parametrize("edit", EDITS.values(), ids=EDITS.keys())
@pytest.mark.parametrize("name", FILES)
def test_a_receipt_whose_files_are_not_those_written_is_refused(
    name: str, edit: Callable[[Path], None], tmp_path: Path
) -> None:
    home = new_home(tmp_path / "home", "31", LOST_SESSION, LOST_USAGE, COUNTERS)
    receipt = repair(home, purge_of(home))
    edit(home.dbtools_dir / receipt.id / name)
    refused(home, "undo|violations|touched|plan", kind=(Refused, RolledBack))


def test_a_receipt_that_is_none_is_named(tmp_path: Path) -> None:
    home = new_home(tmp_path / "home", "31", LOST_SESSION)
    receipt = repair(home)
    path = home.dbtools_dir / receipt.id / "receipt.json"
    edit_bytes(path, lambda old: old[:50])
    before = state(home.database)
    with pytest.raises(UsageError, match=r"receipt\.json: not a receipt"):
        take_back(home)
    assert state(home.database) == before


def test_an_undo_twice_is_refused(tmp_path: Path) -> None:
    home = new_home(tmp_path / "home", "22", LOST_SESSION)
    receipt = repair(home)
    take_back(home)
    refused(home, f"receipt {receipt.id} is undone: there is nothing to undo", receipt.id, Refused)
    refused(home, "nothing to undo", None, Refused)


def test_a_receipt_of_another_file_is_refused(tmp_path: Path) -> None:
    home = new_home(tmp_path / "home", "22", LOST_SESSION)
    other = new_home(tmp_path / "other", "22", LOST_SESSION)
    repair(home)
    shutil.copytree(home.dbtools_dir, other.dbtools_dir)
    before = state(other.database)
    with pytest.raises((Refused, UsageError)):
        take_back(other)
    assert state(other.database) == before


def test_a_receipt_is_chosen_by_the_beginning_of_its_id(tmp_path: Path) -> None:
    home = new_home(tmp_path / "home", "22", LOST_SESSION, COUNTERS)
    first = repair(home, plan_of(home, select=("orphaned-messages",)))
    second = repair(home, later=1)
    assert choose_receipt(home, None).id == second.id
    assert choose_receipt(home, first.id[:-2]).id == first.id
    with pytest.raises(UsageError, match="2 receipts begin with"):
        choose_receipt(home, first.id[:4])
    with pytest.raises(UsageError, match="0 receipts begin with"):
        choose_receipt(home, "nothing")
    take_back(home, second.id[:-1])
    assert choose_receipt(home, None).id == first.id


def test_a_column_added_since_is_no_hindrance(tmp_path: Path) -> None:
    home = new_home(tmp_path / "home", "31", LOST_SESSION, COUNTERS)
    repair(home, purge_of(home))
    execute(home.database, "ALTER TABLE messages ADD COLUMN mood TEXT DEFAULT 'calm'")
    take_back(home)
    assert execute(home.database, f"SELECT DISTINCT mood FROM messages WHERE session_id = '{THIRD}'") == [
        ("calm",)
    ]


@pytest.mark.parametrize(
    "change",
    [
        "ALTER TABLE messages DROP COLUMN reasoning",
        "ALTER TABLE messages DROP COLUMN codex_message_items",
        "DROP TABLE session_model_usage",
    ],
)
def test_a_table_that_lost_something_since_forbids_the_undo(change: str, tmp_path: Path) -> None:
    home = new_home(tmp_path / "home", "22", LOST_SESSION)
    repair(home, purge_of(home))
    execute(home.database, change)
    refused(home, "nothing was changed", kind=(Refused, RolledBack))


def test_a_gateway_that_came_while_the_file_was_checked_is_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = new_home(tmp_path / "home", "22", COUNTERS)
    repair(home)
    before = state(home.database)
    check = preflight.refuse_damaged_file
    with ExitStack() as stack:

        def beside_a_new_holder(checked: Home, **how: Any) -> None:
            check(checked, **how)
            stack.enter_context(writer(home.database))

        monkeypatch.setattr(preflight, "refuse_damaged_file", beside_a_new_holder)
        with pytest.raises(Refused, match="is held by"):
            take_back(home)
    assert state(home.database) == before
