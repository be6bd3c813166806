"""Receipts are listed in the order in which they were made."""

from __future__ import annotations

from pathlib import Path

import pytest

from hermes_dbtools import apply_plan, make_fixture, make_plan, receipts, scan
from hermes_dbtools.apply import ApplyOptions
from hermes_dbtools.home import resolve
from hermes_dbtools.scanning import ScanOptions
from hermes_dbtools.undoing import choose_receipt

SECOND = 1_900_000_000.0
SLUGS = ("session-counter-drift", "missing-parent-session")


@pytest.mark.parametrize("order", [SLUGS, SLUGS[::-1]], ids=" ".join)
def test_of_two_repairs_of_one_second_the_later_is_undone_first(
    tmp_path: Path, order: tuple[str, ...]
) -> None:
    home = resolve(make_fixture(tmp_path / "state.db", damage=order))
    made = []
    for number, slug in enumerate(order):
        report = scan([home.database], ScanOptions(select=(slug,))).databases[0]
        options = ApplyOptions(backup=False, now=SECOND + number / 10)
        made.append(apply_plan(home, make_plan(report), options).id)
    assert made[0].partition("-")[0] == made[1].partition("-")[0]
    assert [receipt.id for receipt in receipts.read_all(home)] == made
    assert choose_receipt(home, None).id == made[1]
