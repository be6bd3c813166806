"""Render a report as metrics in the text format of Prometheus, for a textfile collector; computes nothing.

Every class that looked has a value, 0 where it found nothing that counts, so that an alert ends by itself. There are no
timestamps: the collector has the time of the file.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from ..report_document import DatabaseDocument, ReportDocument, ResultDocument
from .setting import Setting

Sample = tuple[Mapping[str, str], int]
Databases = Sequence[DatabaseDocument]

LOOKED = ("clean", "damaged")


def render(document: ReportDocument, setting: Setting) -> str:
    """All metrics, each with its HELP and TYPE."""
    del setting
    found = document.databases
    metrics: list[tuple[str, str, Iterable[Sample]]] = [
        ("info", "Versions of the tool that scanned.", _versions(document)),
        ("exit_code", "Exit code of the scan.", [({}, document.exit_code)]),
        ("database_looked_at", "Whether anything of the database could be looked at.", _looked_at(found)),
        ("database_size_bytes", "Size of the database file in bytes.", _sizes(found)),
        ("live_sessions", "Sessions that every repair leaves alone.", _live(found)),
        ("findings", "Findings of a damage class that no baseline accepts.", _findings(found)),
        ("findings_accepted", "Findings of a damage class that a baseline accepts.", _accepted(found)),
        ("could_not_look", "Whether a damage class could not look.", _blind(found)),
    ]
    if (use := document.baseline) is not None:
        metrics += [
            ("baseline_expired", "Entries of the baseline that count again.", [({}, len(use.expired))]),
            ("baseline_unused", "Entries whose finding is not there any more.", [({}, len(use.unused))]),
        ]
    return "".join(line for name, text, samples in metrics for line in _metric(name, text, samples))


def _versions(document: ReportDocument) -> Iterator[Sample]:
    tool = document.tool
    yield {"version": tool.version, "sqlite": tool.sqlite, "apsw": tool.apsw}, 1


def _looked_at(databases: Databases) -> Iterator[Sample]:
    for database in databases:
        yield {"database": database.path}, int(not database.error)


def _sizes(databases: Databases) -> Iterator[Sample]:
    for database in databases:
        if not database.error:
            yield {"database": database.path}, database.size


def _live(databases: Databases) -> Iterator[Sample]:
    for database in databases:
        if not database.error:
            yield {"database": database.path}, len(database.live_sessions)


def _findings(databases: Databases) -> Iterator[Sample]:
    for database, result in _results(databases):
        if result.status in LOOKED:
            labels = {**_labels(database, result), "severity": result.severity}
            yield labels, result.count - result.accepted


def _accepted(databases: Databases) -> Iterator[Sample]:
    for database, result in _results(databases):
        if result.accepted:
            yield _labels(database, result), result.accepted


def _blind(databases: Databases) -> Iterator[Sample]:
    for database, result in _results(databases):
        if result.status in (*LOOKED, "could-not-look"):
            yield _labels(database, result), int(result.status == "could-not-look")


def _results(databases: Databases) -> Iterator[tuple[DatabaseDocument, ResultDocument]]:
    return ((database, result) for database in databases for result in database.results)


def _labels(database: DatabaseDocument, result: ResultDocument) -> dict[str, str]:
    return {
        "database": database.path,
        "code": result.code,
        "damage": result.slug,
        "family": result.family,
    }


def _metric(name: str, text: str, samples: Iterable[Sample]) -> Iterator[str]:
    """The lines of one metric; a database that was named twice has one sample, for a second one makes the file invalid."""
    metric = f"hermes_dbtools_{name}"
    lines = dict.fromkeys(f"{metric}{_braced(labels)} {value}\n" for labels, value in samples)
    if lines:
        yield f"# HELP {metric} {text}\n# TYPE {metric} gauge\n"
        yield from lines


def _braced(labels: Mapping[str, str]) -> str:
    if not labels:
        return ""
    return "{" + ",".join(f'{name}="{_escaped(value)}"' for name, value in labels.items()) + "}"


def _escaped(value: str) -> str:
    return value.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")
