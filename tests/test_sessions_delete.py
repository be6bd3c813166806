"""Deleting sessions: what goes, what stays, who is refused, and that an undo brings everything back."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

import hermes_dbtools
from hermes_dbtools import SessionActive, delete_sessions
from hermes_dbtools.apply import apply_plan
from hermes_dbtools.home import Home
from hermes_dbtools.model import Active, Refused, RolledBack, UsageError
from hermes_dbtools.sessions import deleting
from hermes_dbtools.sessions.deleting import LONGEST_SECONDS
from hermes_dbtools.sessions.looking import look as look_at
from hermes_dbtools.undoing import history
from tests.deleting import (
    LEASED,
    LEDGERS,
    admission,
    delete,
    home_of,
    keys,
    lease,
    lock,
    meta,
    names_of,
    sessions,
    worker,
)
from tests.guarded import dead_pid
from tests.repairs import (
    BRANCH,
    CHAT,
    COMPRESSED,
    CONTINUATION,
    DELEGATE,
    NOW,
    ROOT,
    SECOND,
    THIRD,
    broken_keys,
    bytes_of,
    digests,
    files,
    look,
    search_is_sound,
    state,
    take_back,
)
from tests.running import tool_here
from tests.shapes.make import SHAPES, execute

ALL = {ROOT, SECOND, THIRD, BRANCH, DELEGATE, COMPRESSED, CONTINUATION, CHAT}
MARKED = [shape for shape in SHAPES if shape not in ("11", "14")]
"""Shapes whose delegates have a marker."""


def rows(home: Home, table: str, column: str = "session_id") -> set[Any]:
    return {row[0] for row in execute(home.database, f"SELECT {column} FROM {table}")}


def parents(home: Home) -> dict[str, str | None]:
    return dict(execute(home.database, "SELECT id, parent_session_id FROM sessions"))


# What goes and what stays


@pytest.mark.parametrize("shape", SHAPES)
def test_a_root_goes_with_its_delegates_and_everything_comes_back(shape: str, tmp_path: Path) -> None:
    home = home_of(tmp_path / "home", shape)
    before, here = state(home.database), files(home)
    done = delete(home, ROOT)
    gone = {ROOT, DELEGATE} if shape in MARKED else {ROOT}
    assert (done.deleted, set(done.also_deleted)) == ((ROOT,), gone - {ROOT})
    assert sessions(home) == ALL - gone
    assert rows(home, "messages").isdisjoint(gone)
    assert parents(home)[BRANCH] is None
    assert here - files(home) == {f"sessions/{name}" for name in names_of(ROOT)}
    assert broken_keys(home.database) == []
    assert {r.code for r in look(home).results if r.status == "damaged" and r.severity > 1} == set()
    search_is_sound(home.database, tmp_path / "checks")
    take_back(home)
    assert state(home.database) == before
    assert here <= files(home)
    assert (home.sessions_dir / f"{ROOT}.json").read_text("utf-8") == f"of {ROOT}.json"
    search_is_sound(home.database, tmp_path / "checks")


@pytest.mark.parametrize("shape", SHAPES)
def test_several_roots_go_in_one_transaction(shape: str, tmp_path: Path) -> None:
    home = home_of(tmp_path / "home", shape)
    before = state(home.database)
    done = delete(home, SECOND, CHAT, ROOT, "nobody")
    assert (done.deleted, done.missing) == ((SECOND, CHAT, ROOT), ("nobody",))
    assert len(done.receipts) == 1
    assert sessions(home).isdisjoint({SECOND, CHAT, ROOT})
    assert broken_keys(home.database) == []
    take_back(home)
    assert state(home.database) == before


def test_a_delegate_asked_for_beside_its_root_is_deleted_once(tmp_path: Path) -> None:
    for number, asked in enumerate([(ROOT, DELEGATE), (DELEGATE, ROOT), (BRANCH, ROOT), (ROOT, BRANCH)]):
        home = home_of(tmp_path / str(number), "22")
        done = delete(home, *asked)
        assert done.deleted == asked
        assert sessions(home) == ALL - {ROOT, DELEGATE, *asked}


def test_a_continuation_stays_as_a_root_unless_the_whole_chain_is_asked_for(tmp_path: Path) -> None:
    home = home_of(tmp_path / "home", "22")
    assert delete(home, COMPRESSED).deleted == (COMPRESSED,)
    assert parents(home)[CONTINUATION] is None
    take_back(home)
    done = delete(home, CONTINUATION, whole_chain=True)
    assert (done.deleted, done.also_deleted) == ((CONTINUATION,), (COMPRESSED,))
    assert sessions(home) == ALL - {COMPRESSED, CONTINUATION}


def test_delegates_of_delegates_go_and_a_branch_of_one_stays(tmp_path: Path) -> None:
    home = home_of(tmp_path / "home", "22")
    for one, parent, config in (
        ("below", DELEGATE, {"_delegate_from": DELEGATE}),
        ("by-marker", None, {"_delegate_from": "below"}),
        ("branch", DELEGATE, {"_delegate_from": ROOT, "_branched_from": DELEGATE}),
    ):
        execute(
            home.database,
            "INSERT INTO sessions (id, source, started_at, parent_session_id, model_config) VALUES (?, 'cli', 1, ?, ?)",
            (one, parent, json.dumps(config)),
        )
    done = delete(home, ROOT)
    assert set(done.also_deleted) == {DELEGATE, "below", "by-marker"}
    assert sessions(home) == ALL - {ROOT, DELEGATE} | {"branch"}


def test_what_the_store_forgets_goes_too(tmp_path: Path) -> None:
    home = home_of(tmp_path / "home", "31")
    before = digests(home.database)
    meta(home, f"goal:{ROOT}", {"goal": "x"})
    meta(home, f"goal:{SECOND}", {"goal": "x"})
    lock(home, ROOT, seconds=-5)
    lease(home, ROOT, holder=f"pid={dead_pid()}:turn=t")
    entry = json.dumps({"session_id": ROOT})
    execute(
        home.database,
        "INSERT INTO gateway_routing (scope, session_key, entry_json, updated_at) VALUES ('', 'k', ?, 1)",
        (entry,),
    )
    execute(home.database, "INSERT INTO system_prompts (hash, prompt) VALUES ('only', 'p'), ('both', 'q')")
    execute(
        home.database,
        "UPDATE sessions SET system_prompt_hash = 'only', tool_names = 'both' WHERE id = ?",
        (ROOT,),
    )
    execute(home.database, "UPDATE sessions SET system_prompt_hash = 'both' WHERE id = ?", (SECOND,))
    made = digests(home.database)
    delete(home, ROOT)
    assert keys(home, "goal:") == {f"goal:{SECOND}"}
    assert rows(home, "compression_locks") == set()
    assert rows(home, "session_turn_leases", "conversation_id") == set()
    assert "k" not in rows(home, "gateway_routing", "session_key")
    assert rows(home, "system_prompts", "hash") & {"only", "both"} == {"both"}
    take_back(home)
    assert digests(home.database) == made != before


def test_rows_of_a_table_that_nobody_knows_refuse_the_delete(tmp_path: Path) -> None:
    home = home_of(tmp_path / "home", "22")
    execute(home.database, "CREATE TABLE notes (id INTEGER PRIMARY KEY, sid TEXT REFERENCES sessions (id))")
    execute(home.database, "INSERT INTO notes (sid) VALUES (?)", (ROOT,))
    before = digests(home.database)
    with pytest.raises(Refused, match="rows of the table notes belong to it"):
        delete(home, ROOT)
    assert digests(home.database) == before
    done = delete(home, ROOT, SECOND)
    assert (done.deleted, [one.key for one in done.skipped], done.exit_code) == ((SECOND,), [ROOT], 1)


# Who is refused


def refuse(home: Home, session_id: str, because: str) -> None:
    """One id is refused, several skip it; nothing of it changes."""
    before, here = digests(home.database), files(home)
    with pytest.raises(
        SessionActive, match=f"^Cannot delete active session {session_id}: .*{because}"
    ) as caught:
        delete(home, session_id)
    assert (caught.value.exit_code, caught.value.http_status, caught.value.rpc_code) == (1, 409, 4023)
    assert isinstance(caught.value, Active)
    assert digests(home.database) == before
    assert files(home) >= here
    done = delete(home, session_id, THIRD)
    assert done.deleted == (THIRD,)
    assert [one.session_id for one in done.skipped_active] == [session_id]
    assert because in done.skipped_active[0].reason
    assert done.exit_code == 1
    take_back(home)
    assert digests(home.database) == before


@pytest.mark.parametrize("shape", LEASED)
def test_a_running_turn_holds_its_session(shape: str, tmp_path: Path) -> None:
    home = home_of(tmp_path / "home", shape)
    lease(home, ROOT)
    refuse(home, ROOT, "turn lease")
    with pytest.raises(SessionActive, match="pid 1"):
        delete(home, ROOT)


@pytest.mark.parametrize("shape", [shape for shape in SHAPES if shape not in ("11", "14")])
def test_a_compression_lock_holds_it_where_the_shape_has_one(shape: str, tmp_path: Path) -> None:
    home = home_of(tmp_path / "home", shape)
    lock(home, ROOT)
    refuse(home, ROOT, "compression lock")


@pytest.mark.parametrize("shape", LEASED)
def test_a_delegate_below_an_idle_root_holds_it(shape: str, tmp_path: Path) -> None:
    home = home_of(tmp_path / "home", shape)
    lease(home, DELEGATE)
    refuse(home, ROOT, "turn lease")


@pytest.mark.parametrize("shape", LEASED)
def test_the_tip_of_a_chain_holds_the_whole_chain(shape: str, tmp_path: Path) -> None:
    home = home_of(tmp_path / "home", shape)
    lease(home, COMPRESSED)  # the key of a lease is the root of its chain
    refuse(home, COMPRESSED, "turn lease")
    refuse(home, CONTINUATION, "turn lease")


@pytest.mark.parametrize("shape", SHAPES)
def test_what_compression_closed_is_deleted_without_a_lease(shape: str, tmp_path: Path) -> None:
    home = home_of(tmp_path / "home", shape)
    assert delete(home, COMPRESSED).deleted == (COMPRESSED,)


@pytest.mark.parametrize("shape", LEDGERS)
@pytest.mark.parametrize(
    ("make", "status", "because"),
    [
        (admission, "queued", "busy: admission queued"),
        (admission, "started", "busy: admission started"),
        (admission, "unknown", "unknown execution: .*nobody knows whether it still runs"),
        (worker, "registered", "busy: worker registered"),
        (worker, "running", "busy: worker running"),
        (worker, "unknown", "unknown execution: .*nobody knows whether it still runs"),
    ],
)
@pytest.mark.parametrize("target", [ROOT, DELEGATE])
def test_a_row_of_the_ledger_that_is_not_finished_holds_it(
    shape: str, make: Any, status: str, because: str, target: str, tmp_path: Path
) -> None:
    home = home_of(tmp_path / "home", shape)
    make(home, target, status)
    before = digests(home.database)
    with pytest.raises(SessionActive, match=f"^Cannot delete active session {ROOT}: .*{because}"):
        delete(home, ROOT)
    assert digests(home.database) == before
    done = delete(home, ROOT, THIRD)
    assert (done.deleted, [one.session_id for one in done.skipped_active]) == ((THIRD,), [ROOT])


@pytest.mark.parametrize("shape", SHAPES)
def test_a_loop_of_the_lineage_is_refused(shape: str, tmp_path: Path) -> None:
    home = home_of(tmp_path / "home", shape)
    execute(home.database, "UPDATE sessions SET parent_session_id = ? WHERE id = ?", (CHAT, SECOND))
    execute(home.database, "UPDATE sessions SET parent_session_id = ? WHERE id = ?", (SECOND, CHAT))
    before = digests(home.database)
    with pytest.raises(Refused, match="part of a loop of its lineage"):
        delete(home, SECOND)
    assert digests(home.database) == before
    done = delete(home, CHAT, THIRD)
    assert (done.deleted, [one.key for one in done.skipped]) == ((THIRD,), [CHAT])


@pytest.mark.parametrize("shape", LEASED)
def test_a_lease_taken_between_look_and_lock_is_seen(
    shape: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = home_of(tmp_path / "home", shape)
    taken: list[str] = []

    def apply_late(*arguments: Any) -> Any:
        if not taken:
            taken.append(ROOT)
            lease(home, ROOT)
        return apply_plan(*arguments)

    monkeypatch.setattr(deleting, "apply_plan", apply_late)
    with pytest.raises(SessionActive, match="turn lease"):
        delete(home, ROOT)
    assert sessions(home) == ALL
    taken.clear()
    execute(home.database, "DELETE FROM session_turn_leases")
    done = delete(home, ROOT, SECOND)
    assert (done.deleted, [one.session_id for one in done.skipped_active]) == ((SECOND,), [ROOT])


def test_a_message_that_comes_between_look_and_lock_goes_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = home_of(tmp_path / "home", "22")
    seen: list[int] = []

    def apply_late(*arguments: Any) -> Any:
        if not seen:
            execute(
                home.database,
                "INSERT INTO messages (session_id, role, content, timestamp) VALUES (?, 'user', 'late', 1)",
                (ROOT,),
                engine="stdlib",
            )
        seen.append(1)
        return apply_plan(*arguments)

    monkeypatch.setattr(deleting, "apply_plan", apply_late)
    assert delete(home, ROOT).deleted == (ROOT,)
    assert len(seen) == 2
    assert rows(home, "messages").isdisjoint({ROOT})


def test_what_is_too_large_beside_others_is_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = home_of(tmp_path / "home", "22")
    real = look_at

    def held(*arguments: Any, **named: Any) -> Any:
        seen = real(*arguments, **named)
        return type(seen)(
            **{name: getattr(seen, name) for name in seen.__slots__}
            | {"held": True, "lock_seconds": LONGEST_SECONDS + 1}
        )

    monkeypatch.setattr(deleting, "look", held)
    with pytest.raises(Refused, match=r"would keep the write lock for about 9\.0 s beside other processes"):
        delete(home, ROOT)
    assert sessions(home) == ALL


# Files


def test_a_dump_belongs_to_the_longest_id_there_is(tmp_path: Path) -> None:
    home = home_of(tmp_path / "home", "22")
    execute(
        home.database, "INSERT INTO sessions (id, source, started_at) VALUES (?, 'cli', 1)", (f"{ROOT}_b",)
    )
    for name in (
        f"request_dump_{ROOT}_b_1.json",
        f"request_dump_{ROOT}_c_1.json",
        f"{ROOT}_b.json",
        f"{ROOT}.txt",
    ):
        (home.sessions_dir / name).write_text("x", "utf-8")
    here = files(home)
    delete(home, ROOT)
    gone = {f"sessions/{name}" for name in [*names_of(ROOT), f"request_dump_{ROOT}_c_1.json"]}
    assert here - files(home) == gone


def test_links_and_folders_stay(tmp_path: Path) -> None:
    home = home_of(tmp_path / "home", "22")
    outside = tmp_path / "outside.json"
    outside.write_text("not ours", "utf-8")
    first, second = (home.sessions_dir / name for name in names_of(ROOT)[:2])
    first.unlink()
    first.symlink_to(outside)
    second.unlink()
    second.mkdir()
    delete(home, ROOT)
    assert first.is_symlink()
    assert second.is_dir()
    assert outside.read_text("utf-8") == "not ours"


def test_a_folder_of_sessions_that_is_a_link_is_not_followed(tmp_path: Path) -> None:
    home = home_of(tmp_path / "home", "22")
    home.sessions_dir.rename(tmp_path / "elsewhere")
    home.sessions_dir.symlink_to(tmp_path / "elsewhere")
    delete(home, ROOT)
    assert {path.name for path in (tmp_path / "elsewhere").iterdir()} == {*names_of(ROOT), *names_of(SECOND)}


@pytest.mark.parametrize("what", ["changed", "gone", "session is back"])
def test_a_file_is_asked_about_again_right_before_it_moves(
    what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = home_of(tmp_path / "home", "22")
    path = home.sessions_dir / f"{ROOT}.jsonl"
    real = hermes_dbtools.apply.commit

    def commit(connection: Any) -> None:
        real(connection)
        if what == "changed":
            path.write_text("longer than it was before", "utf-8")
        elif what == "gone":
            path.unlink()
        else:
            sql = "INSERT INTO sessions (id, source, started_at) VALUES (?, 'cli', 1)"
            execute(home.database, sql, (ROOT,))

    monkeypatch.setattr(hermes_dbtools.apply, "commit", commit)
    (receipt,) = delete(home, ROOT).receipts
    left = {Path(file.path).name: file.left for file in receipt.trash if file.left}
    if what == "session is back":
        assert set(left) == set(names_of(ROOT))
        assert set(left.values()) == {"its session is there again"}
    else:
        assert set(left) == {path.name}
    assert path.exists() == (what != "gone")


def test_an_undo_overwrites_no_file(tmp_path: Path) -> None:
    home = home_of(tmp_path / "home", "22")
    delete(home, ROOT)
    after = digests(home.database)
    (home.sessions_dir / f"{ROOT}.jsonl").write_text("of another", "utf-8")
    with pytest.raises(RolledBack, match="taken by another file"):
        take_back(home)
    assert digests(home.database) == after
    assert not (home.sessions_dir / f"{ROOT}.json").exists()
    assert (home.sessions_dir / f"{ROOT}.jsonl").read_text("utf-8") == "of another"
    (home.sessions_dir / f"{ROOT}.jsonl").unlink()
    take_back(home)
    assert (home.sessions_dir / f"{ROOT}.jsonl").read_text("utf-8") == f"of {ROOT}.jsonl"


def test_a_file_that_cannot_be_moved_leaves_the_receipt_pending(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = home_of(tmp_path / "home", "22")
    real = os.rename

    def rename(source: Any, target: Any, **named: Any) -> None:
        if str(source).endswith(".jsonl"):
            raise PermissionError(13, "Permission denied")
        real(source, target, **named)

    monkeypatch.setattr(os, "rename", rename)
    with pytest.raises(Exception, match=r"could not be moved away: .*permission denied"):
        delete(home, ROOT)
    assert ROOT not in sessions(home)
    monkeypatch.undo()
    delete(home, SECOND)
    assert not (home.sessions_dir / f"{ROOT}.jsonl").exists()
    assert [receipt.status for receipt in history(home)] == ["committed", "committed"]


def test_a_trash_on_another_file_system_is_a_copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = home_of(tmp_path / "home", "22")
    before = state(home.database)
    path = home.sessions_dir / f"{ROOT}.jsonl"
    times = path.stat().st_mtime_ns

    def refuse_it(*_arguments: Any, **_named: Any) -> None:
        raise OSError(18, "Invalid cross-device link")

    monkeypatch.setattr(os, "rename", refuse_it)
    delete(home, ROOT)
    assert not path.exists()
    monkeypatch.undo()
    take_back(home)
    assert state(home.database) == before
    assert (path.read_text("utf-8"), path.stat().st_mtime_ns) == (f"of {path.name}", times)


# The command


def test_a_dry_run_writes_nothing_and_says_what_would_go(tmp_path: Path) -> None:
    home = home_of(tmp_path / "home", "31")
    before, here = bytes_of(home.database), files(home)
    ran = tool_here("sessions", "delete", ROOT, "--home", str(home.root))
    assert ran.code == 0
    assert f"delete {ROOT} and 1 that goes with it: 6 messages" in ran.out
    assert f"next:  hermes-dbtools sessions delete {ROOT} --home" in ran.err
    assert (bytes_of(home.database), files(home)) == (before, here)


def test_the_command_deletes_and_names_the_undo(tmp_path: Path) -> None:
    home = home_of(tmp_path / "home", "31")
    ran = tool_here("sessions", "delete", ROOT[:12], SECOND, "--home", str(home.database), "--apply", "--yes")
    assert ran.code == 0, ran.err
    assert "deleted 2 of 2 sessions, and 1 that went with them" in ran.out
    assert "8 files" in ran.out
    assert "undo:   hermes-dbtools undo" in ran.out
    assert sessions(home) == ALL - {ROOT, SECOND, DELEGATE}


def test_the_command_on_a_live_session_exits_1(tmp_path: Path) -> None:
    home = home_of(tmp_path / "home", "31")
    sql = "INSERT INTO session_turn_leases VALUES (?, 'pid=1:turn=t', 1, 9e9)"
    execute(home.database, sql, (ROOT,))
    for words in ((), ("--apply", "--yes")):
        ran = tool_here("sessions", "delete", ROOT, "--home", str(home.root), *words)
        assert (ran.code, ran.out) == (1, "")
        assert ran.err.startswith(f"hermes-dbtools: Cannot delete active session {ROOT}: turn lease, pid 1")
    ran = tool_here("sessions", "delete", ROOT, SECOND, "--home", str(home.root), "--apply", "--yes")
    assert ran.code == 1
    assert "deleted 1 of 2 sessions" in ran.out
    assert "Cannot delete active session: 1 skipped" in ran.out
    ran = tool_here(
        "sessions", "delete", ROOT, CHAT, "--home", str(home.root), "--apply", "--yes", "--format", "json"
    )
    document = json.loads(ran.out)
    assert (document["deleted"], ran.code, document["exit_code"]) == ([CHAT], 1, 1)
    assert [one["session_id"] for one in document["skipped_active"]] == [ROOT]


@pytest.mark.parametrize(
    ("word", "line"),
    [
        ("nobody", "no session has this id"),
        ("20260528", "several sessions have ids that begin so"),
        ("2", "no session has this id"),
        ("x' OR '1'='1", "no session has this id"),
        ("%", "no session has this id"),
        ("../../state.db", "no session has this id"),
        ("a\nb", "no session has this id"),
        ("é" * 60_000, "no session has this id"),
        (b"\xff\xfe", "no session has such an id"),
    ],
)
def test_a_bad_id_is_one_line_and_changes_nothing(word: str | bytes, line: str, tmp_path: Path) -> None:
    home = home_of(tmp_path / "home", "22")
    before, here = bytes_of(home.database), files(home)
    for words in ((word,), (ROOT, word)):
        ran = tool_here("sessions", "delete", *words, "--home", str(home.root), "--apply", "--yes")
        assert ran.code == 2
        assert line in ran.err
        assert len(ran.err.splitlines()) == 1
        assert len(ran.err) < 300
    assert bytes_of(home.database) == before
    assert files(home) == here


def test_a_huge_id_is_one_line(tmp_path: Path) -> None:
    home = home_of(tmp_path / "home", "22")
    with pytest.raises(UsageError, match=r"10,000,000 letters"):
        look_at(home, ["a" * 10_000_000], words=True)
    assert delete_sessions("a" * 10_000_000, home).missing == ("a" * 10_000_000,)


# Python API


def test_the_api_is_part_of_the_package(tmp_path: Path) -> None:
    home = home_of(tmp_path / "home", "22")
    done = hermes_dbtools.delete_sessions([ROOT, "gone"], home.root, now=NOW)
    assert isinstance(done, hermes_dbtools.Deletion)
    assert (done.deleted, done.also_deleted, done.missing, done.exit_code) == (
        (ROOT,),
        (DELEGATE,),
        ("gone",),
        0,
    )
    assert delete_sessions(ROOT, home.root).missing == (ROOT,)
    assert [receipt.id for receipt in history(home)] == [receipt.id for receipt in done.receipts]


def test_a_backup_is_made_where_it_is_asked_for(tmp_path: Path) -> None:
    home = home_of(tmp_path / "home", "22")
    (receipt,) = delete(home, ROOT, backup=True).receipts
    assert Path(receipt.backup).is_file()
    (receipt,) = delete(home, SECOND).receipts
    assert receipt.backup == ""
