"""What people wrote is never printed: every text of a store holds a marker, and no output of any command holds it."""

from __future__ import annotations

import hashlib
import os
import stat
import tomllib
from collections.abc import Iterator, Set
from pathlib import Path
from typing import Any

import apsw
import pytest
from click.testing import CliRunner

from hermes_dbtools.cli import cli
from hermes_dbtools.damage import REGISTRY
from hermes_dbtools.damage._declare import Damage
from hermes_dbtools.damage.media import unreferenced_images
from hermes_dbtools.queries import quote
from tests.hostile import damage_every_column
from tests.running import CHECKOUT
from tests.shapes.make import execute, fill, make

MARKER = "Zqx7secret"

NAMES = {
    "id", "session_id", "parent_session_id", "target_session_id", "origin_session", "origin_session_id", "hash",
    "system_prompt_hash", "tool_names", "execution_id", "owner_execution_id", "admission_id", "delegation_id",
    "conversation_id", "instance_id", "lineage_json", "day", "key",
}  # fmt: skip
"""Columns that hold ids of the store, which are printed so that somebody can find the row."""

WORDS = {
    "role", "source", "created_source", "end_reason", "state", "delivery_state", "kind", "status", "intent", "outcome",
    "profile_name", "transport_profile",
}  # fmt: skip
"""Columns of a few fixed words, which say what a row is."""

SHAPES = ("22", "25", "runtime")


SPARED = {
    "HDB309": {"title"},
    "HDB317": {
        "user_id",
        "chat_id",
        "chat_type",
        "thread_id",
        "cwd",
        "git_repo_root",
        "git_branch",
        "session_key",
    },
    "HDB503": {"task"},
}
"""Columns that must be as they are for a class to find anything; all others hold the marker for it too."""


def mark(path: Path, spared: Set[str] = frozenset()) -> int:
    """Put the marker into every text column that is neither id nor word; returns how many columns that were."""
    connection = apsw.Connection(str(path))
    try:
        connection.execute("PRAGMA foreign_keys = OFF")
        connection.execute("PRAGMA ignore_check_constraints = ON")
        columns = [(table, column) for table, column in _texts(connection) if column not in spared]
        triggers: list[Any] = connection.execute(
            "SELECT name, sql FROM sqlite_schema WHERE type = 'trigger'"
        ).fetchall()
        with connection:
            for name, sql in triggers:
                if "messages_fts" not in sql:
                    connection.execute(f"DROP TRIGGER {quote(name)}")
            for table, column in columns:
                connection.execute(_marking(quote(table), quote(column)), {"marker": MARKER})
            for _name, sql in triggers:
                if "messages_fts" not in sql:
                    connection.execute(sql)
            connection.execute("INSERT INTO state_meta VALUES (?, ?)", ("a key of no known kind", MARKER))
        return len(columns)
    finally:
        connection.close()


def _texts(connection: apsw.Connection) -> Iterator[tuple[str, str]]:
    found: list[Any] = connection.execute(
        "SELECT t.name, c.name FROM pragma_table_list AS t CROSS JOIN pragma_table_info(t.name) AS c"
        " WHERE t.schema = 'main' AND t.type = 'table' AND t.name NOT LIKE 'sqlite%' AND c.type = 'TEXT'"
        " ORDER BY t.name, c.cid"
    ).fetchall()
    for table, column in found:
        if column not in NAMES | WORDS:
            yield table, column


def _marking(table: str, column: str) -> str:
    """JSON stays JSON; other text is followed by the marker and the number of its row."""
    return f"""
        UPDATE {table} SET {column} = CASE
            WHEN {column} IS NULL THEN :marker || ' ' || rowid
            WHEN NOT json_valid({column}) THEN {column} || ' ' || :marker || ' ' || rowid
            WHEN json_type({column}) = 'object' THEN json_set({column}, '$.secret', :marker)
            WHEN json_type({column}) = 'array' THEN json_set({column}, '$[0].secret', :marker)
            ELSE {column} || :marker || rowid END
    """


def says(*words: str) -> str:
    """Everything that a command says: answer, other output, and the error that ends it."""
    result = CliRunner().invoke(cli, list(words))
    error = result.exception
    assert error is None or isinstance(error, SystemExit) or hasattr(error, "exit_code"), (words, error)
    return f"{result.output}\n{error}"


def cases_of(damage: Damage) -> list[dict[str, Any]]:
    """For each of the shapes a case in which the class finds something; of any shape, where none of them has one."""
    path = CHECKOUT / "tests" / "cases" / f"{damage.path}.toml"
    if not path.exists():  # tests/test_registry.py says so
        return []
    first: dict[str, dict[str, Any]] = {}
    tables = tomllib.loads(path.read_text("utf-8"))["case"]
    for situation in ("repaired", "found", "refused"):
        for case in tables:
            if case["situation"] == situation and any(one["code"] == damage.code for one in case["expect"]):
                first.setdefault(case["shape"], case)
    return [first[shape] for shape in SHAPES if shape in first] or list(first.values())[:1]


CASES = [
    pytest.param(damage, case, id=f"{damage.slug} {case['shape']}")
    for damage in REGISTRY
    if damage.stage == "rows"
    for case in cases_of(damage)
]


