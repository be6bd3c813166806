"""Render scans, plans, receipts and undos as text for a person; computes nothing and opens nothing.

The first line says what the file is, the last lines say what to do next. Ids are shortened, counts never.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from pathlib import PurePath

from tabulate import tabulate

from ..model import (
    BaselineEntry,
    BaselineUse,
    DatabaseReport,
    Plan,
    Receipt,
    Report,
    Result,
    Severity,
    Status,
    Step,
)
from ..plan import FIRST, totals
from ..shown import one_line, shell_word
from ..sizes import answers_text, counted, moment_text, short, size_text
from . import schema_words
from .next_steps import holders_text, scan_next
from .outcomes import accepted_text, blind_text, file_text, found_text, outcomes, summary
from .search import search_lines, works_text

PLAIN = "plain"
ACCEPTED = "accepted"
MEANINGS = 5
"""Findings about the file itself that are told without --verbose."""

TROUBLE = ("broken", "stale", "leftover")
"""Verdicts on a search index for which the table of indexes is shown."""

COUNTERS = "sqlite_sequence"
"""SQLite's own counters of ids: a repair only ever raises one, and an undo leaves it raised."""


def scan_text(report: Report, *, verbose: bool = False, timings: bool = False) -> str:
    """The report of a scan; `verbose` lists every kept finding, `timings` adds seconds per class."""
    several = len(report.databases) > 1
    parts = [_database(d, verbose=verbose, timings=timings, several=several) for d in report.databases]
    return "\n".join([*parts, *baseline_text(report.baseline)])


def baseline_text(use: BaselineUse | None) -> list[str]:
    """What the baseline does not cover any more; nothing where it covers what it says."""
    if use is None:
        return []
    file = one_line(use.file)
    lines = [f"{file}: {_entry(entry)} expired on {entry.expires} and counts again" for entry in use.expired]
    lines += [f"{file}: {_entry(entry)} is not there any more" for entry in use.unused]
    return ["\n".join(lines) + "\n"] if lines else []


def headline(database: DatabaseReport, *, several: bool = False) -> str:
    """What the file is, in one line; one of `several` is named by its whole path."""
    name = one_line(database.path if several else PurePath(database.path).name)
    parts = [name, file_text(database)]
    if database.holders:
        parts.append(f"held by {holders_text(database)}")
    if database.uninspected_processes:
        count = database.uninspected_processes
        parts.append(f"{counted(count, 'process', 'processes')} of other users not inspected")
    return " · ".join(parts)


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
            _indent(tabulate(rows, ["damage", "step", "rows"], tablefmt=PLAIN, disable_numparse=True)),
        ]
        lines += ["", _totals_text(plan)]
    if verbose:
        lines += ["", *(one_line(f"  {step.code} {step.key}: {step.title}") for step in plan.steps)]
    lines += _skipped_lines(plan, verbose=verbose)
    if blind := blind_text(outcomes(database.results)):
        lines += ["", f"nothing is known of {blind}"]
    return "\n".join(lines) + "\n"


def receipt_text(receipt: Receipt) -> str:
    """What was applied, and how to take it back."""
    lines = [
        f"applied: receipt {receipt.id}, {counted(receipt.steps, 'step')}, {receipt.lock_seconds:.2f} s under the write lock",
        *(f"  {table}: {counted(rows, 'row')}" for table, rows in receipt.changed.items()),
        *(
            f"  {table}: {counted(rows, 'row')} by foreign keys or the store's triggers"
            for table, rows in receipt.cascaded.items()
        ),
        *schema_words.done_lines(receipt),
        *(f"  put back {one_line(file.target)}" for file in receipt.files),
        *_trash_lines(receipt),
    ]
    if receipt.search_rebuilt:
        lines.append("  search index rebuilt: " + ", ".join(receipt.search_rebuilt))
    if receipt.dbhash_before:
        lines.append(f"  digest before {receipt.dbhash_before}")
        lines.append(f"  digest after  {receipt.dbhash_after}")
    lines.append(f"  backup: {one_line(receipt.backup) or 'none (--no-backup)'}")
    database = shell_word(receipt.database)
    lines.append(f"next:  hermes-dbtools undo {database} {receipt.id}   take it back")
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


def history_text(receipts: Sequence[Receipt]) -> str:
    """One line per receipt, oldest first."""
    if not receipts:
        return "nothing was applied to this database by hermes-dbtools\n"
    rows = [
        [
            receipt.id,
            receipt.status,
            moment_text(receipt.created_at),
            ", ".join(f"{count} {code}" for code, count in receipt.codes.items()),
            f"{sum(receipt.changed.values()):,}",
        ]
        for receipt in receipts
    ]
    return (
        tabulate(rows, ["receipt", "status", "when", "steps", "rows"], tablefmt=PLAIN, disable_numparse=True)
        + "\n"
    )


