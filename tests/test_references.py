"""The reference classes beyond their cases: what they read, what lies beside the file, both ways to look."""

from __future__ import annotations

import json
import os
from collections import Counter
from pathlib import Path

import apsw
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hermes_dbtools.damage._declare import Damage, ScanContext
from hermes_dbtools.damage.references import (
    foreign_key_violations,
    missing_parent_session,
    missing_system_prompt,
    orphaned_bindings,
    orphaned_messages,
    orphaned_usage,
)
from hermes_dbtools.file_state import examine
from hermes_dbtools.home import resolve
from hermes_dbtools.model import Finding
from hermes_dbtools.shape import read_shape
from hermes_dbtools.structure import Gate
from tests.shapes.make import execute, execute_many, fill, fill_many, make

FAMILY = (
    orphaned_messages.DAMAGE,
    missing_parent_session.DAMAGE,
    orphaned_usage.DAMAGE,
    missing_system_prompt.DAMAGE,
    orphaned_bindings.DAMAGE,
    foreign_key_violations.DAMAGE,
)
LOST = "20260528_222640_d4735e"


def context(connection: apsw.Connection, path: Path, *, trust_indexes: bool = True) -> ScanContext:
    return ScanContext(
        connection,
        read_shape(connection),
        resolve(path),
        examine(path),
        Gate(),
        now=1_790_000_000.0,
        trust_indexes=trust_indexes,
    )


def found(damage: Damage, path: Path, *, trust_indexes: bool = True) -> list[Finding]:
    connection = apsw.Connection(str(path))
    try:
        return list(damage.find(context(connection, path, trust_indexes=trust_indexes)))
    finally:
        connection.close()


@pytest.fixture
def filled(tmp_path: Path) -> Path:
    path = make(tmp_path / "state.db", "media", parts=["telegram"])
    fill(path)
    return path


@pytest.fixture
def orphaned(filled: Path) -> Path:
    execute(filled, "DELETE FROM sessions WHERE id = ?", (LOST,))
    return filled


def test_evidence_counts_and_weighs_the_rows_and_holds_none(orphaned: Path) -> None:
    execute(orphaned, "UPDATE messages SET active = 0 WHERE id = 10")
    (finding,) = found(orphaned_messages.DAMAGE, orphaned)
    weights = execute(
        orphaned,
        "SELECT sum(octet_length(content) + coalesce(octet_length(tool_calls), 0)), "
        "       min(timestamp), max(timestamp)"
        "  FROM messages WHERE session_id = ?",
        (LOST,),
    )
    evidence = finding.evidence
    assert (evidence["bytes"], evidence["first_at"], evidence["last_at"]) == weights[0]
    assert (evidence["rows"], evidence["active_rows"]) == (4, 3)
    assert evidence["usage"] == 2
    assert evidence["daily"] == 1
    assert not evidence["tombstoned"]
    assert not evidence["transcript"]
    assert evidence["other_profiles"] == []
    ((total,),) = execute(orphaned, "SELECT count(*) FROM messages")
    assert evidence["share_of_messages"] == round(4 / total, 4)


def test_a_secret_in_every_text_of_a_damaged_row_is_not_shown(filled: Path) -> None:
    secret = "Secret 7c1e"
    execute(filled, "UPDATE messages SET content = ?1, tool_calls = ?1, reasoning = ?1", (secret,))
    execute(filled, "UPDATE messages SET timestamp = ?", (secret,))
    execute(
        filled, "UPDATE gateway_routing SET entry_json = json_set(entry_json, '$.platform', ?)", (secret,)
    )
    values = "model_config = ?1, title = ?1 || id, source = ?1, started_at = ?1, system_prompt_hash = ?1"
    execute(filled, f"UPDATE sessions SET {values}", (secret,))
    execute(
        filled,
        "INSERT INTO telegram_dm_topic_bindings VALUES (?1, ?1, ?1, ?1, 'gone', ?1, ?1, ?1)",
        (secret,),
    )
    execute(filled, "CREATE TABLE fork (note TEXT PRIMARY KEY, session_id TEXT REFERENCES sessions(id))")
    execute(filled, "INSERT INTO fork VALUES (?, 'gone')", (secret,))
    execute(filled, "DELETE FROM sessions WHERE id IN (?, '20260529_012640_ef2d12')", (LOST,))
    execute(filled, "UPDATE sessions SET parent_session_id = 'gone' WHERE id = '20260528_232640_4e0740'")
    findings = [finding for damage in FAMILY for finding in found(damage, filled)]
    assert {finding.code for finding in findings} == {"HDB201", "HDB202", "HDB204", "HDB205", "HDB206"}
    shown = repr(
        [
            (f.key, f.message, f.kind, f.evidence, [r.step and r.step.title for r in f.remedies])
            for f in findings
        ]
    )
    assert secret not in shown


