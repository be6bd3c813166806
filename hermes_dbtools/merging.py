"""Put the reports of many hosts together; opens no database and judges nothing anew.

A report may be of a newer release: what this one does not know is carried along unread.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Literal

import msgspec

from .model import ShapeSummary, UsageError
from .report_document import Severity, SummaryDocument, ToolDocument


class MergedResult(msgspec.Struct, frozen=True):
    """Of a result, what a line about it needs."""

    code: str
    slug: str
    family: str
    severity: Severity
    status: str
    reason: str
    count: int
    found: str
    accepted: int = 0

    @property
    def counts(self) -> bool:
        """Whether it found something that no baseline accepts."""
        return self.status == "damaged" and self.count > self.accepted


class MergedDatabase(msgspec.Struct, frozen=True):
    """Of a database, what a line about it needs."""

    path: str
    size: int
    journal_mode: str
    shape: ShapeSummary | None
    error: str
    results: list[MergedResult]


class HostReport(msgspec.Struct, frozen=True):
    """Of a report, what a line about it needs."""

    format: Literal["hermes-dbtools/report"]
    format_version: Literal[1]
    tool: ToolDocument
    databases: list[MergedDatabase]
    summary: SummaryDocument
    exit_code: int
    host: str = ""


class HostDocument(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The report of one host as it was made; `host` is the name it carries, else the name of its file."""

    host: str
    file: str
    report: dict[str, Any]


class MergedDocument(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Reports of many hosts, in the order of the hosts' names; sums over all of them."""

    format: Literal["hermes-dbtools/merged-report"]
    format_version: Literal[1]
    hosts: list[HostDocument]
    summary: SummaryDocument
    exit_code: int


class Merged(msgspec.Struct, frozen=True):
    """What a renderer of merged reports reads: hosts with their reports, in order, and the document itself.

    `notes` say which reports were given twice and which databases are told of more than once.
    """

    hosts: tuple[tuple[str, HostReport], ...]
    document: MergedDocument
    notes: tuple[str, ...] = ()


def merge(files: Iterable[str]) -> Merged:
    """The reports of these files; what is the same report of a host is one. Raises UsageError for a file that is no report."""
    given = sorted((_read(file) for file in files), key=lambda one: (one[0].host, one[0].file))
    read: list[tuple[HostDocument, HostReport]] = []
    notes = []
    for host, report in given:
        again = next((one for one, _ in read if (one.host, one.report) == (host.host, host.report)), None)
        if again is None:
            notes += [f"{host.file}: {told}" for told in _told_before(read, host, report)]
            read.append((host, report))
        else:
            notes.append(f"{host.file}: the report of {host.host} that {again.file} is; it counts once")
    reports = [report for _host, report in read]
    document = MergedDocument(
        "hermes-dbtools/merged-report",
        1,
        [host for host, _report in read],
        SummaryDocument(
            errors=sum(report.summary.errors for report in reports),
            warnings=sum(report.summary.warnings for report in reports),
            notes=sum(report.summary.notes for report in reports),
            could_not_look=sum(report.summary.could_not_look for report in reports),
            accepted=sum(report.summary.accepted for report in reports),
        ),
        _exit_code([report.exit_code for report in reports]),
    )
    return Merged(tuple((host.host, report) for host, report in read), document, tuple(notes))


def _told_before(
    read: Iterable[tuple[HostDocument, HostReport]], host: HostDocument, report: HostReport
) -> Iterator[str]:
    """The databases of a report that another report of the same host tells of, too."""
    before = {one.path: of.file for of, other in read if of.host == host.host for one in other.databases}
    for one in report.databases:
        if one.path in before:
            yield f"{one.path} of {host.host} is in {before[one.path]} too; both count"


def _read(file: str) -> tuple[HostDocument, HostReport]:
    try:
        content = Path(file).read_bytes()
    except (OSError, ValueError) as error:
        raise UsageError(f"{file}: {getattr(error, 'strerror', None) or error}") from None
    try:
        whole = msgspec.json.decode(content)
        report = msgspec.convert(whole, type=HostReport)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise UsageError(f"{file}: not a report of scan --format json: {error}") from None
    return HostDocument(report.host or Path(file).stem, file, whole), report


def _exit_code(codes: Iterable[int]) -> int:
    """Findings before what could not be looked at, as for the databases of one scan."""
    found = set(codes)
    return 1 if 1 in found else 3 if found - {0} else 0
