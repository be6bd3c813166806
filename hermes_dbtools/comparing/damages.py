"""Say which damage a store has that an earlier state of it did not have; never judges what a comparison found."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from ..damage import REGISTRY
from ..home import Home
from ..model import DatabaseReport, Result, Severity, Status
from ..scanning import LOOK_ERRORS, ScanOptions, scan_home
from ..selection import selected
from .model import NewDamage, Word

LIMIT = 10_000
"""Findings kept per class to be told apart by key; above it only their counts are compared."""

NAMED = 1_000


@dataclass(frozen=True, slots=True)
class Damages:
    """What is new, and what could not be looked at, in words."""

    new: tuple[NewDamage, ...]
    blind: tuple[str, ...]


def new_damage(before: Path, after: Home, now: float, progress: Callable[[str], None]) -> Damages:
    """Scan after, then before for what was found. Both are looked at as the database of the same home.

    A copy lies somewhere else than the files its rows name, so in a home of its own it would lack them all. Classes that look at
    how and where a file lies are left out: that is not what changed. `now` is epoch seconds, the same for both: what only grew
    older is not new.
    """
    report, error = _scan(after, (), now, lambda word: progress(f"after: {word}"))
    if report is None:
        return Damages((), (f"damage after: {error}",))
    blind = [
        f"{result.code} {result.slug} after: {result.reason}"
        for result in report.results
        if result.status is Status.COULD_NOT_LOOK
    ]
    found = [result for result in report.results if result.status is Status.DAMAGED]
    if not found:
        return Damages((), tuple(blind))
    then = Home(after.root, before, after.profile)
    codes = tuple(result.code for result in found)
    earlier, error = _scan(then, codes, now, lambda word: progress(f"before: {word}"))
    if earlier is None:
        return Damages((), (*blind, f"damage before: {error}"))
    known = {result.code: result for result in earlier.results}
    new = [change for result in found if (change := _change(known.get(result.code), result)).new]
    blind += [f"{change.code} {change.slug} before: {change.unknown}" for change in new if change.unknown]
    return Damages(tuple(new), tuple(blind))


def _scan(
    home: Home, codes: tuple[str, ...], now: float, progress: Callable[[str], None]
) -> tuple[DatabaseReport | None, str]:
    place = tuple(damage.code for damage in REGISTRY if damage.stage == "file")
    options = ScanOptions(select=codes, ignore=place, limit=LIMIT, now=now)
    chosen = selected(options.registry, options.select, options.ignore)
    try:
        report = scan_home(home, options, chosen, progress)
    except LOOK_ERRORS as error:
        return None, str(error)
    return (None, report.error) if report.error else (report, "")


def _change(before: Result | None, after: Result) -> NewDamage:
    word: Word = after.severity.word  # type: ignore[assignment]  # the words of Severity are these
    if before is None or before.status in (Status.COULD_NOT_LOOK, Status.SKIPPED):
        reason = before.reason if before is not None else "it was not looked at"
        return NewDamage(after.code, after.slug, word, after.count, 0, unknown=reason)
    if before.truncated or after.truncated:
        more = max(0, after.count - before.count)
        return NewDamage(after.code, after.slug, word, more, before.count)
    old = {(finding.table, finding.key, finding.kind) for finding in before.findings}
    new = [f for f in after.findings if (f.table, f.key, f.kind) not in old]
    worst = max((finding.severity for finding in new), default=Severity.NOTE)
    return NewDamage(
        after.code,
        after.slug,
        worst.word,  # type: ignore[arg-type]
        len(new),
        before.count,
        tuple(f"{finding.table} {finding.key}" for finding in new[:NAMED]),
    )