def test_a_transcript_is_seen_and_never_followed_or_waited_for(orphaned: Path) -> None:
    folder = orphaned.parent / "sessions"
    folder.mkdir()
    os.mkfifo(folder / "sessions.json")
    os.mkfifo(folder / f"session_{LOST}.json")
    (finding,) = found(orphaned_messages.DAMAGE, orphaned)
    assert (finding.evidence["transcript"], finding.evidence["source"]) == (False, "recovered")
    head = json.dumps({"session_id": LOST, "model": "m", "base_url": "", "platform": "signal"}, indent=2)
    (orphaned.parent / "elsewhere").write_text(head)
    (folder / f"session_{LOST}.json").unlink()
    (folder / f"session_{LOST}.json").symlink_to(orphaned.parent / "elsewhere")
    (finding,) = found(orphaned_messages.DAMAGE, orphaned)
    assert (finding.evidence["transcript"], finding.evidence["source"]) == (False, "recovered")
    (folder / f"session_{LOST}.json").unlink()
    (folder / f"session_{LOST}.json").write_text(head)
    (finding,) = found(orphaned_messages.DAMAGE, orphaned)
    assert (finding.evidence["transcript"], finding.evidence["source"]) == (True, "signal")
    (folder / f"session_{LOST}.json").write_text(head.replace(LOST, "another"))
    (finding,) = found(orphaned_messages.DAMAGE, orphaned)
    assert finding.evidence["source"] == "recovered"
    (folder / f"{LOST}.jsonl").write_text("")
    (finding,) = found(orphaned_messages.DAMAGE, orphaned)
    assert finding.evidence["transcript"] is True


@pytest.mark.parametrize(
    "content", ["", "[]", "{", '{"a": 1}', "[" * 100_000, '{"a": {"session_id": {}}}', "\0"]
)
def test_an_index_of_routes_that_is_none_proves_nothing(orphaned: Path, content: str) -> None:
    (orphaned.parent / "sessions").mkdir()
    (orphaned.parent / "sessions" / "sessions.json").write_text(content)
    (finding,) = found(orphaned_messages.DAMAGE, orphaned)
    assert finding.evidence["source"] == "recovered"


def test_the_same_id_in_another_profile_is_named_and_a_broken_profile_says_so(orphaned: Path) -> None:
    for name in ("work", "play", "broken"):
        folder = orphaned.parent / "profiles" / name
        folder.mkdir(parents=True)
        if name == "broken":
            (folder / "state.db").write_text("no database")
        else:
            make(folder / "state.db", "22")
    execute(
        orphaned.parent / "profiles" / "work" / "state.db",
        "INSERT INTO sessions (id, source, started_at) VALUES (?, 'cli', 1780000000.0)",
        (LOST,),
    )
    (finding,) = found(orphaned_messages.DAMAGE, orphaned)
    assert finding.evidence["other_profiles"] == ["work", "broken: could not look"]
    (again,) = found(orphaned_messages.DAMAGE, orphaned, trust_indexes=False)
    assert again.remedies == finding.remedies
    assert again.evidence["other_profiles"] == []


def test_a_purge_lists_every_row_that_it_removes(orphaned: Path) -> None:
    (finding,) = found(orphaned_messages.DAMAGE, orphaned)
    step = finding.remedies[1].step
    assert step is not None
    purge = step.statements[0]
    connection = apsw.Connection(str(orphaned))
    try:
        rows = list(
            orphaned_messages.DAMAGE.rows(context(connection, orphaned), "purge-rows", purge.bindings)
        )
    finally:
        connection.close()
    assert [row[0] for row in rows] == [9, 10, 11, 12]
    assert sum(int(str(row[1])) for row in rows) == step.bytes_freed == finding.evidence["bytes"]


def test_an_index_that_lacks_rows_hides_orphans_only_from_the_first_look(filled: Path) -> None:
    connection = apsw.Connection(str(filled))
    try:
        connection.execute("PRAGMA writable_schema = ON")
        ((saved,),) = connection.execute("SELECT sql FROM sqlite_schema WHERE name = 'idx_messages_session'")
        ((root,),) = connection.execute(
            "SELECT rootpage FROM sqlite_schema WHERE name = 'idx_messages_session'"
        )
        connection.execute("DELETE FROM sqlite_schema WHERE name = 'idx_messages_session'")
    finally:
        connection.close()
    execute(
        filled, "INSERT INTO messages (session_id, role, timestamp) VALUES ('hidden', 'user', 1780000000.0)"
    )
    connection = apsw.Connection(str(filled))
    try:
        connection.execute("PRAGMA writable_schema = ON")
        row = ("idx_messages_session", "messages", root, saved)
        connection.execute("INSERT INTO sqlite_schema VALUES ('index', ?, ?, ?, ?)", row)
    finally:
        connection.close()
    assert found(orphaned_messages.DAMAGE, filled) == []
    (finding,) = found(orphaned_messages.DAMAGE, filled, trust_indexes=False)
    assert finding.key == "hidden"


