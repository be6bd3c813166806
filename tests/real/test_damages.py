"""Real files damaged one way at a time: exactly that finding, its repair, and an undo to the row."""

from __future__ import annotations

from pathlib import Path

import pytest

from hermes_dbtools import repairing, undoing
from hermes_dbtools.apply import ApplyOptions
from hermes_dbtools.model import Status
from tests.real.damages import HARMS, UNREADABLE, Harm, Row, facts, flip_page
from tests.real.lives import KINDS, copy_of
from tests.real.looks import AS_CORE, CORE, all_findings, blind, digest, home_of, look, run, wrong
from tests.real.wheels import RELEASES

Outcome = tuple[tuple[Row, ...], tuple[Row, ...], bool]
"""Findings when damaged, findings when repaired, and whether an undo gave every row back."""


@pytest.mark.parametrize("kind", KINDS)
def test_each_damage_is_found_as_what_it_is_mended_and_taken_back(kind: str, tmp_path: Path) -> None:
    known = facts(copy_of(kind, tmp_path / "healthy"))
    harms = {name: harm for name, make in HARMS.items() if (harm := make(known)) is not None}
    outcomes = {name: outcome(kind, tmp_path / name, harm) for name, harm in harms.items()}
    assert outcomes == {name: (harm.expect, harm.left, True) for name, harm in harms.items()}


def outcome(kind: str, folder: Path, harm: Harm) -> Outcome:
    """Damage a copy, look, repair it as told, look again, and undo."""
    path = copy_of(kind, folder).path
    harm.do(path)
    damaged = look(path)
    assert blind(damaged) == {}
    before = digest(path)
    home = home_of(path)
    request = repairing.Request(home, select=CORE, choices=harm.choices, allow_lossy=harm.lossy)
    prepared = repairing.prepare(request, lambda _what: None)
    done = repairing.carry_out(request, prepared, ApplyOptions(), lambda _what: None)
    repaired = look(path)
    assert (done.receipt is None) == (harm.left == harm.expect)
    assert done.exit_code == (1 if harm.left else 0)
    if done.receipt is not None:
        assert digest(path) != before
        undoing.undo(home, undoing.choose_receipt(home, None))
    assert wrong(look(path)) == harm.expect
    return wrong(damaged), wrong(repaired), digest(path) == before


@pytest.mark.parametrize("state", UNREADABLE)
def test_an_unreadable_file_is_one_finding_and_no_check_reads_as_clean(state: str, tmp_path: Path) -> None:
    for release in RELEASES:
        path = copy_of(release, tmp_path / release).path
        UNREADABLE[state](path)
        before = path.read_bytes()
        report = look(path)
        assert [(f.code, f.kind, f.severity.word) for f in all_findings(report)] == [
            ("HDB001", state, "error")
        ]
        others = {r.code: r.status for r in report.results if r.code in CORE and r.code != "HDB001"}
        assert {code for code, status in others.items() if status is not Status.COULD_NOT_LOOK} <= {"HDB003"}
        assert path.read_bytes() == before


@pytest.mark.parametrize("kind", KINDS)
def test_a_damaged_page_of_messages_stops_what_reads_them_and_every_plan(kind: str, tmp_path: Path) -> None:
    path = damaged_twice(kind, tmp_path, "messages")
    report = look(path)
    found = all_findings(report)
    assert {finding.code for finding in found} == {"HDB002"}
    assert [f.key for f in found if f.kind == "table"] == ["messages"]
    assert {(f.kind, f.table) for f in found if f.kind != "table"} <= {("index", "messages")}
    assert {"HDB201", "HDB202", "HDB501"} <= set(blind(report))
    before = path.read_bytes()
    told = run("repair", path, "--apply", "--yes", *AS_CORE)
    assert told.code == 1, told.err
    assert path.read_bytes() == before


@pytest.mark.parametrize("kind", KINDS)
def test_a_damaged_index_is_named_and_all_rows_are_read_without_it(kind: str, tmp_path: Path) -> None:
    path = damaged_twice(kind, tmp_path, "idx_messages_session")
    lost = copy_of(kind, tmp_path / "healthy").life.ids["tools"]
    report = look(path)
    assert wrong(report) == (("HDB002", "idx_messages_session", "error"), ("HDB201", lost, "error"))
    assert blind(report) == {}
    before = path.read_bytes()
    told = run("repair", path, "--apply", "--yes", *AS_CORE)
    assert told.code == 1, told.err
    assert "structural-damage (HDB002) comes first" in told.out
    assert path.read_bytes() == before


@pytest.mark.parametrize("kind", KINDS)
def test_a_damaged_search_page_is_no_damage_of_the_rows_and_stops_a_repair(kind: str, tmp_path: Path) -> None:
    path = damaged_twice(kind, tmp_path, "messages_fts_data")
    lost = copy_of(kind, tmp_path / "healthy").life.ids["tools"]
    report = look(path)
    assert wrong(report) == (("HDB201", lost, "error"),)
    assert blind(report) == {}
    before = path.read_bytes()
    told = run("repair", path, "--apply", "--yes", *AS_CORE)
    assert told.code == 4
    assert "a page of a search index is damaged" in told.err
    assert path.read_bytes() == before


def damaged_twice(kind: str, folder: Path, name: str) -> Path:
    """A copy whose session `tools` has lost its row, with a damaged page of the named table or index."""
    healthy = copy_of(kind, folder / "home")
    harm = HARMS["orphaned_tools"](facts(healthy))
    assert harm is not None
    harm.do(healthy.path)
    flip_page(healthy.path, name)
    return healthy.path
