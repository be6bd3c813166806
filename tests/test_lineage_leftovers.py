"""What stays behind after branching: each kind found by itself, each answer offered only where it is safe."""

from __future__ import annotations

from pathlib import Path

import pytest

from hermes_dbtools.damage.lineage.branched_root_leftovers import DAMAGE
from hermes_dbtools.fixtures.rows import Filled
from hermes_dbtools.model import Finding
from tests.looking import brief, findings, mend
from tests.shapes.make import SHAPES, execute, fill, make

MARKED = tuple(shape for shape in SHAPES if shape != "11")


def filled(folder: Path, shape: str) -> tuple[Path, Filled]:
    """A filled store and the ids in it."""
    path = make(folder / "state.db", shape)
    return path, fill(path)


def lose(path: Path, session_id: str, *, messages: bool = True) -> None:
    """Remove a session row with foreign keys off, its messages too unless they are to stay."""
    if messages:
        execute(path, "DELETE FROM messages WHERE session_id = ?", (session_id,))
    execute(path, "DELETE FROM sessions WHERE id = ?", (session_id,))


def answers(finding: Finding) -> list[tuple[str, bool]]:
    """The answers of a finding in order, and whether each can be planned."""
    return [(one.answer, one.step is not None and one.refused is None) for one in finding.remedies]


@pytest.mark.parametrize("shape", MARKED)
def test_branch_whose_root_is_gone_is_detached_and_keeps_its_marker(tmp_path: Path, shape: str) -> None:
    path, ids = filled(tmp_path, shape)
    root = ids.plain[0]
    lose(path, root)
    found = [one for one in findings(DAMAGE, path) if one.kind == "rootless-branch"]
    assert brief(found) == [("rootless-branch", ids.branch, "error")]
    assert answers(found[0]) == [("detach", True), ("report", False)]
    assert found[0].evidence["parent_session_id"] == root
    assert mend(DAMAGE, path, "detach") == 1
    row = execute(path, "SELECT parent_session_id, model_config FROM sessions WHERE id = ?", (ids.branch,))
    assert row == [(None, f'{{"_branched_from": "{root}"}}')]
    assert brief(findings(DAMAGE, path)) == [("stale-branch-marker", f"_branched_from:{ids.branch}", "note")]


def test_root_that_gets_its_row_back_is_left_to_that_class(tmp_path: Path) -> None:
    path, ids = filled(tmp_path, "22")
    lose(path, ids.plain[0], messages=False)
    assert findings(DAMAGE, path) == []
    execute(
        path,
        "INSERT INTO state_meta (key, value) VALUES (?, '{}')",
        (f"gateway.retired_session.v1.{ids.plain[0]}",),
    )
    assert brief(findings(DAMAGE, path)) == [("rootless-branch", ids.branch, "error")]


def test_unmarked_child_of_a_missing_parent_is_no_branch(tmp_path: Path) -> None:
    path, ids = filled(tmp_path, "22")
    lose(path, ids.compressed)
    execute(
        path, "UPDATE sessions SET model_config = ? WHERE id = ?",
        (f'{{"_branched_from": "{ids.plain[2]}"}}', ids.continuation),
    )  # fmt: skip
    assert findings(DAMAGE, path) == []


def test_minute_after_the_end_is_not_yet_use(tmp_path: Path) -> None:
    path, ids = filled(tmp_path, "22")
    lose(path, ids.branch)
    ended = execute(path, "SELECT ended_at FROM sessions WHERE id = ?", (ids.plain[0],))[0][0]
    insert = "INSERT INTO messages (session_id, role, content, timestamp) VALUES (?, 'user', 'x', ?)"
    execute(path, insert, (ids.plain[0], ended + 60))
    execute(path, insert, (ids.plain[0], "later"))
    execute(path, insert, (ids.plain[0], 1.0e300))
    (note,) = findings(DAMAGE, path)
    assert (note.kind, note.severity.word, note.evidence["messages_after_end"]) == (
        "branchless-root",
        "note",
        0,
    )
    execute(path, insert, (ids.plain[0], ended + 61))
    (warning,) = findings(DAMAGE, path)
    assert (warning.severity.word, warning.evidence["messages_after_end"]) == ("warning", 1)


