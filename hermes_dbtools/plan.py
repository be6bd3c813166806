"""Turn findings into an ordered plan; never sees a database.

An answer is taken per finding: the one that `--choose` names for its class, else the finding's own default. Everything
that is left alone is listed with the reason.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

import msgspec

from .model import (
    TO_SALVAGE,
    DatabaseReport,
    Extent,
    Finding,
    LiveSession,
    Plan,
    Remedy,
    Safety,
    Skipped,
    SkippedActive,
    Status,
    Step,
    Value,
)

DEFAULT_MAX_ROWS = 10_000
"""Rows that a plan may remove unless `--max-rows` says otherwise; nor, by default, more than half of all messages."""

FIRST = ("HDB001", "HDB002", "HDB003")
"""Classes of the whole file: while one of them is found, nothing else is planned."""


@dataclass(frozen=True, slots=True)
class PlanOptions:
    """What the operator allows: answers by slug, data loss, and rows removed (None: the default limit).

    `idle` is that of the scan the findings come from, None for the default.
    """

    choices: Mapping[str, str] = field(default_factory=dict)
    allow_lossy: bool = False
    max_rows: int | None = None
    idle: float | None = None


def make_plan(report: DatabaseReport, options: PlanOptions | None = None) -> Plan:
    """The steps that mend what `report` found, in the order of the registry, and all that is skipped.

    Pure: equal inputs give equal plans.
    """
    options = options or PlanOptions()
    live = _live_or_all(report)
    refusal = _whole_file_refusal(report)
    tokenizer = any(r.code == "HDB805" and r.status is Status.DAMAGED for r in report.results)
    steps: list[Step] = []
    skipped: list[Skipped] = []
    active: list[SkippedActive] = []
    for result in report.results:
        if result.status is not Status.DAMAGED:
            continue
        for finding in result.findings:
            remedy = _remedy(finding, options.choices.get(finding.slug))
            if remedy is None or remedy.step is None:
                skipped.append(_skip(finding, (refusal or remedy.refused or "") if remedy else ""))
            elif reason := remedy.refused or refusal or _unwritable(remedy.step, tokenizer):
                skipped.append(_skip(finding, reason))
            elif remedy.safety is Safety.LOSSY and not options.allow_lossy:
                skipped.append(_skip(finding, f"{remedy.answer} drops data: --allow-lossy"))
            elif guarded := _live((*finding.session_ids, *remedy.step.session_ids), live):
                active.append(_skip_active(finding, guarded))
            else:
                steps.append(remedy.step)
    steps, gone = _without_removed(steps, {result.code: result.extent for result in report.results})
    steps, over = _within(steps, options, report.message_total)
    return Plan(
        database=report.path,
        fingerprint=fingerprint(steps),
        steps=tuple(steps),
        skipped=(*skipped, *gone, *over),
        skipped_active=tuple(active),
        choices=dict(options.choices),
        allow_lossy=options.allow_lossy,
        max_rows=DEFAULT_MAX_ROWS if options.max_rows is None else options.max_rows,
        idle=options.idle,
    )


def mending_answers(report: DatabaseReport, slug: str) -> Iterator[tuple[str, bool]]:
    """The answers to a class that mend something of it where they are chosen, and whether each drops data."""
    (result,) = (one for one in report.results if one.slug == slug)
    for answer in result.answers:
        for lossy in (False, True):
            plan = make_plan(report, PlanOptions(choices={slug: answer}, allow_lossy=lossy))
            if any(step.slug == slug for step in plan.steps):
                yield answer, lossy
                break


def fingerprint(steps: Iterable[Step]) -> str:
    """A digest of everything the steps would do, in order."""
    # Not JSON: it has one word for the bytes and the text of an id, and none for an infinite number.
    encoded = msgspec.msgpack.encode(tuple(steps), order="deterministic")
    return hashlib.sha256(encoded).hexdigest()


def rows_removed(step: Step, table: str = "") -> int:
    """How many rows, of one table or of all, the statements of a step remove; cascades come on top."""
    return sum(
        statement.expect
        for statement in step.statements
        if statement.operation == "delete" and table in ("", statement.table)
    )


def totals(plan: Plan) -> dict[str, int]:
    """What the plan adds up to: sessions added, rows changed and removed, files put back or away, bytes freed."""
    statements = [statement for step in plan.steps for statement in step.statements]
    return {
        "sessions_added": sum(
            s.expect for s in statements if (s.operation, s.table) == ("insert", "sessions")
        ),
        "rows_changed": sum(s.expect for s in statements if s.operation == "update"),
        "rows_removed": sum(s.expect for s in statements if s.operation == "delete"),
        "files_moved": sum(len(step.files) + len(step.trash) for step in plan.steps),
        "bytes_freed": sum(step.bytes_freed for step in plan.steps),
    }


def _remedy(finding: Finding, answer: str | None) -> Remedy | None:
    """The chosen remedy, else the finding's own default. A chosen answer that a finding lacks changes nothing of it."""
    default = finding.remedies[0] if finding.remedies else None
    if answer is None or default is None:
        return default
    chosen = next((remedy for remedy in finding.remedies if remedy.answer == answer), None)
    if chosen is not None or default.step is None:
        return chosen or default
    return Remedy(
        answer, Safety.MANUAL, refused=f"it has no answer {answer}: its default is {default.answer}"
    )