def undo_text(receipt: Receipt, *, done: bool) -> str:
    """What an undo would restore, or has restored."""
    verb = "undone" if done else "dry run: nothing is written. The undo would take back"
    lines = [
        f"{verb}: receipt {receipt.id} of {moment_text(receipt.created_at)}",
        *(
            f"  {table}: {counted(rows, 'row')}"
            if table != COUNTERS
            else f"  {table}: stays raised, so that no id is given out twice"
            for table, rows in receipt.changed.items()
        ),
        *(f"  {table}: {counted(rows, 'row')} that came along" for table, rows in receipt.cascaded.items()),
        *schema_words.taken_back_lines(receipt, done=done),
        *(f"  {'taken away' if done else 'take away'} {one_line(file.target)}" for file in receipt.files),
        *_given_back(receipt, done=done),
    ]
    if not done:
        lines.append(f"next:  hermes-dbtools undo {shell_word(receipt.database)} {receipt.id} --apply")
    return "\n".join(lines) + "\n"


def _given_back(receipt: Receipt, *, done: bool) -> list[str]:
    count = sum(not file.left for file in receipt.trash)
    return [f"  {counted(count, 'file')} {'put back' if done else 'to put back'}"] if count else []


def _database(database: DatabaseReport, *, verbose: bool, timings: bool, several: bool) -> str:
    if database.error:
        return f"could not look: {one_line(database.error)}\n"
    lines = [headline(database, several=several), ""]
    damaged = sorted(
        (result for result in database.results if result.status is Status.DAMAGED),
        key=lambda result: (not result.counts, -result.severity, result.code),
    )
    if damaged:
        rows = [
            [
                r.severity.word if r.counts else ACCEPTED,
                r.code,
                r.slug,
                found_text(r),
                answers_text(r.answers),
            ]
            for r in damaged
        ]
        headers = ["severity", "code", "damage", "found", "repair"]
        lines += [_indent(tabulate(rows, headers, tablefmt=PLAIN, disable_numparse=True)), ""]
    lines += _findings(damaged) if verbose else _meanings(damaged)
    if verbose or any(state.verdict in TROUBLE for state in database.search):
        lines += search_lines(database.search)
    if timings:
        lines += _timings(database)
    lines.append(summary(database.results))
    if live := len(database.live):
        lines.append(
            f"{live} live {'session is' if live == 1 else 'sessions are'} left alone by every repair"
        )
    lines += scan_next(database, [result for result in damaged if result.counts])
    return "\n".join(lines) + "\n"


def _meanings(damaged: Iterable[Result]) -> list[str]:
    """What damage of the file means for its rows: of a table that is damaged itself its indexes say nothing more."""
    found = [finding for result in damaged if result.code in FIRST for finding in result.findings]
    tables = {finding.table for finding in found if finding.evidence.get("canonical")}
    told = [f for f in found if f.evidence.get("canonical") or f.table not in tables]
    lines = [one_line(f"  {finding.message}") for finding in told[:MEANINGS]]
    if len(told) > MEANINGS:
        lines.append(f"  … and {len(told) - MEANINGS:,} more: --verbose")
    return [*lines, ""] if lines else []


def _findings(damaged: Iterable[Result]) -> list[str]:
    lines: list[str] = []
    for result in damaged:
        lines += [
            one_line(f"  {f.severity.word:8}{f.code}  {f.table} {f.key}: {f.message}{accepted_text(f)}")
            for f in result.findings
        ]
        if result.truncated:
            lines.append(f"          … and {result.count - len(result.findings):,} more of {result.slug}")
    return [*lines, ""] if lines else []


def _entry(entry: BaselineEntry) -> str:
    return one_line(f"{entry.code} {entry.table} {short(entry.key)} of {entry.database}")


def _timings(database: DatabaseReport) -> list[str]:
    rows = [["structure", f"{database.gate_seconds:.4f}"]]
    rows += [[result.slug, f"{result.seconds:.4f}"] for result in database.results if result.seconds]
    return [_indent(tabulate(rows, ["check", "seconds"], tablefmt=PLAIN, disable_numparse=True)), ""]


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


def _trash_lines(receipt: Receipt) -> list[str]:
    left = [file for file in receipt.trash if file.left]
    gone = len(receipt.trash) - len(left)
    lines = [f"  moved away: {counted(gone, 'file')}"] if gone else []
    return lines + [f"  left: {one_line(file.path)} ({file.left})" for file in left]


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


def _indent(text: str) -> str:
    return "\n".join("  " + line.rstrip() for line in text.splitlines())
