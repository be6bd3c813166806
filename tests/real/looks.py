"""Run the tool on a store's file as an operator does, or in this process, and read what it said."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hermes_dbtools import dbhash
from hermes_dbtools.home import Home, resolve
from hermes_dbtools.model import DatabaseReport, Finding, Severity, Status
from hermes_dbtools.scanning import ScanOptions, scan
from tests.real.damages import Row
from tests.running import tool_here

CORE = (
    *("HDB001", "HDB002", "HDB003", "HDB201", "HDB202", "HDB203", "HDB204", "HDB205", "HDB206"),
    *("HDB301", "HDB404", "HDB501", "HDB701", "HDB805"),
)
"""The classes that the harms belong to. What every other class says of a damaged file is a matter of its own cases."""
AS_CORE = tuple(word for code in CORE for word in ("--select", code))
"""The same for a command."""
APART = ("HDB315",)
"""Chats that an upgrade hid: true of files that are healthy as their store sees it."""


@dataclass(frozen=True)
class Ran:
    """How a command ended."""

    code: int
    out: str
    err: str

    def document(self) -> Any:
        """What it wrote, as JSON."""
        return json.loads(self.out)


def run(*words: str | Path) -> Ran:
    """Run `hermes-dbtools` in this process, which is another than that of the store."""
    done = tool_here(*words)
    return Ran(done.code, done.out, done.err)


def look(path: Path, **options: Any) -> DatabaseReport:
    """Scan a file in this process, by default for the core classes; as a whole it must have been looked at."""
    (report,) = scan((path,), ScanOptions(**{"select": CORE, **options})).databases
    assert report.error == ""
    return report


def all_findings(report: DatabaseReport) -> list[Finding]:
    """Every finding of a scan, in its order."""
    return [finding for result in report.results for finding in result.findings]


def blind(report: DatabaseReport) -> dict[str, str]:
    """Checks that could not look, with the reason."""
    return {r.code: r.reason for r in report.results if r.status is Status.COULD_NOT_LOOK}


def wrong(report: DatabaseReport) -> tuple[Row, ...]:
    """Every finding at warning or above, in the order of the scan."""
    return tuple(
        (finding.code, finding.key, finding.severity.word)
        for finding in all_findings(report)
        if finding.severity >= Severity.WARNING
    )


def notes(report: DatabaseReport) -> set[tuple[str, str, str]]:
    """Code, kind and key of every note."""
    return {
        (finding.code, finding.kind, finding.key)
        for finding in all_findings(report)
        if finding.severity is Severity.NOTE
    }


def home_of(path: Path) -> Home:
    """The home a file stands in."""
    return resolve(path)


def digest(path: Path) -> str:
    """A digest of every canonical row of the file."""
    return dbhash.of_home(home_of(path))
