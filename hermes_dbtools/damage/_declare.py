"""How a damage class is declared and what it may see; holds no class of its own and runs no repair."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal, Protocol

import apsw

from .. import guard, queries
from ..database import FileState
from ..home import Home
from ..model import (
    SELECTED,
    Extent,
    Finding,
    LiveSession,
    Remedy,
    Safety,
    SearchWork,
    Severity,
    Statement,
    Step,
    Value,
)
from ..search_survey import Survey
from ..shape import Shape
from ..structure import Gate
from ..sweep import Sweep
from ..utf8 import text as text  # what classes select, they decode

HEADINGS = ("What it means", "Why it happens", "Repair", "Safety")

DAY = 86_400.0
"""Seconds of a day."""

LATEST = 4_200_000_000.0
"""Epoch seconds, in 2103, that upstream's readers take for the end of all times."""

IDLE_SECONDS = 30 * DAY
"""How long an open session may lie unused before it counts as never ended, unless the operator says otherwise."""

Stage = Literal["file", "structure", "rows"]


class NotApplicable(Exception):
    """Raised by a find whose question makes no sense for this file; the text says why."""


class NeedsDeep(Exception):
    """Raised at the end of a find that saw nothing and could look only at the surface.

    The rest is asked with `--deep`, or where the class is selected by its own name.
    """


@dataclass(frozen=True, slots=True)
class ScanContext:
    """Everything a damage class may look at. `now` is epoch seconds, `idle` seconds.

    `trust_indexes` is false inside `apply`: a stale index can hide rows, so the variants without one are used there.
    """

    connection: apsw.Connection
    shape: Shape
    home: Home | None
    file: FileState
    gate: Gate
    now: float
    deep: bool = False
    trust_indexes: bool = True
    live: Mapping[Value, LiveSession] = field(default_factory=dict)
    sweep: Sweep = field(default_factory=Sweep)
    search: Survey = field(default_factory=Survey)
    idle: float = IDLE_SECONDS

    def has(self, need: str) -> bool:
        """Whether the file has this object and it may be relied on."""
        if need.startswith("index:") and not self.trust_indexes:
            return False
        return self.shape.has(need)

    def ask_guard(self) -> guard.LiveSessions:
        """The sessions that nothing may touch, asked now; `live` is what was asked before."""
        held = self.file.holders.held
        return guard.live_sessions(self.connection, self.shape, home=self.home, now=self.now, held=held)

    def rows(
        self,
        path: str,
        block: str,
        bindings: Mapping[str, Value] | None = None,
        names: Mapping[str, str | Iterable[str]] | None = None,
    ) -> Iterator[tuple[Value, ...]]:
        """Rows of the first variant of this block that fits the file; none where no variant fits.

        `names` are identifiers of the file for the places of a template block.
        """
        query = queries.choose(path, block, self.has)
        if query is not None:
            sql = queries.fill(query.sql, **names) if names else query.sql
            yield from self.connection.execute(sql, dict(bindings or {}))


class Planner(Protocol):
    """What steps may belong to: a damage class, or an operation on sessions. It finds again what the steps are for."""

    @property
    def code(self) -> str:
        """By which steps name it."""

    @property
    def slug(self) -> str:
        """Its name in messages."""

    @property
    def sql(self) -> str:
        """Its SQL file, as `queries.load` takes it."""

    @property
    def find(self) -> Callable[[ScanContext], Iterable[Finding]]:
        """What there is to do, now."""

    def rows(
        self,
        context: ScanContext,
        block: str,
        bindings: Mapping[str, Value] | None = None,
        names: Mapping[str, str | Iterable[str]] | None = None,
    ) -> Iterator[tuple[Value, ...]]:
        """Rows of one of its own blocks."""


Planners = Mapping[str, Planner]
"""Planners by their code."""


