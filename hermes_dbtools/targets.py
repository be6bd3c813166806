"""Which databases a command is about, from its arguments; opens none."""

from __future__ import annotations

import os
from pathlib import Path

from . import home as homes
from .model import CouldNotLook, UsageError

Target = str | None


def scan_targets(databases: tuple[str, ...], home: str | None, *, all_profiles: bool) -> tuple[Target, ...]:
    """The databases to scan: those named, else the home's, with `all_profiles` every profile of each home too.

    Raises UsageError when databases and a home are named, CouldNotLook when the profiles cannot be listed.
    """
    if databases and home is not None:
        raise UsageError("name databases or --home, not both")
    named: tuple[Target, ...] = databases or (home,)
    if not all_profiles:
        return named
    return tuple(dict.fromkeys(found for target in named for found in _with_profiles(target)))


def one_target(database: str | None, home: str | None, *, missing_ok: bool = False) -> homes.Home:
    """The one database of a command; `missing_ok` where it may have to be made anew.

    Raises UsageError when both DB and --home are given.
    """
    if database is not None and home is not None:
        raise UsageError("name DB or --home, not both")
    return homes.resolve(database if database is not None else home, missing_ok=missing_ok)


def _with_profiles(target: Target) -> tuple[Target, ...]:
    """A target that is no home stays as it is, for the scan to say what is wrong with it, if anything is."""
    if target == "":
        return (target,)
    root = homes.default_home() if target is None else Path(target)
    if os.path.isdir(root):  # noqa: PTH112 - Path.is_dir raises where a folder may not be searched
        return tuple(os.fspath(profile.database) for profile in homes.profiles(root)) or (target,)
    try:
        home = homes.resolve(target)
    except CouldNotLook:
        return (target,)
    return tuple(os.fspath(profile.database) for profile in (home, *homes.other_profiles(home)))
