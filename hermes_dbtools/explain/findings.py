"""Run the damage classes that a question is about and keep what concerns it; never writes.

Each class looks at the whole file; all its findings are counted, and only those that concern the question are kept, so
memory does not grow with what is wrong elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from ..damage import REGISTRY
from ..damage._declare import Damage, ScanContext
from ..home import Home
from ..model import CouldNotLook, DatabaseReport, Finding, Severity, Status
from ..plan import FIRST
from ..scanning import NEEDS_DEEP, ScanOptions, scan
from .document import About, Relation, Total

WHOLE_FILE = frozenset((*FIRST, "HDB805", "HDB502"))
"""Classes whose findings concern every session."""

EVERY_WRITE = frozenset(
    (
        "dangling-triggers",
        "missing-columns",
        "wrong-primary-key",
        "search-index-damage",
        "search-shadow-leftovers",
    )
)
"""Classes whose errors make the writes of every session fail, or may."""

EXAMPLES = 5
"""Findings about other sessions that are kept of each class, where the question is about the file too."""

Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Question:
    """What findings are asked for: about `own` sessions, their `family`, and with `everyone` about all others too."""

    own: Collection[str]
    family: Collection[str] = ()
    everyone: bool = False
    select: tuple[str, ...] = ()


@dataclass(slots=True)
class Answer:
    """The report with the kept findings alone, what each is about, and how many there are of each class in all."""

    report: DatabaseReport
    about: list[About] = field(default_factory=list)
    concerned: dict[str, list[About]] = field(default_factory=dict)
    totals: list[Total] = field(default_factory=list)
    blind: list[str] = field(default_factory=list)

    @property
    def broken_file(self) -> bool:
        """Whether the file itself is damaged, so that everything else may only follow from it."""
        return any(one.code in FIRST for one in self.about)


def look(home: Home, question: Question, now: float, progress: Progress) -> Answer:
    """Scan for a question. Raises CouldNotLook where nothing of the file can be looked at."""
    counts: dict[str, int] = {}
    options = ScanOptions(
        select=question.select,
        limit=None,
        fail_on=None,
        now=now,
        registry=tuple(_watched(damage, question, counts) for damage in REGISTRY),
    )
    (report,) = scan((str(home.database),), options, progress).databases
    if report.error:
        raise CouldNotLook(report.error)
    answer = Answer(report)
    severities: dict[str, Severity] = {}
    for result in report.results:
        if result.status is Status.COULD_NOT_LOOK and result.reason != NEEDS_DEEP:
            answer.blind.append(f"{result.slug}: {result.reason}")
        for finding in result.findings:
            about = _about(finding, question)
            answer.about.append(about)
            severities[finding.slug] = max(finding.severity, severities.get(finding.slug, Severity.NOTE))
            for one in _sessions(finding, question.own):
                answer.concerned.setdefault(one, []).append(about)
    for result in report.results:
        if result.slug in severities:
            word = severities[result.slug].word
            answer.totals.append(Total(result.code, result.slug, word, counts[result.slug]))  # type: ignore[arg-type]
    return answer


def _watched(damage: Damage, question: Question, counts: dict[str, int]) -> Damage:
    """The class, with a find that counts everything and yields what is asked for."""

    def find(context: ScanContext) -> Iterator[Finding]:
        others = 0
        counts[damage.slug] = 0
        for finding in damage.find(context):
            counts[damage.slug] += 1
            if _relation(finding, question) is not None:
                yield finding
            elif question.everyone and others < EXAMPLES:
                others += 1
                yield finding

    return replace(damage, find=find)


def _about(finding: Finding, question: Question) -> About:
    return About(
        finding.code,
        finding.slug,
        finding.severity.word,  # type: ignore[arg-type]
        finding.table,
        finding.key,
        finding.message,
        _relation(finding, question) or "file",
    )


def _relation(finding: Finding, question: Question) -> Relation | None:
    every = finding.severity is Severity.ERROR and finding.slug in EVERY_WRITE
    if every or finding.code in WHOLE_FILE or finding.kind == "key-mismatch":
        return "file"
    if any(True for _ in _sessions(finding, question.own)):
        return "own"
    return "lineage" if any(True for _ in _sessions(finding, question.family)) else None


def _sessions(finding: Finding, ids: Collection[str]) -> Iterator[str]:
    """Those of some ids that a finding names as its key, as a session of its repair, or as a fact."""
    named = {finding.key, *(one for one in finding.session_ids if isinstance(one, str))}
    named.update(_words(finding.evidence.values()))
    return (one for one in ids if one in named)


def _words(values: Iterable[object]) -> Iterator[str]:
    """The texts among some facts, also within lists and tables of them."""
    for value in values:
        if isinstance(value, str):
            yield value
        elif isinstance(value, Mapping):
            yield from _words([*value.keys(), *value.values()])
        elif isinstance(value, list | tuple | set | frozenset):
            yield from _words(value)
