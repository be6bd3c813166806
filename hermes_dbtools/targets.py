"""Which databases a command is about, from its arguments; opens none."""

from __future__ import annotations

from . import home as homes
from .model import UsageError

Target = str | None


def scan_targets(databases: tuple[str, ...], home: str | None, *, all_profiles: bool) -> tuple[Target, ...]:
    """The databases to scan: those named, else the home's, with `all_profiles` every profile of each home."""
    if databases and home is not None:
        raise UsageError("name databases or --home, not both")
    named: tuple[Target, ...] = databases or (home,)
    if not all_profiles:
        return named
    return tuple(
        str(profile.database) for target in named for profile in homes.profiles(homes.resolve(target).root)
    )


def one_target(database: str | None, home: str | None) -> homes.Home:
    """The one database of a command. Raises UsageError when both DB and --home are given."""
    if database is not None and home is not None:
        raise UsageError("name DB or --home, not both")
    return homes.resolve(database if database is not None else home)