def test_end_that_is_no_number_is_still_found(tmp_path: Path) -> None:
    path, ids = filled(tmp_path, "22")
    lose(path, ids.branch)
    execute(path, "UPDATE sessions SET ended_at = 'then' WHERE id = ?", (ids.plain[0],))
    (note,) = findings(DAMAGE, path)
    assert (note.severity.word, note.evidence["ended_at"]) == ("note", None)


def test_reopening_is_offered_once_no_branch_is_left(tmp_path: Path) -> None:
    path, ids = filled(tmp_path, "25")
    assert findings(DAMAGE, path) == []
    lose(path, ids.branch)
    (found,) = findings(DAMAGE, path)
    assert answers(found) == [("report", False), ("reopen", True)]
    assert mend(DAMAGE, path, "reopen") == 1
    assert execute(path, "SELECT ended_at, end_reason FROM sessions WHERE id = ?", (ids.plain[0],)) == [
        (None, None)
    ]
    assert findings(DAMAGE, path) == []


def test_text_that_is_not_utf8_stops_nothing(tmp_path: Path) -> None:
    path, ids = filled(tmp_path, "22")
    broken = "CAST(x'ff41' AS TEXT)"
    execute(path, f"UPDATE sessions SET model_config = {broken} WHERE id = ?", (ids.plain[1],))
    execute(
        path,
        "UPDATE sessions SET model_config = "
        "CAST(x'7b225f6272616e636865645f66726f6d223a2022ff41227d' AS TEXT) WHERE id = ?",
        (ids.plain[2],),
    )
    (found,) = findings(DAMAGE, path)
    assert found.evidence["missing"] == "hex:ff41"
    assert mend(DAMAGE, path, "strip") == 1
    assert findings(DAMAGE, path) == []


def test_healthy_shapes_have_no_leftovers(tmp_path: Path) -> None:
    for shape in SHAPES:
        (tmp_path / shape).mkdir()
        path, _ids = filled(tmp_path / shape, shape)
        assert findings(DAMAGE, path) == []


def test_runtime_rows_of_a_deleted_session_are_another_class(tmp_path: Path) -> None:
    path, ids = filled(tmp_path, "runtime")
    execute(path, "DELETE FROM gateway_routing")
    execute(
        path,
        "INSERT INTO state_meta (key, value) VALUES (?, '{}')",
        (f"gateway.retired_session.v1.{ids.gateway}",),
    )
    execute(path, "DROP TRIGGER sessions_runtime_ledger_delete_guard")
    lose(path, ids.gateway)
    assert findings(DAMAGE, path) == []
    execute(path, "CREATE TABLE restored AS SELECT * FROM session_admissions")
    execute(path, "DROP TABLE session_admissions")
    execute(path, "ALTER TABLE restored RENAME TO session_admissions")
    assert findings(DAMAGE, path) == []


def test_route_to_a_deleted_root_without_tombstone_is_a_note(tmp_path: Path) -> None:
    path, ids = filled(tmp_path, "runtime")
    execute(
        path,
        'UPDATE sessions SET model_config = \'{"_branched_from": "gone"}\' WHERE id = ?',
        (ids.plain[2],),
    )
    execute(path, 'UPDATE gateway_routing SET entry_json = \'{"session_id": "gone"}\'')
    assert brief(findings(DAMAGE, path)) == [
        ("stale-branch-marker", f"_branched_from:{ids.plain[2]}", "note"),
        ("branch-ledger", "gateway_routing:gone", "note"),
    ]


def test_route_to_an_id_that_nothing_proves_deleted_is_another_class(tmp_path: Path) -> None:
    path, _ids = filled(tmp_path, "runtime")
    execute(path, 'UPDATE gateway_routing SET entry_json = \'{"session_id": "gone"}\'')
    assert findings(DAMAGE, path) == []
