"""Real files damaged one way at a time: exactly that finding, its repair, and an undo to the row."""

from __future__ import annotations

from pathlib import Path

import pytest

from hermes_dbtools import repairing, undoing
from hermes_dbtools.apply import ApplyOptions
from tests.real.damages import HARMS, Harm, Row, facts
from tests.real.lives import KINDS, copy_of
from tests.real.looks import blind, digest, home_of, look, wrong

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
    request = repairing.Request(home, choices=harm.choices, allow_lossy=harm.lossy)
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
