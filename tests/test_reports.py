"""Each public report of damage to rows is rebuilt by a case, or leaves no trace in rows for a reason that is named."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest

TESTS = Path(__file__).parent
REPORTS: dict[str, dict[str, Any]] = tomllib.loads((TESTS / "reports.toml").read_text("utf-8"))

COUNTED = {"A": 23, "B": 26, "E": 15, "F": 7, "G": 11, "H": 16, "I": 8, "K": 4, "L": 4, "N": 4}
"""The highest number of each subject."""
TAKEN_INTO_OTHERS = {"A7", "A10", "B10", "B12", "B17", "E5", "G9", "I3", "K3"}
"""Numbers that told of the same as another."""
BESIDE = {"D18", "D24"}
"""Reports of damaged files that left damaged rows."""


def test_every_report_is_in_the_table() -> None:
    numbered = {f"{subject}{number}" for subject, last in COUNTED.items() for number in range(1, last + 1)}
    assert set(REPORTS) == (numbered - TAKEN_INTO_OTHERS) | BESIDE


@pytest.mark.parametrize("report", REPORTS)
def test_a_report_has_cases_or_a_reason_and_its_cases_exist(report: str) -> None:
    told = REPORTS[report]
    assert told["what"]
    assert set(told) in ({"what", "cases"}, {"what", "none"})
    assert told.get("cases", told.get("none"))
    assert [case for case in told.get("cases", ()) if not exists(case)] == []


def exists(case: str) -> bool:
    """Whether the file of a case has one of that name."""
    file, name = case.split(": ", 1)
    path = TESTS / "cases" / f"{file}.toml"
    return path.is_file() and name in {one["name"] for one in tomllib.loads(path.read_text("utf-8"))["case"]}