def test_every_class_is_tried() -> None:
    tried = {param.values[0].code for param in CASES}  # type: ignore[union-attr]
    assert {damage.code for damage in REGISTRY if damage.stage == "rows"} == tried


@pytest.mark.parametrize(("damage", "case"), CASES)
def test_no_command_prints_what_people_wrote(
    tmp_path: Path, damage: Damage, case: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        unreferenced_images, "GRACE_SECONDS", -60.0
    )  # the files of a case are as young as the test
    home = tmp_path / "home"
    for part in ("sessions", "cache/documents/native-inputs", "cache/transcript_media"):
        (home / part).mkdir(parents=True)
    path = make(home / "state.db", case["shape"], parts=case.get("parts", ()))
    fill(path)
    for name, content in case.get("files", {}).items():
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text(content, "utf-8")
    assert mark(path, SPARED.get(damage.code, frozenset())) > 30
    _run(path, case.get("damage", "SELECT 1").replace("{home}", str(home)))
    database = str(path)
    assert damage.code in says("scan", database, *(["--deep"] if damage.deep or case.get("deep") else []))
    plan = str(tmp_path / "plan.json")
    chosen = [f"--choose={damage.slug}={answer}" for answer in damage.answers]
    silent = [
        ("scan", database, "--verbose", "--timings"),
        ("scan", database, "--format", "json"),
        *(("repair", database, "--verbose", "--allow-lossy", choose) for choose in chosen),
        *(("repair", database, "--format", "json", "--allow-lossy", choose) for choose in chosen),
        ("repair", database, "--save-plan", plan),
        ("repair", database, "--rehearse", "--allow-lossy"),
        ("repair", database, "--apply", "--yes", "--allow-lossy", chosen[0], "--max-rows", "1000"),
        ("history", database),
        ("history", database, "--format", "json"),
        ("undo", database),
        ("undo", database, "--apply", "--yes"),
    ]
    for words in silent:
        assert MARKER not in says(*words), words
    for written in (Path(plan), *(home / "dbtools").glob("*/*.json")):
        assert MARKER.encode() not in written.read_bytes(), written.name


def _run(path: Path, sql: str) -> None:
    connection = apsw.Connection(str(path))
    try:
        connection.create_scalar_function(
            "sha256", lambda *said: hashlib.sha256(str(said[0]).encode()).hexdigest()
        )
        connection.execute("PRAGMA foreign_keys = OFF")
        connection.execute(sql)
    finally:
        connection.close()


@pytest.mark.parametrize("shape", SHAPES)
def test_no_odd_value_is_printed(tmp_path: Path, shape: str) -> None:
    """The same with every wrong kind of value in every column, which is where an error might quote one."""
    path = make(tmp_path / "state.db", shape)
    fill(path)
    mark(path)
    damage_every_column(path, spare=("sessions.id", "messages.id"))
    for words in (
        ("scan", str(path), "--verbose"),
        ("scan", str(path), "--format", "json"),
        ("repair", str(path), "--verbose", "--allow-lossy"),
        ("repair", str(path), "--format", "json"),
        ("repair", str(path), "--apply", "--yes", "--allow-lossy"),
    ):
        assert MARKER not in says(*words), words


@pytest.mark.parametrize("shape", SHAPES)
def test_a_conflict_names_the_row_by_its_id(tmp_path: Path, shape: str) -> None:
    path = make(tmp_path / "state.db", shape)
    ids = fill(path)
    mark(path)
    execute(path, "UPDATE sessions SET message_count = 99 WHERE id = ?", (ids.plain[1],))
    assert "applied" in says("repair", str(path), "--apply", "--yes")
    execute(path, "UPDATE sessions SET message_count = 98 WHERE id = ?", (ids.plain[1],))
    said = says("undo", str(path), "--apply", "--yes")
    assert ids.plain[1] in said
    assert MARKER not in said


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o277])
def test_what_holds_rows_is_for_its_owner_only(tmp_path: Path, umask: int) -> None:
    path = make(tmp_path / "state.db", "22")
    ids = fill(path)
    mark(path)
    execute(path, "DELETE FROM sessions WHERE id = ?", (ids.plain[1],))
    before = os.umask(umask)
    try:
        answer = ("--choose", "orphaned-messages=purge", "--allow-lossy")
        assert "applied" in says("repair", str(path), "--apply", "--yes", *answer)
    finally:
        os.umask(before)
    folder = tmp_path / "dbtools"
    entries = {entry.relative_to(folder).name: entry for entry in (folder, *folder.rglob("*"))}
    assert {"undo", "backup.db", "receipt.json", "plan.json"} <= set(entries)
    for entry in entries.values():
        found = entry.stat()
        assert stat.S_IMODE(found.st_mode) == (0o700 if entry.is_dir() else 0o600), entry.name
        assert (found.st_uid, found.st_gid) == (path.stat().st_uid, path.stat().st_gid)
    assert MARKER.encode() in entries["undo"].read_bytes(), "the marker is in the rows that were removed"
    assert MARKER.encode() in entries["backup.db"].read_bytes()
