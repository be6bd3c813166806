"""Salvage as the command line calls it: finds the file that a path means, and decides nothing else."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from .. import home as homes
from .facts import Salvaged
from .salvaging import salvage


def salvage_target(source: str, output: str, progress: Callable[[str], None]) -> Salvaged:
    """Salvage the database of a path or home into a new file. Raises CouldNotLook, Refused and UsageError."""
    return salvage(homes.resolve(source).database, Path(output).absolute(), progress)
