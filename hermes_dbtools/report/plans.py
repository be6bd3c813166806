"""Render a plan of a repair, its rehearsal and what it left as text for a person; computes nothing and opens nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby

from ..columns import columns
from ..model import (
    DatabaseReport,
    Plan,
    Result,
    Severity,
    Status,
    Step,
)
from ..plan import totals
from ..shown import one_line, shell_word
from ..sizes import counted, short, size_text
from . import schema_words
from .outcomes import blind_text, outcomes, summary
from .search import works_text


def plan_text(
    plan: Plan, database: DatabaseReport, *, seconds: float, verbose: bool = False, dry: bool = True
) -> str:
    """The plan of a repair: steps by class, what is skipped and why. `dry`: it was not asked to be applied."""
    lines = [
        f"dry run: nothing is written. {counted(len(plan.steps), 'step')} in one transaction, "
        f"about {max(seconds, 0.1):.1f} s under the write lock"
        if plan.steps
        else "dry run: nothing is written, and nothing would be: the plan has no steps"
        if dry
        else "nothing was changed: the plan has no steps"
    ]
    results = {result.slug: result for result in database.results}
    rows = []
    for (slug, answer), steps in groupby(plan.steps, key=lambda step: (step.slug, step.answer)):
        group = list(steps)
        title = one_line(group[0].title) if len(group) == 1 else f"{answer} {_those_of(results[slug], group)}"
        rows.append([slug, title, _rows_text(group)])
    if rows:
        lines += [
            "",
            columns(rows, ["damage", "step", "rows"], indent="  "),
        ]
        lines += ["", _totals_text(plan)]
    if verbose:
        lines += ["", *(one_line(f"  {step.code} {step.key}: {step.title}") for step in plan.steps)]
    lines += _skipped_lines(plan, verbose=verbose)
    if blind := blind_text(outcomes(database.results)):
        lines += ["", f"nothing is known of {blind}"]
    return "\n".join(lines) + "\n"


def rehearsal_text(changed: Mapping[str, int]) -> str:
    """What a rehearsal on a private copy changed there."""
    lines = ["rehearsed on a private copy and rolled back: nothing was written"]
    lines += [f"  {table}: {counted(rows, 'row')} would change" for table, rows in changed.items()]
    return "\n".join(lines) + "\n"


def leftover_text(database: DatabaseReport, plan: Plan) -> str:
    """What is still there after a repair: what the plan skipped, and what is found now and was not skipped."""
    lines = [f"after: {summary(database.results)}"]
    lines += _skipped_lines(plan, verbose=False)[1:]
    named = {item.slug for item in plan.skipped} | {item.slug for item in plan.skipped_active}
    lines += [
        f"left: {result.slug} ({result.found}): hermes-dbtools repair {shell_word(database.path)}"
        for result in database.results
        if result.status is Status.DAMAGED
        and result.severity >= Severity.WARNING
        and result.slug not in named
    ]
    return "\n".join(lines) + "\n"


def _those_of(result: Result, steps: Sequence[Step]) -> str:
    """What several steps are about: all that was found, with its rows and bytes, or a number of it."""
    those = result.found if len(steps) == result.count else f"{len(steps):,} {result.noun[1]}"
    return those + _warning(steps)


def _warning(steps: Sequence[Step]) -> str:
    """The words in brackets that end the title of each of these steps, or ''."""
    endings = {step.title.rpartition(" (")[2] for step in steps if step.title.endswith(")")}
    alike = len(endings) == 1 and all(step.title.endswith(")") for step in steps)
    return f" ({one_line(endings.pop())}" if alike else ""


def _rows_text(steps: Sequence[Step]) -> str:
    signs = {"insert": "+", "update": "~", "delete": "-"}
    sums: dict[tuple[str, str], int] = {}
    for step in steps:
        for statement in step.statements:
            if statement.of_schema:
                continue
            place = (statement.operation, statement.table)
            sums[place] = sums.get(place, 0) + statement.expect
    parts = [*schema_words.objects_text(steps), *works_text(steps)]
    parts += [f"{signs[operation]}{rows:,} {table}" for (operation, table), rows in sums.items()]
    if files := sum(len(step.files) for step in steps):
        parts.append(f"+{counted(files, 'file')} put back")
    if files := sum(len(step.trash) for step in steps):
        parts.append(f"{counted(files, 'file')} moved away")
    return " ".join(parts)


def _totals_text(plan: Plan) -> str:
    sums = totals(plan)
    parts = [
        f"{counted(sums['sessions_added'], 'session')} added" if sums["sessions_added"] else "",
        f"{counted(sums['rows_changed'], 'row')} changed" if sums["rows_changed"] else "",
        f"{counted(sums['rows_removed'], 'row')} removed, {size_text(sums['bytes_freed'])}"
        if sums["rows_removed"]
        else "",
        " ".join(schema_words.objects_text(plan.steps)),
        " · ".join(works_text(plan.steps)),
        _files_text(plan.steps),
    ]
    return "in all: " + " · ".join(part for part in parts if part)


def _files_text(steps: Sequence[Step]) -> str:
    back = sum(len(step.files) for step in steps)
    away = [file for step in steps for file in step.trash]
    parts = [f"{counted(back, 'file')} put back" if back else ""]
    parts += [
        f"{counted(len(away), 'file')} moved away, {size_text(sum(file.size for file in away))}"
        if away
        else ""
    ]
    return " · ".join(part for part in parts if part)


def _skipped_lines(plan: Plan, *, verbose: bool) -> list[str]:
    lines = []
    groups: dict[tuple[str, str], list[str]] = {}
    for skipped in plan.skipped:
        groups.setdefault((skipped.slug, skipped.reason), []).append(skipped.key)
    for (slug, reason), keys in groups.items():
        lines.append(f"skipped: {slug} {len(keys):,} ({one_line(reason)})")
        lines += [f"  {one_line(short(key))}" for key in keys] if verbose else []
    active: dict[str, set[str]] = {}
    for item in plan.skipped_active:
        active.setdefault(item.reason, set()).add(str(item.session_id))
    for reason, sessions in active.items():
        lines.append(
            f"skipped, active: {len(sessions):,} session{'s' if len(sessions) > 1 else ''} ({one_line(reason)})"
        )
    return ["", *lines] if lines else []
