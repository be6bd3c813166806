"""The home that each runbook is written for: a fixture with its damage, and what a maker alone cannot do to it."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import apsw

from hermes_dbtools import make_fixture
from hermes_dbtools.model import UsageError
from tests.runbook_outputs import Place

OLD = 1_785_000_000.0
"""Epoch seconds of every file of a home: older than a day, whenever the test runs."""

SHAPES = ("22", "runtime", "media")
"""In this order: the first one that can have the damage."""

Also = Callable[[Place], None]


@dataclass(frozen=True, slots=True)
class Example:
    """A home to make; without `damage` two findings of the runbook's class, without `shape` the first that can have it.

    `sql` runs with foreign keys off, then `also`.
    """

    damage: tuple[str, ...] = ()
    shape: str = ""
    sql: str = ""
    also: Also | None = None


EXAMPLES: Mapping[str, Example] = {}
"""By the path of the runbook, where two findings of its class are not what it is about."""


def furnish(place: Place, path: str) -> None:
    """Make the home of one runbook, `path` as it lies under runbooks/ without its ending."""
    example = EXAMPLES.get(path, Example())
    damage = example.damage or (f"{path.rpartition('/')[2].replace('_', '-')}=2",)
    _make(place, (example.shape,) if example.shape else SHAPES, damage)
    if example.sql:
        connection = apsw.Connection(str(place.folder / "state.db"))
        connection.execute("PRAGMA foreign_keys = OFF")
        connection.execute(example.sql)
        connection.close()
    if example.also is not None:
        example.also(place)
    for file in place.folder.rglob("*"):
        if file.is_file() and not file.is_symlink():
            os.utime(file, (OLD, OLD))


def _make(place: Place, shapes: Sequence[str], damage: Sequence[str]) -> None:
    for shape in shapes:
        try:
            make_fixture(place.folder, shape=shape, damage=damage, home=True)
            return
        except UsageError:
            if shape == shapes[-1]:
                raise
