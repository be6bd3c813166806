"""What the lineage classes share: one rule for continuations, and values that are none stop nobody."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from hermes_dbtools.damage._declare import Damage
from hermes_dbtools.damage.lineage import (
    closed_without_continuation,
    conflicting_markers,
    cut_lineages,
    duplicate_branches,
    forked_continuations,
    orphaned_delegates,
    unmarked_branches,
)
from hermes_dbtools.queries import resource
from tests.looking import brief, findings
from tests.repairs import DELEGATE, look, new_home, plan_of, repair
from tests.shapes.make import SHAPES, execute, fill, make

CLASSES: tuple[Damage, ...] = (
    unmarked_branches.DAMAGE,
    orphaned_delegates.DAMAGE,
    conflicting_markers.DAMAGE,
    closed_without_continuation.DAMAGE,
    forked_continuations.DAMAGE,
    duplicate_branches.DAMAGE,
    cut_lineages.DAMAGE,
)
CONTINUES = (
    "child.source IS NOT 'tool'"
    " AND child.parent_session_id IS NOT json_extract(child.model_config, '$._branched_from')"
    " AND child.parent_session_id IS NOT json_extract(child.model_config, '$._delegate_from')"
    " AND child.parent_session_id IS NOT json_extract(child.model_config, '$._reset_from')"
)
NO_VALUES = (
    "CAST(x'ff41' AS TEXT)", "x'00ff'", "'{\"_branched_from\": {\"a\": 1}}'", "'{\"_delegate_from\": [7]}'",
    "'{\"_reset_from\": 1e999}'", "'{'", "''", "'[]'", "'null'", "7", "9e999", "NULL",
    "CAST(x'7b225f64656c65676174655f66726f6d223a2022ff41227d' AS TEXT)",
)  # fmt: skip


@pytest.mark.parametrize(
    "name",
    [
        "guard/closure",
        "damage/lineage/closed_without_continuation",
        "damage/lineage/forked_continuations",
    ],
)
def test_what_continues_a_session_is_said_in_the_same_words(name: str) -> None:
    text = (resource("sql") / f"{name}.sql").read_text("utf-8")
    assert CONTINUES in re.sub(r"\s+", " ", text)


@pytest.mark.parametrize(
    "column", ["model_config", "source", "started_at", "ended_at", "end_reason", "title"]
)
@pytest.mark.parametrize("shape", ["11", "22", "media"])
def test_values_that_are_none_stop_no_class(tmp_path: Path, shape: str, column: str) -> None:
    path = make(tmp_path / "state.db", shape)
    ids = fill(path)
    for number, value in enumerate(NO_VALUES):
        if value == "NULL" and column in ("source", "started_at"):
            continue
        parent = (None, *ids.all)[number % 9]
        execute(
            path,
            "INSERT INTO sessions (id, source, model_config, started_at, parent_session_id) VALUES (?, 'cli', '{}', 1.0, ?)",
            (f"bad-{number}", parent),
        )
        execute(path, f"UPDATE sessions SET {column} = {value} WHERE id = ?", (f"bad-{number}",))
        said = "INSERT INTO messages (session_id, role, content, timestamp) VALUES (?, ?, CAST(x'ff' AS TEXT), 'then')"
        execute(path, said, (f"bad-{number}", "user"))
    execute(path, "UPDATE sessions SET parent_session_id = x'00ff' WHERE id = 'bad-3'")
    for damage in CLASSES:
        found = brief(findings(damage, path))
        assert found == brief(findings(damage, path, trust_indexes=False)), damage.slug
        assert len({key for _kind, key, _severity in found}) == len(found), damage.slug


@pytest.mark.parametrize("shape", SHAPES)
def test_nothing_is_found_in_a_healthy_store(tmp_path: Path, shape: str) -> None:
    path = make(tmp_path / "state.db", shape)
    fill(path)
    for damage in CLASSES:
        assert findings(damage, path) == [], damage.slug


def test_ids_that_are_no_text_stop_no_class(tmp_path: Path) -> None:
    path = make(tmp_path / "state.db", "22")
    ids = fill(path)
    execute(path, "UPDATE sessions SET id = x'00ff' WHERE id = ?", (ids.continuation,))
    execute(path, "UPDATE sessions SET id = CAST(x'ff41' AS TEXT) WHERE id = ?", (ids.delegate,))
    orphan = "UPDATE sessions SET model_config = ?, parent_session_id = NULL WHERE id = CAST(x'ff41' AS TEXT)"
    execute(path, orphan, ('{"_delegate_from": "gone"}',))
    for damage in CLASSES:
        findings(damage, path)
    (found,) = findings(orphaned_delegates.DAMAGE, path)
    assert found.key == "hex:ff41"
    assert [(one.answer, one.refused or "") for one in found.remedies] == [
        ("report", ""),
        ("strip", ""),
        ("purge", "an id in its tree is not UTF-8 text"),
    ]


def test_a_session_under_two_orphaned_delegates_is_purged_with_the_first(tmp_path: Path) -> None:
    path = make(tmp_path / "state.db", "22")
    fill(path)
    row = "INSERT INTO sessions (id, source, started_at, parent_session_id, model_config) VALUES (?, 'subagent', 1.0, ?, ?)"
    execute(path, row, ("one", None, '{"_delegate_from": "gone"}'))
    execute(path, row, ("two", None, '{"_delegate_from": "gone too"}'))
    execute(path, row, ("both", "one", '{"_delegate_from": "two"}'))
    first, second = findings(orphaned_delegates.DAMAGE, path)
    assert (first.session_ids, second.session_ids) == (("one", "both"), ("two", "both"))
    assert first.remedies[2].refused is None
    assert second.remedies[2].refused == "what it handed out is also below one: purge that one first"


def test_what_else_is_wrong_with_a_purged_session_goes_with_it(tmp_path: Path) -> None:
    orphaned = 'UPDATE sessions SET parent_session_id = NULL, model_config = \'{"_delegate_from": "gone"}\''
    home = new_home(tmp_path / "home", "22", f"{orphaned}, message_count = 99 WHERE id = '{DELEGATE}'")
    kept = plan_of(home, choose={"orphaned-delegates": "strip"})
    assert [step.code for step in kept.steps] == ["HDB303", "HDB501"]
    plan = plan_of(home, choose={"orphaned-delegates": "purge"}, allow_lossy=True)
    assert [step.code for step in plan.steps] == ["HDB303"]
    assert ("HDB501", "orphaned-delegates removes its session") in {
        (one.code, one.reason) for one in plan.skipped
    }
    assert repair(home, plan).status == "committed"
    assert not {step.code for step in plan_of(home).steps} & {"HDB303", "HDB501"}
    assert not [one for result in look(home).results for one in result.findings if one.key == DELEGATE]