def _skip(finding: Finding, reason: str) -> Skipped:
    if not reason:
        answers = [
            remedy.answer for remedy in finding.remedies if remedy.step is not None and not remedy.refused
        ]
        if answers:
            reason = f"choose: --choose {finding.slug}={'|'.join(answers)}"
        else:
            reason = f"by hand: hermes-dbtools runbook {finding.slug}"
    return Skipped(finding.code, finding.slug, finding.key, reason)


def _live_or_all(report: DatabaseReport) -> Callable[[Value], LiveSession | None]:
    live = {session.session_id: session for session in report.live}
    if report.all_live:
        return lambda session_id: live.get(session_id) or LiveSession(session_id, report.all_live)
    return live.get


def _live(sessions: Iterable[Value], live: Callable[[Value], LiveSession | None]) -> LiveSession | None:
    return next((found for session in sessions if (found := live(session)) is not None), None)


def _skip_active(finding: Finding, session: LiveSession) -> SkippedActive:
    return SkippedActive(finding.code, finding.slug, finding.key, session.session_id, session.reason)


def _whole_file_refusal(report: DatabaseReport) -> str:
    if report.shape is not None and not report.shape.known:
        return "the file is newer than this tool knows: report only"
    for result in report.results:
        if result.status is Status.DAMAGED and result.code in FIRST:
            return f"{result.slug} ({result.code}) comes first: no row of this file may be changed"
        if any(finding.next == TO_SALVAGE for finding in result.findings):
            return f"{result.slug} ({result.code}) cannot be mended in this file: salvage comes first"
    return ""


def _unwritable(step: Step, tokenizer_missing: bool) -> str:
    if tokenizer_missing and any(s.table == "messages" and not s.of_schema for s in step.statements):
        return "a search index cannot be written by this engine (HDB805): every change of messages would fail"
    return ""


def _within(steps: list[Step], options: PlanOptions, messages: int) -> tuple[list[Step], list[Skipped]]:
    limit = DEFAULT_MAX_ROWS if options.max_rows is None else options.max_rows
    removed = sum(rows_removed(step) for step in steps)
    of_messages = sum(rows_removed(step, "messages") for step in steps)
    too_large_a_share = options.max_rows is None and of_messages > messages // 2
    if removed <= limit and not too_large_a_share:
        return steps, []
    if too_large_a_share:
        limit = min(limit, messages // 2)
    reason = (
        f"the plan would remove {removed:,} rows of a file with {messages:,} messages; "
        f"the limit is {limit:,}: --max-rows {removed}"
    )
    kept = [step for step in steps if not rows_removed(step)]
    return kept, [Skipped(s.code, s.slug, s.key, reason) for s in steps if rows_removed(s)]


def _without_removed(steps: list[Step], extents: Mapping[str, Extent]) -> tuple[list[Step], list[Skipped]]:
    """The steps but for those on a session or a row that an earlier step removes: they would find nothing to change."""
    removed: dict[tuple[str, Value], str] = {}
    kept: list[Step] = []
    skipped: list[Skipped] = []
    for step in steps:
        tables = {statement.table for statement in step.statements if statement.operation == "update"}
        if extents[step.code] == "apart":
            tables.discard("state_meta")
        session = next(
            (removed[key] for one in step.session_ids if (key := ("sessions", one)) in removed), None
        )
        row = next(
            (removed[t, s] for t in sorted(tables) for s in step.session_ids if (t, s) in removed), None
        )
        if session is not None or row is not None:
            what = "its session" if session is not None else "its row"
            skipped.append(Skipped(step.code, step.slug, step.key, f"{session or row} removes {what}"))
            continue
        kept.append(step)
        for statement in step.statements:
            if statement.operation == "delete" and (
                statement.table == "sessions" or extents[step.code] == "session"
            ):
                removed |= {(statement.table, one): step.slug for one in step.session_ids}
    return kept, skipped
