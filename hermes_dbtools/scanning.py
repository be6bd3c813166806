"""Run the damage classes of a registry over databases and say what they found; never writes.

Order: what lies on disk (before SQLite opens anything), the structural gate, the guard, then the row classes in the order of
the registry. A class that could not look never reads as clean.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

import apsw
import msgspec

from . import database
from . import home as homes
from .class_results import LOOK_ERRORS, NEEDS_DEEP, ScanOptions, all_others, stage_results
from .damage._declare import ScanContext
from .model import (
    CouldNotLook,
    DatabaseReport,
    Report,
    Result,
    Severity,
    Status,
)
from .scan_progress import SEARCH, ScanProgress
from .search_states import states
from .selection import selected
from .shape import Shape, read_shape
from .shown import shown
from .sizes import path_text
from .stripped import NotStripped, without_indexes
from .structure import Gate, StructuralDamage, check_structure
from .sweep import Sweep

__all__ = [
    "LOOK_ERRORS",
    "NEEDS_DEEP",
    "ScanOptions",
    "exit_code",
    "report_of",
    "scan",
    "scan_home",
]

UNREADABLE = ("empty", "zeroes", "wrong-header", "truncated")
"""States of a file that are a finding; all other problems mean that nothing could be looked at."""

Progress = Callable[[str], None]
Target = str | bytes | Path | None


def scan(
    targets: Sequence[Target] = (None,), options: ScanOptions | None = None, progress: Progress | None = None
) -> Report:
    """Scan each target: a `state.db` or a home; None is the default home.

    Raises UsageError for a word of `select` or `ignore` that no damage class has. Files that cannot be looked at are
    part of the report, not an error.
    """
    options = options or ScanOptions()
    chosen = selected(options.registry, options.select, options.ignore)
    reports = tuple(_scan_target(target, options, chosen, progress or _quiet) for target in targets)
    return Report(reports, exit_code(reports, options.fail_on))


def exit_code(reports: Iterable[DatabaseReport], fail_on: Severity | None) -> int:
    """1 for a finding at or above `fail_on`, else 3 where a selected check could not look, else 0."""
    reports = tuple(reports)
    results = [result for report in reports for result in report.results]
    if fail_on is not None and any(r.counts and r.severity >= fail_on for r in results):
        return 1
    if any(report.error for report in reports) or any(r.status is Status.COULD_NOT_LOOK for r in results):
        return 3
    return 0


def scan_home(
    home: homes.Home, options: ScanOptions, chosen: frozenset[str], progress: Progress
) -> DatabaseReport:
    """Scan the database of one home. Raises CouldNotLook when nothing of it can be looked at."""
    state = database.examine(home.database)
    if state.problem and state.problem not in UNREADABLE:
        raise CouldNotLook(database.problem_line(state))
    on_disk = _file_results(state, home, options, chosen)
    if state.problem:
        reason = "the file is unreadable (HDB001)"
        return _report(state, None, (*on_disk, *all_others(options, chosen, on_disk, reason)))

    def look(reading: database.Reading) -> DatabaseReport:
        return _look(reading, home, options, chosen, progress, on_disk)

    return database.read(home.database, look, pause_writers=options.pause_writers)


def _quiet(_text: str) -> None:
    return None


def _scan_target(
    target: Target, options: ScanOptions, chosen: frozenset[str], progress: Progress
) -> DatabaseReport:
    try:
        home = homes.resolve(target)
    except CouldNotLook as error:
        return _nothing(target, str(error))
    return report_of(home, options, chosen, progress)


def report_of(
    home: homes.Home, options: ScanOptions, chosen: frozenset[str], progress: Progress
) -> DatabaseReport:
    """As `scan_home`; a file that cannot be looked at has a report that says so."""
    try:
        return scan_home(home, options, chosen, progress)
    except LOOK_ERRORS as error:
        return _nothing(home.database, str(error))


def _nothing(target: Target, error: str) -> DatabaseReport:
    path = "" if target is None else path_text(target)
    return DatabaseReport(path, 0, "", None, (), 0, (), error=error)


def _look(
    reading: database.Reading,
    home: homes.Home,
    options: ScanOptions,
    chosen: frozenset[str],
    progress: Progress,
    on_disk: tuple[Result, ...],
) -> DatabaseReport:
    state = reading.state
    searched = any(d.family == SEARCH and d.code in chosen for d in options.registry)
    told = ScanProgress(reading.connection, progress, every_page=searched)
    try:
        shape = read_shape(reading.connection)
    except CouldNotLook as error:
        raise CouldNotLook(f"{shown(state.path)}: {error}; name a state.db or a Hermes home") from None
    except (apsw.CorruptError, apsw.NotADBError, apsw.SQLError, UnicodeDecodeError) as error:
        if not reading.rows_trusted:
            return _untrusted(state, None, options, chosen, on_disk)
        damage = StructuralDamage("sqlite_schema", "schema", "", 1, str(error))
        context = ScanContext(
            reading.connection, _no_shape(), home, state, Gate((damage,)), options.now, options.deep
        )
        structure = stage_results("structure", context, options, chosen, told)
        reason = "the schema cannot be read (HDB002)"
        done = (*on_disk, *structure)
        return _report(state, None, (*done, *all_others(options, chosen, done, reason)))
    if not reading.rows_trusted:
        return _untrusted(state, shape, options, chosen, on_disk)
    started = time.perf_counter()
    gate = check_structure(reading.connection, shape, told.table, deep=options.deep)
    gate = replace(gate, seconds=time.perf_counter() - started)
    context = ScanContext(
        reading.connection,
        shape,
        home,
        state,
        gate,
        options.now,
        options.deep,
        trust_indexes=not options.deep,
        sweep=Sweep(tell=progress),
        idle=options.idle,
    )
    results = (*on_disk, *stage_results("structure", context, options, chosen, told))
    if not gate.indexes:
        return _rows(context, options, chosen, told, results)
    try:
        with without_indexes(reading.connection, gate.indexes) as copy:
            return _rows(
                replace(context, connection=copy, shape=read_shape(copy)), options, chosen, told, results
            )
    except NotStripped as error:
        reason = f"damaged indexes cannot be left out (HDB002): {error}"
        return _report(state, shape, (*results, *all_others(options, chosen, results, reason)), gate=gate)


def _untrusted(
    state: database.FileState,
    shape: Shape | None,
    options: ScanOptions,
    chosen: frozenset[str],
    on_disk: tuple[Result, ...],
) -> DatabaseReport:
    """The report of a half-written file: neither its structure nor its rows say what the whole of it is like."""
    reason = "rows of this file cannot be relied on (HDB003)"
    return _report(state, shape, (*on_disk, *all_others(options, chosen, on_disk, reason)))


def _rows(
    context: ScanContext,
    options: ScanOptions,
    chosen: frozenset[str],
    told: ScanProgress,
    before: tuple[Result, ...],
) -> DatabaseReport:
    live = context.ask_guard()
    context = replace(context, live=live)
    results = (*before, *stage_results("rows", context, options, chosen, told))
    ordered = {damage.code: place for place, damage in enumerate(options.registry)}
    total = 0
    if "messages" not in context.gate.tables:
        total = sum(int(row[0]) for row in context.rows("scan", "message-total") if isinstance(row[0], int))
    report = _report(
        context.file,
        context.shape,
        tuple(sorted(results, key=lambda r: ordered[r.code])),
        gate=context.gate,
    )
    return msgspec.structs.replace(
        report,
        live=tuple(live.values()),
        all_live=live.all_reason,
        message_total=total,
        search=states(context),
    )


def _file_results(
    state: database.FileState, home: homes.Home, options: ScanOptions, chosen: frozenset[str]
) -> tuple[Result, ...]:
    with apsw.Connection(":memory:") as connection:
        context = ScanContext(connection, _no_shape(), home, state, Gate(), options.now, options.deep)
        told = ScanProgress(connection, _quiet, every_page=False)
        results = stage_results("file", context, options, chosen, told)
    connection.close()
    return results


def _no_shape() -> Shape:
    nothing: MappingProxyType[str, str] = MappingProxyType({})
    return Shape(None, MappingProxyType({}), nothing, MappingProxyType({}), nothing)


def _report(
    state: database.FileState, shape: Shape | None, results: tuple[Result, ...], gate: Gate | None = None
) -> DatabaseReport:
    return DatabaseReport(
        path=path_text(state.path),
        size=state.size,
        journal_mode="wal" if state.wal_mode else "rollback",
        shape=shape.summary() if shape else None,
        holders=state.holders.processes,
        uninspected_processes=state.holders.uninspected,
        results=results,
        gate_seconds=gate.seconds if gate else 0.0,
    )