def _misses(path: Path, damages: tuple[Damage, ...]) -> int:
    """Pages that the classes read from the file."""
    connection = apsw.Connection(str(path))
    try:
        looked = context(connection, path)
        before = connection.status(apsw.SQLITE_DBSTATUS_CACHE_MISS)[0]
        for damage in damages:
            assert list(damage.find(looked)) == []
        return connection.status(apsw.SQLITE_DBSTATUS_CACHE_MISS)[0] - before
    finally:
        connection.close()


def test_a_healthy_file_costs_by_its_sessions_and_not_by_its_messages(tmp_path: Path) -> None:
    small, large = make(tmp_path / "small.db", "22"), make(tmp_path / "large.db", "22")
    fill_many(small, 100, 10, 300)
    fill_many(large, 100, 200, 300)
    few, many = _misses(small, FAMILY[:3]), _misses(large, FAMILY[:3])
    ((pages,),) = execute(large, "PRAGMA page_count")
    assert many < pages / 4
    assert many < 8 * few + 3 * 100


def test_sqlites_own_check_is_asked_only_of_tables_that_no_other_class_looks_at(filled: Path) -> None:
    asked: Counter[str] = Counter()
    connection = apsw.Connection(str(filled))
    try:
        connection.execute(
            "CREATE TABLE turns (id INTEGER PRIMARY KEY, session_id TEXT REFERENCES sessions(id))"
        )
        looked = context(connection, filled)

        def note(event: dict[str, object]) -> None:
            sql = str(event.get("sql", ""))
            if "foreign_key_check" in sql and sql.startswith("PRAGMA"):
                asked[sql.split("=")[-1].strip("'")] += 1

        connection.trace_v2(apsw.SQLITE_TRACE_STMT, note)
        assert list(foreign_key_violations.DAMAGE.find(looked)) == []
    finally:
        connection.close()
    assert set(asked) == {"turns"}


IDS = ("a", "A", "", "b", "gone", b"\xff", "c\0d")


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    sessions=st.lists(st.tuples(st.sampled_from(IDS), st.sampled_from((None, *IDS))), max_size=5),
    messages=st.lists(st.sampled_from(IDS), max_size=6),
    usage=st.lists(st.sampled_from(IDS), max_size=4),
    tombstones=st.lists(st.sampled_from(("a", "b", "gone")), max_size=2),
)
def test_both_ways_of_looking_agree_with_a_plain_account(
    tmp_path_factory: pytest.TempPathFactory,
    sessions: list[tuple[str | bytes, str | bytes | None]],
    messages: list[str | bytes],
    usage: list[str | bytes],
    tombstones: list[str],
) -> None:
    path = make(tmp_path_factory.mktemp("both") / "state.db", "22", journal_mode="delete")
    parents = dict(sessions)
    put = (
        "INSERT INTO sessions (id, source, started_at, parent_session_id) "
        "VALUES (CAST(? AS TEXT), 'cli', 1e9, CAST(? AS TEXT))"
    )
    execute_many(path, put, list(parents.items()))
    put = "INSERT INTO messages (session_id, role, timestamp) VALUES (CAST(? AS TEXT), 'user', 1e9)"
    execute_many(path, put, [(one,) for one in messages])
    put = "INSERT OR IGNORE INTO session_model_usage (session_id, model) VALUES (CAST(? AS TEXT), 'm')"
    execute_many(path, put, [(one,) for one in usage])
    put = "INSERT OR IGNORE INTO state_meta (key, value) VALUES ('gateway.retired_session.v1.' || ?, '{}')"
    execute_many(path, put, [(one,) for one in tombstones])

    missing = {one for one in messages if one not in parents}
    adopted = {one for one in missing if isinstance(one, str) and one not in tombstones}
    lost_parents = {
        one: parent
        for one, parent in parents.items()
        if parent is not None and parent not in parents and parent not in adopted
    }
    lost_usage = {one for one in usage if one not in parents and one not in adopted}
    for trust_indexes in (True, False):
        rows = {
            damage.code: found(damage, path, trust_indexes=trust_indexes)
            for damage in (orphaned_messages.DAMAGE, missing_parent_session.DAMAGE, orphaned_usage.DAMAGE)
        }
        assert {f.session_ids[0] for f in rows["HDB201"]} == missing
        assert {f.session_ids[0] for f in rows["HDB201"] if not f.remedies[0].refused} == adopted
        assert {f.session_ids[0] for f in rows["HDB202"]} == set(lost_parents)
        assert {f.session_ids[0] for f in rows["HDB203"]} == lost_usage
        assert sum(int(str(f.evidence["rows"])) for f in rows["HDB201"]) == sum(
            one in missing for one in messages
        )
