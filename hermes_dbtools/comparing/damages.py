"""Say which damage a store has that an earlier state of it did not have; never judges what a comparison found."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from .. import parallel
from ..damage import REGISTRY
from ..damage._declare import Damage
from ..home import Home
from ..model import DatabaseReport, Result, Severity, Status
from ..scanning import ScanOptions, report_of
from ..selection import selected
from .model import NewDamage, Word

LIMIT = 10_000
"""Findings kept per class to be told apart by key; above it only their counts are compared."""

STRUCTURE = "structural-damage"

LARGE = 64 * 1024 * 1024
"""Bytes. A scan of smaller files takes less time than to start a process."""

NAMED = 1_000


@dataclass(frozen=True, slots=True)
class Damages:
    """What is new, and what could not be looked at, in words.

    `damaged` names the tables with damaged pages and in which file; None where that is not known.
    """

    new: tuple[NewDamage, ...]
    blind: tuple[str, ...]
    damaged: Mapping[str, str] | None = None


@dataclass(frozen=True, slots=True)
class Looking:
    """A look that has begun. `structure`: its answer names damaged tables too, so nobody else need look for them."""

    structure: bool
    answer: Callable[[Callable[[str], None]], Damages]


@contextmanager
def looking(before: Path, after: Home, now: float) -> Iterator[Looking]:
    """Begin to look for damage that is new, in processes of their own where that is quicker.

    Both files are looked at as the database of the same home. A copy lies somewhere else than the files its rows name, so in a
    home of its own it would lack them all. Classes that look at how and where a file lies are left out: that is not what changed.
    `now` is epoch seconds, the same for both: what only grew older is not new.
    """
    options = ScanOptions(limit=LIMIT, now=now)
    homes = (Home(after.root, before, after.profile), after)
    if _cores() < 2 or min(home.database.stat().st_size for home in homes) < LARGE:
        yield Looking(structure=False, answer=lambda progress: _in_turn(homes, options, progress))
        return
    with parallel.scans(homes) as scans:
        scans.begin(1, _only(options, lambda _damage: True))
        # The longest way is rows and then this one: on two cores the other one is done by then.
        scans.begin(0, _only(options, _cheap), patient=True)
        yield Looking(structure=True, answer=lambda progress: _awaited(scans, options, progress))


def _awaited(scans: parallel.Scans, options: ScanOptions, progress: Callable[[str], None]) -> Damages:
    progress("damage after")
    later = scans.report(1)
    found = _found(later)
    progress("damage before")
    earlier = [scans.report(0)]
    if any(damage.code in found and not _cheap(damage) for damage in REGISTRY):
        scans.begin(0, _only(options, lambda damage: damage.code in found and not _cheap(damage)))
        earlier.append(scans.report(0))
    damaged = None
    if not later.error and not earlier[0].error:
        damaged = {**dict.fromkeys(_tables(earlier[0]), "before"), **dict.fromkeys(_tables(later), "after")}
    return replace(_new(later, earlier), damaged=damaged)


def _tables(report: DatabaseReport) -> frozenset[str]:
    """Tables with damaged pages."""
    return frozenset(
        finding.table
        for result in report.results
        if result.slug == STRUCTURE
        for finding in result.findings
        if finding.kind != "index"
    )


def _in_turn(homes: tuple[Home, Home], options: ScanOptions, progress: Callable[[str], None]) -> Damages:
    """Scan after, then before for what was found."""
    later = _report(homes[1], _only(options, lambda _damage: True), lambda word: progress(f"after: {word}"))
    found = _found(later)
    if not found:
        return _new(later, ())
    only = _only(options, lambda damage: damage.code in found)
    return _new(later, [_report(homes[0], only, lambda word: progress(f"before: {word}"))])


def _only(options: ScanOptions, wanted: Callable[[Damage], bool]) -> ScanOptions:
    """The others are ignored: to select a class by its name would be to ask for a deeper look."""
    others = (damage.code for damage in REGISTRY if damage.stage == "file" or not wanted(damage))
    return replace(options, ignore=tuple(others))


def _cheap(damage: Damage) -> bool:
    """Whether it is worth a look at before while it is not known whether after has it: a search index is as large as the rest."""
    return damage.family != "search"


def _cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _report(home: Home, options: ScanOptions, progress: Callable[[str], None]) -> DatabaseReport:
    return report_of(home, options, selected(options.registry, options.select, options.ignore), progress)


def _damaged(report: DatabaseReport) -> tuple[Result, ...]:
    return tuple(result for result in report.results if result.status is Status.DAMAGED)


def _found(report: DatabaseReport) -> frozenset[str]:
    return frozenset(result.code for result in _damaged(report))


def _new(later: DatabaseReport, earlier: Sequence[DatabaseReport]) -> Damages:
    """What the later report has and the earlier ones have not, which is nothing where there are none."""
    if later.error:
        return Damages((), (f"damage after: {later.error}",))
    blind = [
        f"{result.code} {result.slug} after: {result.reason}"
        for result in later.results
        if result.status is Status.COULD_NOT_LOOK
    ]
    if not earlier:
        return Damages((), tuple(blind))
    for report in earlier:
        if report.error:
            return Damages((), (*blind, f"damage before: {report.error}"))
    known = {
        result.code: result
        for report in earlier
        for result in report.results
        if result.status is not Status.SKIPPED
    }
    new = [change for result in _damaged(later) if (change := _change(known.get(result.code), result)).new]
    blind += [f"{change.code} {change.slug} before: {change.unknown}" for change in new if change.unknown]
    return Damages(tuple(new), tuple(blind))


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
