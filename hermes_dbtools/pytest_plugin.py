"""For the tests of other programs: fixture stores, and an assertion that a store is healthy; off unless used.

pytest loads this module at its start where the package is installed, so it imports nothing that takes time and adds no
option, no hook and no marker: a run that uses neither of the two is as it was.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Literal, Protocol

import pytest

NAME = "state.db"

FailOn = Literal["error", "warning", "note"]


class HermesStore(Protocol):
    """What the fixture `hermes_store` gives: a function that makes a store and returns its path."""

    def __call__(
        self,
        shape: str = "22",
        damage: Mapping[str, int] | Sequence[str] = (),
        *,
        name: str = NAME,
        seed: int = 0,
        sessions: int = 0,
        messages: int = 4,
        home: bool = False,
    ) -> Path:
        """Make a store of this shape with this damage in the test's `tmp_path`; see `hermes_dbtools.make_fixture`.

        With `home`, `name` is that of a folder, and the path is that of the `state.db` in it. Without a name, the first is
        called so and each further one by a number more.
        """


def _free(place: Path) -> Path:
    """The place itself, or the first of state-2.db, state-3.db … that nothing has."""
    tried, number = place, 1
    while tried.exists():
        number += 1
        tried = place.with_stem(f"{place.stem}-{number}")
    return tried


@pytest.fixture
def hermes_store(tmp_path: Path) -> HermesStore:
    """A function that makes a fixture store of a known shape, with chosen damage, in `tmp_path`."""

    def make(
        shape: str = "22",
        damage: Mapping[str, int] | Sequence[str] = (),
        *,
        name: str = NAME,
        seed: int = 0,
        sessions: int = 0,
        messages: int = 4,
        home: bool = False,
    ) -> Path:
        from .fixtures.api import make_fixture

        place = tmp_path / name if name != NAME else _free(tmp_path / ("home" if home else NAME))
        return make_fixture(
            place, shape=shape, damage=damage, seed=seed, sessions=sessions, messages=messages, home=home
        )

    return make


def assert_healthy_store(
    path: str | PathLike[str],
    *,
    ignore: Sequence[str] = (),
    fail_on: FailOn = "warning",
    deep: bool = False,
) -> None:
    """Fail the test when the store at `path` (a `state.db` or a home) has damage; the failure reads as `scan` prints it.

    `ignore` are slugs, codes or families; `fail_on` is the lowest severity that fails. A check that could not look
    fails, too: nothing is known then. Raises AssertionError, and `model.UsageError` for a word that nothing has.
    """
    __tracebackhide__ = True
    from .model import Severity, UsageError
    from .report import scans
    from .scanning import ScanOptions, scan

    if fail_on.upper() not in Severity.__members__:
        raise UsageError(f"fail_on is error, warning or note, not {fail_on!r}")
    options = ScanOptions(ignore=tuple(ignore), deep=deep, fail_on=Severity[fail_on.upper()])
    report = scan((Path(path),), options)
    if report.exit_code:
        raise AssertionError(f"the store is not healthy\n\n{scans.scan_text(report, verbose=True)}")
