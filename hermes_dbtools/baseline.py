"""Read and write baselines, and hold a report against one: what is known is accepted and does not count; opens no database.

An entry accepts the finding of its identity until the day it expires. An expired entry accepts nothing; only its author, by
editing the file, makes it last longer.
"""

from __future__ import annotations

import datetime
import os
import tomllib
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import msgspec

from .identity import Identity, relative_name
from .model import (
    Accepted,
    BaselineEntry,
    BaselineUse,
    DatabaseReport,
    Finding,
    Report,
    Result,
    Severity,
    Status,
    UsageError,
)

LIMIT = 1000
"""Findings kept per class once all of them were held against the baseline; those that count come first."""

HEAD = """\
# Findings that are known: `hermes-dbtools scan --baseline` shows them as accepted and does not count them.
# `reason` and `expires` (the last day, UTC) are yours to write; --update-baseline keeps both.
"""


class BaselineDocument(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A baseline as it is saved, in TOML or JSON."""

    format: Literal["hermes-dbtools/baseline"]
    format_version: Literal[1]
    accepted: list[BaselineEntry] = []


@dataclass(frozen=True, slots=True)
class Baseline:
    """The entries of one file. Names of databases are relative to its folder."""

    file: str
    entries: tuple[BaselineEntry, ...] = ()

    @property
    def folder(self) -> str:
        """Where the names of databases start from."""
        return os.path.dirname(os.path.abspath(self.file))  # noqa: PTH100, PTH120 - links stay as written

    def identity(self, database: DatabaseReport, finding: Finding) -> Identity:
        """The identity by which an entry names a finding of this database."""
        name = relative_name(database.path, self.folder)
        return Identity(name, finding.code, finding.table, finding.key, finding.kind)


def load(file: str, codes: Collection[str], *, may_be_missing: bool = False) -> Baseline:
    """The baseline of a file; `codes` are the damage classes there are. Raises UsageError for anything that is none."""
    try:
        content = Path(file).read_bytes()
    except FileNotFoundError:
        if may_be_missing:
            return Baseline(file)
        raise UsageError(f"{file}: no such file; --update-baseline makes one") from None
    except (OSError, ValueError) as error:
        raise UsageError(f"{file}: {getattr(error, 'strerror', None) or error}") from None
    try:
        document = msgspec.convert(_parsed(file, content), type=BaselineDocument)
    except (
        ValueError,
        RecursionError,
    ) as error:  # of text that is not UTF-8, of TOML, of JSON and of our types
        raise UsageError(f"{file}: not a baseline: {error}") from None
    _check(file, document.accepted, codes)
    return Baseline(file, tuple(document.accepted))


def encode(baseline: Baseline) -> bytes:
    """The content of the file: TOML, or JSON where its name ends so; the same entries make the same bytes."""
    document = BaselineDocument("hermes-dbtools/baseline", 1, list(baseline.entries))
    if _is_json(baseline.file):
        return msgspec.json.format(msgspec.json.encode(document), indent=2) + b"\n"
    lines = [HEAD, f"format = {_toml(document.format)}", f"format_version = {document.format_version}"]
    for entry in baseline.entries:
        lines += ["", "[[accepted]]"]
        fields = msgspec.to_builtins(entry, builtin_types=(datetime.date,))
        lines += [f"{name} = {_toml(value)}" for name, value in fields.items()]
    return ("\n".join(lines) + "\n").encode()


def accept(report: Report, baseline: Baseline, today: datetime.date) -> Report:
    """The report with the findings that the baseline accepts marked and not counted; its exit code is the caller's to make.

    The report must hold every finding: one that is not kept cannot be accepted.
    """
    entries = {_identity(entry): entry for entry in baseline.entries}
    valid = {identity: entry for identity, entry in entries.items() if not _expired(entry, today)}
    databases = tuple(
        msgspec.structs.replace(
            database,
            results=tuple(_accepted(result, database, baseline, valid) for result in database.results),
        )
        for database in report.databases
    )
    found = set(_identities(report.databases, baseline))
    looked = _looked_at(report.databases, baseline)
    expired = [entry for identity, entry in entries.items() if identity in found and identity not in valid]
    given = {relative_name(database.path, baseline.folder) for database in report.databases}
    unused = [
        entry
        for entry in baseline.entries
        if _identity(entry) not in found and (_place(entry) in looked or _is_gone(entry, baseline, given))
    ]
    use = BaselineUse(baseline.file, tuple(expired), tuple(unused))
    return msgspec.structs.replace(report, databases=databases, baseline=use)


def updated(report: Report, baseline: Baseline, fail_on: Severity | None) -> Baseline:
    """The baseline that covers what a report found at or above `fail_on`; `report` must not be `accept`ed.

    Entries stay as they are, expired ones too, unless their class looked at their database and did not find them.
    """
    entries = {_identity(entry): entry for entry in baseline.entries}
    looked = _looked_at(report.databases, baseline)
    found = set(_identities(report.databases, baseline))
    kept = {
        identity: entry
        for identity, entry in entries.items()
        if identity in found or _place(entry) not in looked
    }
    for database in report.databases:
        for result in database.results:
            for finding in result.findings:
                if fail_on is not None and finding.severity >= fail_on:
                    identity = baseline.identity(database, finding)
                    kept.setdefault(identity, BaselineEntry(*identity))
    return Baseline(baseline.file, tuple(kept[identity] for identity in sorted(kept)))


def _accepted(
    result: Result, database: DatabaseReport, baseline: Baseline, valid: dict[Identity, BaselineEntry]
) -> Result:
    marked: list[Finding] = []
    for finding in result.findings:
        entry = valid.get(baseline.identity(database, finding))
        known = None if entry is None else Accepted(entry.reason, entry.expires)
        marked.append(msgspec.structs.replace(finding, accepted=known))
    counting = [finding for finding in marked if finding.accepted is None]
    if len(marked) > LIMIT:
        marked.sort(key=lambda finding: finding.accepted is not None)
    return msgspec.structs.replace(
        result,
        severity=max((finding.severity for finding in counting), default=result.severity),
        findings=tuple(marked[:LIMIT]),
        truncated=result.count > LIMIT,
        accepted=len(marked) - len(counting),
    )


def _identities(databases: Iterable[DatabaseReport], baseline: Baseline) -> Iterator[Identity]:
    for database in databases:
        for result in database.results:
            for finding in result.findings:
                yield baseline.identity(database, finding)


def _looked_at(databases: Iterable[DatabaseReport], baseline: Baseline) -> set[tuple[str, str]]:
    """Databases and classes of which this report says all there is."""
    return {
        (relative_name(database.path, baseline.folder), result.code)
        for database in databases
        for result in database.results
        if result.status in (Status.CLEAN, Status.DAMAGED) and not result.truncated
    }


def _identity(entry: BaselineEntry) -> Identity:
    return Identity(entry.database, entry.code, entry.table, entry.key, entry.kind)


def _is_gone(entry: BaselineEntry, baseline: Baseline, given: Collection[str]) -> bool:
    """Whether the database of an entry was moved or removed; one that was given is asked by the scan itself."""
    return entry.database not in given and not os.path.lexists(os.path.join(baseline.folder, entry.database))  # noqa: PTH118 - not normalised


def _place(entry: BaselineEntry) -> tuple[str, str]:
    return entry.database, entry.code


def _expired(entry: BaselineEntry, today: datetime.date) -> bool:
    return entry.expires is not None and entry.expires < today


def _is_json(file: str) -> bool:
    return file.lower().endswith(".json")


def _parsed(file: str, content: bytes) -> object:
    return msgspec.json.decode(content) if _is_json(file) else tomllib.loads(content.decode("utf-8"))


def _check(file: str, entries: Iterable[BaselineEntry], codes: Collection[str]) -> None:
    seen: dict[Identity, int] = {}
    for number, entry in enumerate(entries, 1):
        if entry.code not in codes:
            raise UsageError(f"{file}: entry {number}: no damage class has the code {entry.code!r}")
        first = seen.setdefault(_identity(entry), number)
        if first != number:
            raise UsageError(f"{file}: entry {number} names the same finding as entry {first}")


def _toml(value: str | datetime.date) -> str:
    """A value as TOML writes it: JSON's escapes are TOML's, but for DEL."""
    if isinstance(value, datetime.date):
        return value.isoformat()
    return msgspec.json.encode(value).decode().replace("\x7f", "\\u007f")
