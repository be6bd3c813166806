"""Render the scan of one or several files as text for a person; computes nothing and opens nothing.

The first line says what the file is, the last lines say what to do next. Ids are shortened, counts never.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import PurePath

from ..columns import columns
from ..model import (
    BaselineEntry,
    BaselineUse,
    DatabaseReport,
    Report,
    Result,
    Status,
)
from ..plan import FIRST
from ..shown import one_line
from ..sizes import answers_text, counted, short
from .next_steps import holders_text, scan_next
from .outcomes import accepted_text, file_text, found_text, summary
from .search import search_lines

ACCEPTED = "accepted"
MEANINGS = 5
"""Findings about the file itself that are told without --verbose."""

TROUBLE = ("broken", "stale", "leftover")
"""Verdicts on a search index for which the table of indexes is shown."""


def scan_text(report: Report, *, verbose: bool = False, timings: bool = False) -> str:
    """The report of a scan; `verbose` lists every kept finding, `timings` adds seconds per class."""
    several = len(report.databases) > 1
    parts = [_database(d, verbose=verbose, timings=timings, several=several) for d in report.databases]
    return "\n".join([*parts, *_baseline(report.baseline)])


def _baseline(use: BaselineUse | None) -> list[str]:
    """What the baseline does not cover any more; nothing where it covers what it says."""
    if use is None:
        return []
    file = one_line(use.file)
    lines = [f"{file}: {_entry(entry)} expired on {entry.expires} and counts again" for entry in use.expired]
    lines += [f"{file}: {_entry(entry)} is not there any more" for entry in use.unused]
    return ["\n".join(lines) + "\n"] if lines else []


def _headline(database: DatabaseReport, *, several: bool = False) -> str:
    """What the file is, in one line; one of `several` is named by its whole path."""
    name = one_line(database.path if several else PurePath(database.path).name)
    parts = [name, file_text(database)]
    if database.holders:
        parts.append(f"held by {holders_text(database)}")
    if database.uninspected_processes:
        count = database.uninspected_processes
        parts.append(f"{counted(count, 'process', 'processes')} of other users not inspected")
    return " · ".join(parts)


def _database(database: DatabaseReport, *, verbose: bool, timings: bool, several: bool) -> str:
    if database.error:
        return f"could not look: {one_line(database.error)}\n"
    lines = [_headline(database, several=several), ""]
    damaged = sorted(
        (result for result in database.results if result.status is Status.DAMAGED),
        key=lambda result: (not result.counts, -result.severity, result.code),
    )
    if damaged:
        rows = [
            [
                r.severity.word if r.counts else ACCEPTED,
                r.code,
                r.slug,
                found_text(r),
                answers_text(r.answers),
            ]
            for r in damaged
        ]
        headers = ["severity", "code", "damage", "found", "repair"]
        lines += [columns(rows, headers, indent="  "), ""]
    lines += _findings(damaged) if verbose else _meanings(damaged)
    if verbose or any(state.verdict in TROUBLE for state in database.search):
        lines += search_lines(database.search)
    if timings:
        lines += _timings(database)
    lines.append(summary(database.results))
    if live := len(database.live):
        lines.append(
            f"{live} live {'session is' if live == 1 else 'sessions are'} left alone by every repair"
        )
    lines += scan_next(database, [result for result in damaged if result.counts])
    return "\n".join(lines) + "\n"


def _meanings(damaged: Iterable[Result]) -> list[str]:
    """What damage of the file means for its rows: of a table that is damaged itself its indexes say nothing more."""
    found = [finding for result in damaged if result.code in FIRST for finding in result.findings]
    tables = {finding.table for finding in found if finding.evidence.get("canonical")}
    told = [f for f in found if f.evidence.get("canonical") or f.table not in tables]
    lines = [one_line(f"  {finding.message}") for finding in told[:MEANINGS]]
    if len(told) > MEANINGS:
        lines.append(f"  … and {len(told) - MEANINGS:,} more: --verbose")
    return [*lines, ""] if lines else []


def _findings(damaged: Iterable[Result]) -> list[str]:
    lines: list[str] = []
    for result in damaged:
        lines += [
            one_line(f"  {f.severity.word:8}{f.code}  {f.table} {f.key}: {f.message}{accepted_text(f)}")
            for f in result.findings
        ]
        if result.truncated:
            lines.append(f"          … and {result.count - len(result.findings):,} more of {result.slug}")
    return [*lines, ""] if lines else []


def _entry(entry: BaselineEntry) -> str:
    return one_line(f"{entry.code} {entry.table} {short(entry.key)} of {entry.database}")


def _timings(database: DatabaseReport) -> list[str]:
    rows = [["structure", f"{database.gate_seconds:.4f}"]]
    rows += [[result.slug, f"{result.seconds:.4f}"] for result in database.results if result.seconds]
    return [columns(rows, ["check", "seconds"], indent="  "), ""]
