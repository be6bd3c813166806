"""Render the reports of many hosts as one table; computes nothing."""

from __future__ import annotations

from collections.abc import Iterator

from ..columns import columns
from ..merging import Merged, MergedDatabase, MergedResult
from ..shown import one_line
from ..sizes import counted

HEADERS = ("host", "database", "severity", "code", "damage", "found")
WORST_FIRST = ("error", "warning", "note")

Row = tuple[str, str, str, str, str, str]


def merged_text(merged: Merged) -> str:
    """A line for each class that found something or could not look, one for a database without; the sums last."""
    rows = [
        row
        for host, report in merged.hosts
        for database in report.databases
        for row in _rows(one_line(host), database)
    ]
    return f"{columns(rows, HEADERS)}\n\n{_sums(merged)}\n"


def _rows(host: str, database: MergedDatabase) -> Iterator[Row]:
    path = one_line(database.path)
    if database.error:
        yield host, path, "could not look", "", "", one_line(database.error)
        return
    told = sorted((r for r in database.results if r.status == "damaged"), key=_order)
    told += [r for r in database.results if r.status == "could-not-look"]
    for result in told:
        yield host, path, _severity(result), result.code, result.slug, one_line(result.found or result.reason)
    if not told:
        yield host, path, "nothing found", "", "", ""


def _order(result: MergedResult) -> tuple[bool, int, str]:
    return (not result.counts, WORST_FIRST.index(result.severity), result.code)


def _severity(result: MergedResult) -> str:
    if result.status == "could-not-look":
        return "could not look"
    return result.severity if result.counts else "accepted"


def _sums(merged: Merged) -> str:
    summary = merged.document.summary
    databases = sum(len(report.databases) for _host, report in merged.hosts)
    parts = [
        counted(count, word)
        for count, word in ((len({host for host, _report in merged.hosts}), "host"), (databases, "database"))
    ]
    found = [
        counted(count, word)
        for count, word in ((summary.errors, "error"), (summary.warnings, "warning"), (summary.notes, "note"))
        if count
    ]
    parts.append(", ".join(found) or "nothing found")
    if summary.accepted:
        parts.append(f"{counted(summary.accepted, 'finding')} accepted")
    if summary.could_not_look:
        parts.append(f"could not look {counted(summary.could_not_look, 'time')}")
    return " · ".join(parts)
