"""Random mixtures of damages on real files: one plan mends what it promised, breaks nothing, and an undo gives all back."""

from __future__ import annotations

import os
import tempfile
import zlib
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hermes_dbtools import apply_plan, make_plan, undo
from hermes_dbtools.apply import ApplyOptions
from hermes_dbtools.model import DatabaseReport, Finding, Plan, Receipt, Severity
from hermes_dbtools.plan import PlanOptions
from hermes_dbtools.undoing import UndoOptions
from tests.real.damages import facts
from tests.real.lives import KINDS, copy_of
from tests.real.looks import all_findings, blind, digest, home_of, look
from tests.real.strokes import STROKES, strike, strokes_of

EXAMPLES = int(os.environ.get("HERMES_DBTOOLS_MIXTURES", "5"))
"""Mixtures of each kind of file."""

ROUNDS = 3
"""Repairs after which nothing may be planned any more."""

UNCOVERED = {
    "HDB202": ("HDB201",),
    "HDB302": ("HDB402",),
}
"""What another repair brings to light, as its dry run says: children of a purged parent; a copied beginning whose time
could not be read."""

FOR_GOOD = {("HDB502", "messages")}
"""The counter of ids, which rows put back raise: an undo never lowers it."""

Dealt = list[tuple[str, tuple[int, int, int]]]
Place = tuple[str, str]
"""Code and key of a finding."""

_NUMBER = st.integers(0, 999)
_PLACES = st.tuples(_NUMBER, _NUMBER, _NUMBER)


@pytest.mark.parametrize("kind", KINDS)
def test_a_plan_of_everything_at_once_mends_what_it_promised(kind: str, tmp_path: Path) -> None:
    names = strokes_of(facts(copy_of(kind, tmp_path / "healthy")))

    @settings(
        max_examples=EXAMPLES,
        derandomize=True,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(
        dealt=st.lists(st.tuples(st.sampled_from(names), _PLACES), min_size=1, max_size=12),
        chosen=st.integers(0, 1 << 32),
        allow_lossy=st.sampled_from((True, True, False)),
    )
    def mixture(dealt: Dealt, chosen: int, allow_lossy: bool) -> None:
        with tempfile.TemporaryDirectory(dir=tmp_path) as folder:
            mend(kind, Path(folder), dealt, chosen, allow_lossy)

    mixture()


def mend(kind: str, folder: Path, dealt: Dealt, chosen: int, allow_lossy: bool) -> None:
    """Damage a copy, repair it with answers drawn by `chosen` until nothing is planned, and take it all back."""
    path = home_with(kind, folder)
    strike(path, dealt)
    before, damaged = digest(path), seen(path)
    receipts: list[Receipt] = []
    report, fresh = damaged, places(damaged)
    options = PlanOptions(answers(damaged, chosen), allow_lossy, max_rows=10**6)
    while (plan := make_plan(report, options)).steps:
        assert len(receipts) < ROUNDS
        assert {(step.code, step.key) for step in plan.steps} <= fresh
        receipts.append(apply_plan(home_of(path), plan, ApplyOptions()))
        mended = seen(path)
        assert places(mended) & {(step.code, step.key) for step in plan.steps} == set()
        added = [one for one in all_findings(mended) if (one.code, one.key) not in places(report)]
        assert [one for one in added if one.severity >= Severity.WARNING and not uncovered(one, plan)] == []
        fresh = {(one.code, one.key) for one in added} | {(skip.code, skip.key) for skip in plan.skipped}
        report = mended
    for receipt in reversed(receipts):
        undo(home_of(path), receipt, UndoOptions())
    assert digest(path) == before
    assert places(seen(path)) | FOR_GOOD == places(damaged) | FOR_GOOD


def home_with(kind: str, folder: Path) -> Path:
    """A copy of a healthy file in a folder that is a home with a cache of images."""
    (folder / "cache" / "images").mkdir(parents=True, exist_ok=True)
    return copy_of(kind, folder).path


def uncovered(finding: Finding, plan: Plan) -> bool:
    """Whether a step that is known to bring such a finding to light changed one of the sessions it speaks of."""
    named = {*finding.session_ids, finding.key, *map(str, finding.evidence.values())}
    return any(
        step.code in UNCOVERED.get(finding.code, ()) and named.intersection(step.session_ids)
        for step in plan.steps
    )


def answers(report: DatabaseReport, chosen: int) -> dict[str, str]:
    """One of the answers of each class that found something, drawn by a number."""
    known: dict[str, set[str]] = {}
    for finding in all_findings(report):
        known.setdefault(finding.slug, set()).update(remedy.answer for remedy in finding.remedies)
    return {
        slug: sorted(some)[zlib.crc32(f"{chosen} {slug}".encode()) % len(some)]
        for slug, some in known.items()
        if some
    }


def places(report: DatabaseReport) -> set[Place]:
    """Code and key of every finding."""
    return {(finding.code, finding.key) for finding in all_findings(report)}


def seen(path: Path) -> DatabaseReport:
    """A scan with every class, each of which looked."""
    report = look(path, select=(), limit=None)
    assert blind(report) == {}
    return report


@pytest.mark.parametrize("kind", ["0.13.0", "0.20.4.1"])
def test_each_stroke_is_found_as_what_it_is(kind: str, tmp_path: Path) -> None:
    names = strokes_of(facts(copy_of(kind, tmp_path / "healthy")))
    healthy = places(seen(home_with(kind, tmp_path / "home")))
    missed = []
    for name in names:
        if code := STROKES[name].code:
            path = home_with(kind, tmp_path / "struck")
            strike(path, [(name, (7, 11, 1))])
            if code not in {found for found, _key in places(seen(path)) - healthy}:
                missed.append(name)
    assert missed == []
