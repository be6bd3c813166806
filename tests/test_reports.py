"""Each public report of damage has a case or a test, or a named reason why it leaves no trace; each known trap has one."""

from __future__ import annotations

import ast
import tomllib
from functools import cache
from pathlib import Path
from typing import Any

import pytest

TESTS = Path(__file__).parent


def table(name: str) -> dict[str, dict[str, Any]]:
    return tomllib.loads((TESTS / name).read_text("utf-8"))


REPORTS = table("reports.toml")
TRAPS = table("traps.toml")

COUNTED = {
    "A": 23, "B": 26, "C": 21, "D": 24, "E": 15, "F": 7, "G": 11,
    "H": 16, "I": 8, "J": 9, "K": 4, "L": 4, "M": 8, "N": 4,
}  # fmt: skip
"""The highest number of each subject."""
TAKEN_INTO_OTHERS = {
    "A7", "A10", "B10", "B12", "B17", "C7", "C13", "D17", "E5", "G9", "I3", "K3", "M5", "M6",
}  # fmt: skip
"""Numbers that told of the same as another."""
KNOWN_TRAPS = 16
"""How many ways to make things worse were told of."""


def test_every_report_and_every_trap_is_in_its_table() -> None:
    numbered = {f"{subject}{number}" for subject, last in COUNTED.items() for number in range(1, last + 1)}
    assert set(REPORTS) == numbered - TAKEN_INTO_OTHERS
    assert len(TRAPS) == KNOWN_TRAPS


@pytest.mark.parametrize("report", REPORTS)
def test_a_report_has_cases_or_a_reason_and_its_cases_exist(report: str) -> None:
    told = REPORTS[report]
    assert told["what"]
    assert set(told) in ({"what", "cases"}, {"what", "none"})
    assert told.get("cases", told.get("none"))
    assert [case for case in told.get("cases", ()) if not exists(case)] == []


@pytest.mark.parametrize("trap", TRAPS)
def test_a_trap_has_cases_and_they_exist(trap: str) -> None:
    told = TRAPS[trap]
    assert set(told) == {"what", "cases"}
    assert told["what"]
    assert told["cases"]
    assert [case for case in told["cases"] if not exists(case)] == []


def test_a_name_that_nothing_has_does_not_exist() -> None:
    assert not exists("storage/structural_damage: a page of nothing")
    assert not exists("storage/nothing: a page of a table")
    assert not exists("tests/test_reports.py::test_nothing")
    assert not exists("tests/test_nothing.py::test_reports")
    assert not exists("tests/test_reports.py::exists")


def exists(case: str) -> bool:
    """Whether the file of a case has one of that name, or the file of a test such a test."""
    if "::" in case:
        file, name = case.split("::", 1)
        return name in functions_of(TESTS.parent / file)
    file, name = case.split(": ", 1)
    return name in cases_of(TESTS / "cases" / f"{file}.toml")


@cache
def cases_of(path: Path) -> set[str]:
    return (
        {one["name"] for one in tomllib.loads(path.read_text("utf-8"))["case"]} if path.is_file() else set()
    )


@cache
def functions_of(path: Path) -> set[str]:
    """The tests that pytest collects of a file."""
    if not path.is_file():
        return set()
    body = ast.parse(path.read_text("utf-8")).body
    return {one.name for one in body if isinstance(one, ast.FunctionDef) and one.name.startswith("test_")}
