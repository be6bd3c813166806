"""Count what the damage classes said, in words; every format that has a closing line takes it from here."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ..model import DatabaseReport, Finding, Result
from ..report_document import DatabaseDocument, FindingDocument, ResultDocument
from ..shown import one_line
from ..sizes import counted, search_text, size_text


class Outcome(NamedTuple):
    """What one class said. `counts`: it found something that no baseline accepts."""

    code: str
    severity: str
    status: str
    reason: str
    counts: bool
    accepted: int


def outcomes(results: Iterable[Result | ResultDocument]) -> list[Outcome]:
    """The outcome of each result, of a scan or of a document."""
    return [
        Outcome(
            r.code,
            r.severity if isinstance(r, ResultDocument) else r.severity.word,
            str(r.status),
            r.reason,
            r.counts,
            r.accepted,
        )
        for r in results
    ]


def summary(results: Iterable[Result | ResultDocument]) -> str:
    """One line: how many classes found something, by severity, and what became of the others."""
    found = outcomes(results)
    parts = []
    for severity in ("error", "warning", "note"):
        if count := sum(one.counts and one.severity == severity for one in found):
            parts.append(counted(count, severity))
    counts = [", ".join(parts) or "nothing found"]
    if accepted := sum(one.accepted for one in found):
        counts = [
            *([counts[0]] if parts else []),
            f"{counted(accepted, 'finding')} accepted",
        ]
    for status, word in (("clean", "clean"), ("not-applicable", "not applicable")):
        if count := sum(one.status == status for one in found):
            counts.append(f"{count} {word}")
    skipped = Counter(one.reason for one in found if one.status == "skipped")
    counts.extend(f"{count} {reason}" for reason, count in sorted(skipped.items(), reverse=True))
    if blind := blind_text(found):
        counts.append(f"could not look at {blind}")
    return " · ".join(counts)


def blind_text(found: Sequence[Outcome]) -> str:
    """The classes that could not look, and why, or ''."""
    blind = [one for one in found if one.status == "could-not-look"]
    if not blind:
        return ""
    reasons = list(dict.fromkeys(one_line(one.reason) for one in blind))
    who = ", ".join(one.code for one in blind[:4]) + (", …" if len(blind) > 4 else "")
    more = "; …" if len(reasons) > 2 else ""
    return f"{len(blind)} ({who}: {'; '.join(reasons[:2])}{more})"


def file_text(database: DatabaseReport | DatabaseDocument) -> str:
    """What the file is, without its name."""
    parts = [size_text(database.size)]
    if database.shape is not None:
        number = database.shape.schema_version
        known = "" if database.shape.known else " (newer than known: report only)"
        parts.append(
            f"schema {'unknown' if number is None else number}, {search_text(database.shape.search_layout)}{known}"
        )
        parts.append("WAL" if database.journal_mode == "wal" else "rollback journal")
    return " · ".join(parts)


def found_text(result: Result | ResultDocument) -> str:
    """What was found, and how much of it is accepted."""
    partly = 0 < result.accepted < result.count
    return result.found + (f" · {result.accepted:,} of them accepted" if partly else "")


def finding_text(finding: FindingDocument) -> str:
    """Where a finding is and what it is, in one line."""
    place = " ".join(word for word in (finding.table, finding.key) if word)
    return one_line(f"{place}: {finding.message}{accepted_text(finding)}")


def accepted_text(finding: Finding | FindingDocument) -> str:
    """That a finding is accepted, and why, or ''."""
    if finding.accepted is None:
        return ""
    return f" (accepted: {finding.accepted.reason})" if finding.accepted.reason else " (accepted)"
