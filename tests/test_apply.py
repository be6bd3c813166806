"""A repair changes exactly what its plan says, or no row at all."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import msgspec
import pytest

from hermes_dbtools import (
    apply,
    apply_plan,
    connections,
    database,
    documents,
    plan_documents,
    preflight,
    transaction,
)
from hermes_dbtools.apply import ApplyOptions, rehearse
from hermes_dbtools.damage._declare import ScanContext
from hermes_dbtools.home import Home
from hermes_dbtools.model import CouldNotLook, Plan, Refused, RolledBack, StalePlan, Step, UsageError
from hermes_dbtools.plan import fingerprint, totals
from hermes_dbtools.undoing import history
from tests.repairs import (
    BRANCH,
    CHAT,
    COUNTERS,
    LOST_SESSION,
    NOW,
    ROOT,
    SECOND,
    THIRD,
    bytes_of,
    digests,
    files,
    look,
    new_home,
    plan_of,
    purge_of,
    repair,
    search_is_sound,
    state,
    take_back,
    writer,
)
from tests.shapes.make import execute

DAMAGING_TRIGGERS = {
    "insert elsewhere": "INSERT INTO state_meta (key, value) VALUES ('planted', '1')",
    "update elsewhere": "UPDATE session_model_usage SET model = 'x'",
    "delete elsewhere": f"DELETE FROM session_model_usage WHERE session_id = '{ROOT}'",
    "without a key": "UPDATE schema_version SET version = 1",
    "other messages": f"UPDATE messages SET content = 'gone' WHERE session_id = '{ROOT}'",
    "the same row": f"UPDATE sessions SET title = 'planted' WHERE id IN ('{THIRD}', '{SECOND}')",
    "an insert of messages": (
        f"INSERT INTO messages (session_id, role, content, timestamp) VALUES ('{ROOT}', 'user', 'planted', 1.0)"
    ),
    "a removal of messages": f"DELETE FROM messages WHERE session_id = '{ROOT}'",
    "there and back": "INSERT INTO state_meta VALUES ('a', 'b'); DELETE FROM state_meta WHERE key = 'a'",
}


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return new_home(tmp_path / "home", "22", LOST_SESSION, COUNTERS)


def refused(home: Home, plan: Plan, kind: type[Exception], **options: Any) -> str:
    """Apply a plan that must not be applied: no row, schema or foreign file changes. Returns the one line."""
    before, here = state(home.database), files(home)
    with pytest.raises(kind) as caught:
        apply_plan(home, plan, ApplyOptions(now=NOW, **options))
    assert state(home.database) == before
    sidecars = {"dbtools", "state.db.repair.lock", "state.db-wal", "state.db-shm"}
    assert not files(home) - here - sidecars
    assert all(receipt.status == "rolled-back" for receipt in history(home))
    for receipt in home.dbtools_dir.glob("*/*"):
        assert receipt.name in ("receipt.json", "plan.json"), "what undoes nothing is not kept"
    line = str(caught.value)
    assert "\n" not in line
    return line


def edited(plan: Plan, edit: Callable[[Step], Step]) -> Plan:
    """The plan with each step changed and the fingerprint that this gives."""
    steps = tuple(edit(step) for step in plan.steps)
    return msgspec.structs.replace(plan, steps=steps, fingerprint=fingerprint(steps))


def with_expect(step: Step) -> Step:
    statements = tuple(msgspec.structs.replace(s, expect=s.expect + 1) for s in step.statements)
    return msgspec.structs.replace(step, statements=statements)


def with_binding(step: Step) -> Step:
    first, *rest = step.statements
    changed = msgspec.structs.replace(first, bindings={**first.bindings, "id": BRANCH})
    return msgspec.structs.replace(step, statements=(changed, *rest))


@pytest.mark.parametrize("edit", [with_expect, with_binding], ids=["expect", "bindings"])
def test_a_plan_whose_steps_are_not_those_of_the_registry_is_stale(
    home: Home, edit: Callable[[Step], Step]
) -> None:
    line = refused(home, edited(plan_of(home), edit), StalePlan)
    assert "changed since the plan was made" in line


def test_a_statement_that_changes_another_number_of_rows_rolls_everything_back(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transaction, "refuse_stale", lambda *_arguments, **_named: None)
    line = refused(home, edited(plan_of(home), with_expect), RolledBack)
    assert "not the 2 expected" in line


@pytest.mark.parametrize("shape", ["22", "31"])
@pytest.mark.parametrize("body", DAMAGING_TRIGGERS.values(), ids=DAMAGING_TRIGGERS.keys())
@pytest.mark.parametrize("event", ["INSERT ON sessions", "UPDATE ON sessions", "DELETE ON messages"])
def test_a_trigger_that_writes_is_named_and_nothing_is_changed(
    event: str, body: str, shape: str, tmp_path: Path
) -> None:
    home = new_home(tmp_path / "home", shape, LOST_SESSION, COUNTERS)
    execute(home.database, f"CREATE TRIGGER planted AFTER {event} BEGIN {body}; END")
    plan = purge_of(home) if event.endswith("messages") else plan_of(home)
    assert "planted" in refused(home, plan, RolledBack)


def test_a_trigger_that_writes_nothing_is_no_hindrance(home: Home) -> None:
    execute(home.database, "CREATE TRIGGER harmless AFTER INSERT ON sessions BEGIN SELECT 1; END")
    assert repair(home).status == "committed"


@pytest.mark.parametrize("action", ["ABORT, 'no'", "ROLLBACK, 'no'", "FAIL, 'no'", "IGNORE"])
def test_a_trigger_that_raises_rolls_everything_back(action: str, home: Home) -> None:
    execute(
        home.database,
        f"CREATE TRIGGER no BEFORE UPDATE ON sessions WHEN NEW.id = '{SECOND}' BEGIN SELECT RAISE({action}); END",
    )
    refused(home, plan_of(home), RolledBack)


@pytest.mark.parametrize(
    "change",
    [
        f"INSERT INTO messages (session_id, role, content, timestamp) VALUES ('{THIRD}', 'user', 'x', 1780000000.0)",
        "DELETE FROM messages WHERE id = (SELECT max(id) FROM messages WHERE session_id = '{THIRD}')",
        "UPDATE messages SET content = content || '!' WHERE session_id = '{THIRD}'",
        "INSERT INTO sessions (id, source, started_at) VALUES ('{THIRD}', 'cli', 1780000000.0)",
        "DELETE FROM messages WHERE session_id = '{THIRD}'",
        "INSERT INTO state_meta VALUES ('gateway.retired_session.v1.{THIRD}', '1')",
    ],
    ids=["row added", "row removed", "row changed", "session back", "all gone", "tombstone"],
)
def test_a_plan_made_stale_is_refused(change: str, home: Home) -> None:
    plan = purge_of(home)
    execute(home.database, change.replace("{THIRD}", THIRD))
    line = refused(home, plan, StalePlan)
    assert "orphaned-messages" in line
    assert "run hermes-dbtools repair again" in line


def test_a_repair_that_breaks_a_foreign_key_is_rolled_back(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = plan_of(home)
    run_step, open_for_repair = transaction.run_step, database.open_for_repair

    def breaking(context: ScanContext, *arguments: Any) -> None:
        run_step(context, *arguments)
        context.connection.execute(f"UPDATE sessions SET parent_session_id = 'nowhere' WHERE id = '{CHAT}'")

    def without_keys(path: Path, *, foreign_keys: bool) -> Any:
        return open_for_repair(path, foreign_keys=not foreign_keys)

    monkeypatch.setattr(transaction, "run_step", breaking)
    monkeypatch.setattr(database, "open_for_repair", without_keys)
    line = refused(home, plan, RolledBack)
    assert f"would break the foreign key of sessions {CHAT} to sessions" in line


PLAN_EDITS: dict[str, Callable[[dict[str, Any]], object]] = {
    "sql": lambda plan: plan["steps"][0].update(sql="DELETE FROM messages"),
    "bindings": lambda plan: plan["steps"][0]["bindings"].update(id=BRANCH),
    "expect": lambda plan: plan["steps"][0].update(expect=5),
    "answer": lambda plan: plan["steps"][0].update(answer="purge"),
    "unknown class": lambda plan: plan["steps"][0].update(code="HDB999"),
    "another slug": lambda plan: plan["steps"][0].update(slug="orphaned-usage"),
    "unknown block": lambda plan: plan["steps"][0].update(block="nothing"),
    "another block": lambda plan: plan["steps"][0].update(block="purge"),
    "operation": lambda plan: plan["steps"][0].update(operation="drop"),
    "another format": lambda plan: plan.update(format="hermes-dbtools/report"),
    "another version": lambda plan: plan.update(format_version=2),
    "unknown field": lambda plan: plan.update(extra=1),
    "missing field": lambda plan: plan.pop("steps"),
    "a list for a value": lambda plan: plan["steps"][0]["bindings"].update(id=["x"]),
    "bad hex": lambda plan: plan["steps"][0]["bindings"].update(id={"hex": "zz"}),
    "no step": lambda plan: plan["steps"].pop(),
    "fingerprint": lambda plan: plan.update(fingerprint="0" * 64),
}


@pytest.mark.parametrize("edit", PLAN_EDITS.values(), ids=PLAN_EDITS.keys())
def test_an_edited_plan_file_is_refused(edit: Callable[[dict[str, Any]], object], home: Home) -> None:
    plan = plan_of(home)
    document = json.loads(documents.encode(plan_documents.plan_document(plan, totals(plan))))
    edit(document)
    with pytest.raises(UsageError) as caught:
        plan_documents.decode_plan(json.dumps(document).encode(), "plan.json")
    assert str(caught.value).startswith("plan.json: ")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[]", b"null", b"\xff\xfe", b'{"format": 1}', b"[" * 100_000], ids=range(7)
)
def test_a_file_that_is_no_plan_is_refused(content: bytes) -> None:
    with pytest.raises(UsageError, match=r"plan\.json: not a plan"):
        plan_documents.decode_plan(content, "plan.json")


def test_a_plan_of_another_database_is_refused(home: Home, tmp_path: Path) -> None:
    other = new_home(tmp_path / "other", "22", LOST_SESSION, COUNTERS)
    before = bytes_of(home.database)
    with pytest.raises(UsageError, match="the plan is for"):
        apply_plan(home, plan_of(other), ApplyOptions(now=NOW))
    assert bytes_of(home.database) == before
    assert not home.dbtools_dir.exists()


def test_a_plan_does_not_drop_data_that_it_was_not_made_to_drop(home: Home) -> None:
    plan = msgspec.structs.replace(purge_of(home), allow_lossy=False)
    assert "--allow-lossy" in refused(home, plan, RolledBack)
    line = refused(home, msgspec.structs.replace(purge_of(home), max_rows=3), Refused)
    assert "--max-rows" in line


def test_a_rehearsal_changes_no_byte_and_says_what_apply_then_changes(home: Home) -> None:
    execute(
        home.database, "UPDATE sessions SET title = title"
    )  # leaves no -wal behind: closed by its last user
    for plan in (plan_of(home), purge_of(home)):
        before, here = bytes_of(home.database), files(home)
        said = rehearse(home, plan, ApplyOptions(now=NOW))
        assert bytes_of(home.database) == before
        assert files(home) == here
        receipt = repair(home, plan)
        assert dict(receipt.changed) == said
        take_back(home)


def test_a_rehearsal_refuses_what_apply_refuses(home: Home) -> None:
    plan = plan_of(home)
    execute(home.database, f"DELETE FROM messages WHERE session_id = '{THIRD}'")
    before = bytes_of(home.database)
    with pytest.raises(StalePlan):
        rehearse(home, plan, ApplyOptions(now=NOW))
    assert bytes_of(home.database) == before


def test_digests_of_all_rows_come_with_the_receipt(home: Home) -> None:
    first = repair(home, purge_of(home), verify=True)
    assert first.dbhash_before != first.dbhash_after
    take_back(home)
    second = repair(home, purge_of(home), verify=True)
    assert (second.dbhash_before, second.dbhash_after) == (first.dbhash_before, first.dbhash_after)


def test_without_a_backup_it_can_still_be_undone(home: Home) -> None:
    before = state(home.database)
    receipt = repair(home, purge_of(home), backup=False)
    assert receipt.backup == ""
    assert not list(home.dbtools_dir.glob("*/backup.db"))
    take_back(home)
    assert state(home.database) == before


def test_a_backup_is_the_database_from_before(home: Home) -> None:
    before = digests(home.database)
    receipt = repair(home, purge_of(home))
    assert digests(Path(receipt.backup)) == before
    assert digests(home.database) != before


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o777])
def test_what_is_written_is_for_the_owner_alone(umask: int, home: Home) -> None:
    if os.geteuid() == 0:
        os.chown(home.database, 12345, 54321)
        os.chown(home.root, 12345, 54321)
    previous = os.umask(umask)
    try:
        repair(home, purge_of(home))
    finally:
        os.umask(previous)
    take_back(home)
    owner = home.database.stat().st_uid, home.database.stat().st_gid
    found = [home.dbtools_dir, *home.dbtools_dir.rglob("*")]
    assert {path.name for path in found} >= {"undo", "backup.db", "receipt.json", "plan.json", "touched"}
    for path in found:
        assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600), path
        assert (path.stat().st_uid, path.stat().st_gid) == owner, path
    for name in ("state.db", "state.db-wal", "state.db-shm", "state.db.repair.lock"):
        path = home.root / name
        if path.exists():
            assert (path.stat().st_uid, path.stat().st_gid) == owner, path


def test_a_symlink_in_the_place_of_the_folder_is_refused(home: Home, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir(mode=0o700)
    home.dbtools_dir.symlink_to(tmp_path / "elsewhere")
    before = bytes_of(home.database)
    with pytest.raises(Refused, match="not a folder of ours"):
        repair(home)
    assert bytes_of(home.database) == before
    assert not list((tmp_path / "elsewhere").iterdir())


def test_an_undo_through_a_symlink_is_refused(home: Home, tmp_path: Path) -> None:
    repair(home)
    home.dbtools_dir.rename(tmp_path / "elsewhere")
    home.dbtools_dir.symlink_to(tmp_path / "elsewhere")
    before = state(home.database)
    with pytest.raises(Refused, match="not a folder of ours"):
        take_back(home)
    assert state(home.database) == before


@pytest.mark.parametrize("backup", [True, False])
def test_little_room_is_refused_before_anything_is_written(
    backup: bool, home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = purge_of(home)
    before = bytes_of(home.database)
    monkeypatch.setattr(database, "free_bytes", lambda _folder: 1_000_000)
    with pytest.raises(Refused, match="1,000,000 bytes free") as caught:
        repair(home, plan, backup=backup)
    assert ("--no-backup" in str(caught.value)) == backup
    assert bytes_of(home.database) == before
    assert not home.dbtools_dir.exists()


@pytest.mark.parametrize("place", ["_copy_pages", "undo", "receipt"])
def test_a_disk_that_fills_up_changes_nothing(
    place: str, home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = purge_of(home)
    full = OSError(28, "No space left on device")
    if place == "_copy_pages":
        monkeypatch.setattr(preflight, "_copy", _raising(full))
    elif place == "undo":
        monkeypatch.setattr("hermes_dbtools.recorder._UndoFile._write", _raising(full))
    else:
        monkeypatch.setattr(apply, "_record", _raising(full))
    refused(home, plan, Exception)


def test_a_commit_that_fails_changes_nothing(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    import apsw

    monkeypatch.setattr(apply, "commit", _raising(apsw.FullError("database or disk is full")))
    assert "nothing was changed" in refused(home, plan_of(home), RolledBack)


def test_an_error_after_the_commit_is_not_taken_for_a_rollback(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = state(home.database)
    with monkeypatch.context() as patch:
        patch.setattr(database, "checkpoint_passive", _raising(KeyboardInterrupt()))
        with pytest.raises(KeyboardInterrupt):
            repair(home, purge_of(home))
    assert [receipt.status for receipt in history(home)] == ["committed"]
    assert list(home.dbtools_dir.glob("*/undo"))
    take_back(home)
    assert state(home.database) == before


def _raising(error: BaseException) -> Callable[..., Any]:
    def fail(*_arguments: Any, **_named: Any) -> Any:
        raise error

    return fail


def test_a_second_repair_at_the_same_time_is_refused(home: Home) -> None:
    plan, seen = plan_of(home), []

    def second(_step: Step) -> None:
        with pytest.raises(Refused, match="another repair is running") as caught:
            apply_plan(home, plan, ApplyOptions(now=NOW))
        seen.append(str(caught.value))

    apply_plan(home, plan, ApplyOptions(now=NOW, on_step=second))
    assert len(seen) == len(plan.steps)
    assert [receipt.status for receipt in history(home)] == ["committed"]


def test_a_repair_beside_a_writer_is_refused(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = plan_of(home)
    before = state(home.database)
    monkeypatch.setattr(connections, "WRITE_BUSY_MS", 100)
    with writer(home.database) as pid:
        with pytest.raises(Refused, match=rf"is held by .*{pid}"):
            apply_plan(home, plan, ApplyOptions(now=NOW))
        assert not home.dbtools_dir.exists()
        with pytest.raises(Refused, match="another process is writing"):
            apply_plan(home, plan, ApplyOptions(now=NOW, online=True))
    assert state(home.database) == before
    assert [receipt.status for receipt in history(home)] == ["rolled-back"]
    assert not list(home.dbtools_dir.glob("*/backup.db"))


def test_a_writer_that_came_during_the_backup_is_seen(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = plan_of(home)
    back_up = preflight.back_up
    with ExitStack() as stack:

        def beside_a_new_writer(*arguments: Any) -> None:
            back_up(*arguments)
            stack.enter_context(writer(home.database))

        monkeypatch.setattr(preflight, "back_up", beside_a_new_writer)
        assert "is held by" in refused(home, plan, Refused)


def test_a_repair_beside_a_writer_of_a_rollback_journal_file_is_refused(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    execute(home.database, "PRAGMA journal_mode = delete")
    plan = plan_of(home)
    before = state(home.database)
    monkeypatch.setattr(connections, "WRITE_BUSY_MS", 100)
    with writer(home.database), pytest.raises((Refused, CouldNotLook)):
        apply_plan(home, plan, ApplyOptions(now=NOW, online=True))
    assert state(home.database) == before


def test_a_table_that_follows_without_a_key_forbids_a_removal(home: Home) -> None:
    execute(
        home.database,
        "CREATE TABLE notes (of INTEGER REFERENCES messages(id) ON DELETE CASCADE, said TEXT)",
    )
    execute(home.database, "INSERT INTO notes SELECT id, 'x' FROM messages")
    assert "table notes has no primary key" in refused(home, purge_of(home), Refused)
    assert repair(home).status == "committed", "adopting removes nothing"


def test_what_foreign_keys_remove_is_counted_apart_and_comes_back(home: Home) -> None:
    execute(
        home.database,
        "CREATE TABLE notes (id INTEGER PRIMARY KEY, of INTEGER REFERENCES messages(id) ON DELETE CASCADE)",
    )
    execute(home.database, "INSERT INTO notes (of) SELECT id FROM messages")
    before = state(home.database)
    receipt = repair(home, purge_of(home))
    assert receipt.cascaded == {"notes": 4}
    take_back(home)
    assert state(home.database) == before


@pytest.mark.parametrize("backup", [True, False])
def test_two_findings_of_one_chat_are_repaired_whatever_the_order(backup: bool, tmp_path: Path) -> None:
    home = new_home(
        tmp_path / "home",
        "31",
        LOST_SESSION,
        COUNTERS,
        f"UPDATE sessions SET message_count = 0 WHERE id = '{CHAT}'",
    )
    before = state(home.database)
    repair(home, backup=backup)
    assert not plan_of(home).steps
    assert look(home).results
    search_is_sound(home.database, tmp_path / "checks", writer="ours")
    take_back(home)
    assert state(home.database) == before


def test_a_backup_says_how_far_it_has_come(home: Home) -> None:
    told: list[str] = []
    repair(home, progress=told.append)
    assert any(word.startswith("copying: ") for word in told)