@dataclass(frozen=True, slots=True)
class Damage:
    """One kind of damage: its code for ever, what it is called, how it is found and which answers it has.

    `answers` are the choices with the default first; `("report",)` alone means that nothing is ever planned.
    `noun` names one and several findings; `sums` are evidence fields added up over all of them, with their unit.
    `needs` are the objects without which the class does not apply; `reads` the tables whose structure it relies on.
    A finding is left to a class of `cedes_to` that reports the same row. A `deep` class costs much: it looks only with
    `--deep`, or where it is selected by its own name. `extent` says what its deletes take away.
    """

    code: str
    slug: str
    family: str
    severity: Severity
    safety: Safety
    answers: tuple[str, ...]
    needs: tuple[str, ...]
    reads: tuple[str, ...]
    cedes_to: tuple[str, ...]
    stage: Stage
    noun: tuple[str, str]
    sums: tuple[tuple[str, str], ...]
    title: str
    sections: Mapping[str, str]
    find: Callable[[ScanContext], Iterable[Finding]]
    deep: bool = False
    extent: Extent = "rows"

    @property
    def path(self) -> str:
        """Where its SQL and its runbook lie, without the folder's name and the ending."""
        return f"{self.family}/{self.slug.replace('-', '_')}"

    @property
    def sql(self) -> str:
        """Its SQL file, as `queries.load` takes it."""
        return f"damage/{self.path}"

    def rows(
        self,
        context: ScanContext,
        block: str,
        bindings: Mapping[str, Value] | None = None,
        names: Mapping[str, str | Iterable[str]] | None = None,
    ) -> Iterator[tuple[Value, ...]]:
        """Rows of one of the class's own blocks."""
        return context.rows(self.sql, block, bindings, names)

    def finding(
        self,
        *,
        table: str,
        key: Value,
        message: str,
        evidence: Mapping[str, object],
        severity: Severity | None = None,
        kind: str = "",
        session_ids: tuple[Value, ...] = (),
        remedies: tuple[Remedy, ...] = (),
    ) -> Finding:
        """A finding of this class; the next command is the runbook, of a `deep` class the repair that looks at it."""
        return Finding(
            code=self.code,
            slug=self.slug,
            severity=self.severity if severity is None else severity,
            table=table,
            key=printable(key),
            message=message,
            evidence=evidence,
            session_ids=session_ids,
            kind=kind,
            remedies=remedies,
            next=f"{SELECTED} {self.slug}" if self.deep else f"hermes-dbtools runbook {self.slug}",
        )

    def step(
        self,
        *,
        key: Value,
        answer: str,
        title: str,
        statements: tuple[Statement, ...],
        session_ids: tuple[Value, ...],
        bytes_freed: int = 0,
        search: tuple[SearchWork, ...] = (),
    ) -> Step:
        """A step of this class that runs blocks of its own SQL file, or does work on search indexes."""
        return Step(
            self.code, self.slug, printable(key), answer, title, session_ids, statements, (), bytes_freed,
            (), search,
        )  # fmt: skip


def declare(
    module: str,
    doc: str | None,
    *,
    code: str,
    severity: Severity,
    safety: Safety,
    find: Callable[[ScanContext], Iterable[Finding]],
    answers: tuple[str, ...] = ("report",),
    needs: tuple[str, ...] = (),
    reads: tuple[str, ...] = (),
    cedes_to: tuple[str, ...] = (),
    stage: Stage = "rows",
    noun: tuple[str, str] = ("finding", "findings"),
    sums: tuple[tuple[str, str], ...] = (),
    deep: bool = False,
    extent: Extent = "rows",
) -> Damage:
    """Make the class of a module: family and slug from its place, title and sections from its docstring.

    Raises ValueError when the docstring lacks a heading.
    """
    family, stem = module.split(".")[-2:]
    title, sections = _sections(module, doc or "")
    return Damage(
        code, stem.replace("_", "-"), family, severity, safety, answers, needs, reads, cedes_to, stage, noun,
        sums, title, sections, find, deep, extent,
    )  # fmt: skip


def printable(value: Value) -> str:
    """A key as text: the id itself, or `hex:…` where it is not UTF-8 or not text."""
    if isinstance(value, bytes):
        return f"hex:{value.hex()}"
    return str(value)


def whole(value: object) -> int:
    """A count or sum from SQL as int; 0 where there is none."""
    return int(value) if isinstance(value, int | float) and math.isfinite(value) else 0


def finite(value: Value) -> float | None:
    """A number as it is; None where it is none, or endless."""
    return float(value) if isinstance(value, int | float) and math.isfinite(value) else None


def moment(value: Value) -> float | None:
    """A time in epoch seconds; None where it is not a number that can be one."""
    at = finite(value)
    return at if at is not None and 0 < at < LATEST else None


def _sections(module: str, doc: str) -> tuple[str, dict[str, str]]:
    title, _, rest = doc.strip().partition("\n")
    parts = re.split(r"^(" + "|".join(HEADINGS) + r")\n-+$", rest, flags=re.MULTILINE)
    sections = {name: body.strip() for name, body in zip(parts[1::2], parts[2::2], strict=True)}
    if tuple(sections) != HEADINGS or not title or not all(sections.values()):
        raise ValueError(
            f"{module}: the docstring needs a title and the headings {', '.join(HEADINGS)}, in this order"
        )
    return title.strip().rstrip("."), sections
