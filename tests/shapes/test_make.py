"""The fixture maker's promise: what it makes is healthy by both engines, closed, and the same every time."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import get_args

import apsw
import pytest

from tests.shapes.engines import Engine
from tests.shapes.health import drifted, unanswered
from tests.shapes.make import PARTS, SHAPES, execute, execute_many, fill, fill_many, make

ENGINES = get_args(Engine)


def filled(folder: Path, shape: str, engine: Engine = "ours") -> Path:
    path = make(folder / "state.db", shape, engine=engine)
    fill(path, engine=engine)
    return path


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("shape", SHAPES)
def test_a_filled_store_is_healthy_and_alone(tmp_path: Path, shape: str, engine: Engine) -> None:
    path = filled(tmp_path, shape, engine)
    fill_many(path, 5, 7, 120, nul_every=4, engine=engine)
    assert [file.name for file in tmp_path.iterdir()] == ["state.db"]
    assert execute(path, "PRAGMA foreign_key_check") == []
    assert execute(path, "PRAGMA integrity_check", engine=engine) == [("ok",)]
    assert execute(path, "SELECT COUNT(*) FROM messages") == [(31 + 35,)]
    assert drifted(path) == []
    assert unanswered(path) == []


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("shape", SHAPES)
def test_the_search_index_agrees_with_the_text_by_the_engine_that_wrote_it(
    tmp_path: Path, shape: str, engine: Engine
) -> None:
    path = filled(tmp_path, shape, engine)
    fill_many(path, 2, 5, 8_000 if shape == "30" else 9_000, nul_every=3, engine=engine)
    for index in ("messages_fts", "messages_fts_trigram"):
        execute(path, f"INSERT INTO {index} ({index}, rank) VALUES ('integrity-check', 1)", engine=engine)


def test_search_layout_2_disagrees_with_the_text_of_a_long_answer_though_nothing_is_damaged(
    tmp_path: Path,
) -> None:
    path = make(tmp_path / "state.db", "30")
    fill_many(path, 1, 4, 9_000)
    with pytest.raises(apsw.CorruptError):
        execute(path, "INSERT INTO messages_fts (messages_fts, rank) VALUES ('integrity-check', 1)")
    assert execute(path, "PRAGMA integrity_check") == [("ok",)]


@pytest.mark.parametrize("engine", ENGINES)
def test_the_triggers_keep_index_and_places_right_through_every_kind_of_change(
    tmp_path: Path, engine: Engine
) -> None:
    path = filled(tmp_path, "media", engine)
    for sql in (
        "UPDATE messages SET content = content || ' and more' WHERE id % 3 = 0",
        "UPDATE messages SET role = 'user' WHERE role = 'tool' AND id % 2 = 0",
        "UPDATE messages SET active = 1 - active WHERE id % 5 = 0",
        "DELETE FROM messages WHERE id % 7 = 0",
    ):
        execute(path, sql, engine=engine)
    for index in ("messages_fts", "messages_fts_trigram"):
        execute(path, f"INSERT INTO {index} ({index}, rank) VALUES ('integrity-check', 1)", engine=engine)
    lost = "SELECT COUNT(*) FROM messages WHERE display_order <> id"
    assert execute(path, lost) == [(0,)]


@pytest.mark.parametrize("shape", ["30", "31"])
def test_copies_of_a_message_share_the_place_of_the_first_one_that_is_visible(
    tmp_path: Path, shape: str
) -> None:
    path = make(tmp_path / "state.db", shape)
    execute(path, "INSERT INTO sessions (id, source, started_at) VALUES ('s', 'cli', 1)")
    row = "(?, 's', 'user', 'x', 1, ?)"
    insert = f"INSERT INTO messages (id, session_id, role, content, timestamp, display_identity) VALUES {row}"
    execute_many(path, insert, [(1, b"a"), (2, b"b"), (3, b"a"), (4, b"a")])
    places = "SELECT id, display_order FROM messages ORDER BY id"
    assert execute(path, places) == [(1, 1), (2, 2), (3, 1), (4, 1)]
    execute(path, "UPDATE messages SET active = 0 WHERE id = 1")
    assert execute(path, places)[1:] == [(2, 2), (3, 3), (4, 3)]
    execute(path, "UPDATE messages SET compacted = 1 WHERE id = 1")
    assert execute(path, places) == [(1, 1), (2, 2), (3, 1), (4, 1)]
    execute(path, "DELETE FROM messages WHERE id = 1")
    assert execute(path, places) == [(2, 2), (3, 3), (4, 3)]
    execute(path, "UPDATE messages SET content = 'y' WHERE id = 4")
    assert execute(path, "SELECT id, display_identity, display_order FROM messages ORDER BY id") == [
        (2, b"b", 2),
        (3, None, None),
        (4, None, None),
    ]


def test_the_row_behind_a_nul_byte_is_indexed_by_the_rule_of_the_engine(tmp_path: Path) -> None:
    found = {}
    for engine in ENGINES:
        (tmp_path / engine).mkdir()
        path = filled(tmp_path / engine, "22", engine)
        hits = (
            "SELECT COUNT(*) FROM messages_fts_trigram WHERE messages_fts_trigram MATCH '\"on this picture\"'"
        )
        found[engine] = execute(path, hits, engine=engine)[0][0]
    behind_nul = execute(tmp_path / "stdlib" / "state.db", "SELECT sqlite_version()", engine="stdlib")[0][0]
    older = tuple(map(int, behind_nul.split("."))) < (3, 41)
    assert found["ours"] == 1
    assert found["stdlib"] == 0 or not older


def test_the_same_call_makes_the_same_bytes(tmp_path: Path) -> None:
    digests = set()
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        path = filled(tmp_path / name, "media")
        fill_many(path, 3, 8)
        digests.add(hashlib.sha256(path.read_bytes()).hexdigest())
    assert len(digests) == 1


def test_prompts_stand_under_their_own_hash(tmp_path: Path) -> None:
    path = filled(tmp_path, "31")
    prompts = execute(path, "SELECT hash, prompt FROM system_prompts")
    assert len(prompts) == 2
    assert all(hashlib.sha256(text.encode()).hexdigest() == name for name, text in prompts)


def test_the_family_is_complete(tmp_path: Path) -> None:
    path = make(tmp_path / "state.db", "22")
    family = fill(path, sessions=2, messages=6)
    assert [row[0] for row in execute(path, "SELECT id FROM sessions ORDER BY started_at")] == list(
        family.all
    )
    child = "SELECT parent_session_id, model_config FROM sessions WHERE id = ?"
    assert execute(path, child, [family.branch])[0][1] == f'{{"_branched_from": "{family.plain[0]}"}}'
    assert execute(path, child, [family.delegate])[0][1] == f'{{"_delegate_from": "{family.plain[0]}"}}'
    assert execute(path, child, [family.continuation])[0][0] == family.compressed
    assert execute(path, "SELECT entry_json ->> 'session_id' FROM gateway_routing") == [(family.gateway,)]
    nul = "SELECT COUNT(*) FROM messages WHERE substr(CAST(content AS BLOB), 1, 6) = x'006A736F6E3A'"
    assert execute(path, nul) == [(1,)]


@pytest.mark.parametrize("part", PARTS)
def test_a_part_fits_every_shape_it_is_for(tmp_path: Path, part: str) -> None:
    for shape in SHAPES:
        path = make(tmp_path / f"{shape}.db", shape, parts=[part])
        assert execute(path, "PRAGMA integrity_check") == [("ok",)]


def test_a_session_with_runtime_history_is_not_deleted_unawares(tmp_path: Path) -> None:
    path = make(tmp_path / "state.db", "runtime")
    family = fill(path)
    with pytest.raises(apsw.ConstraintError, match="newer Hermes"):
        execute(path, "DELETE FROM sessions WHERE id = ?", [family.gateway])


@pytest.mark.parametrize("mode", ["wal", "delete"])
def test_the_journal_mode_is_the_one_asked_for(tmp_path: Path, mode: str) -> None:
    path = make(tmp_path / "state.db", "25", journal_mode=mode)
    assert execute(path, "PRAGMA journal_mode") == [(mode,)]


def test_a_file_is_never_made_twice(tmp_path: Path) -> None:
    path = make(tmp_path / "state.db", "11")
    with pytest.raises(FileExistsError):
        make(path, "11")
