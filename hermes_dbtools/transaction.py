"""One plan in one write transaction, or nothing; opens no file, takes no backup and moves no file.

The order is fixed: the guard again, the planned findings again, the steps with their exact counts, the planned findings gone, no
new foreign key violation, no change that nobody planned. Any surprise raises, and the caller rolls back.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import BinaryIO

import apsw

from . import queries, schema_changes, search_index, search_remaking, search_upkeep, violations
from .damage import PLANNERS
from .damage._declare import Planner, Planners, ScanContext, whole
from .guard import live_sessions
from .model import BecameLive, RolledBack, Safety, StalePlan, Statement, Step, Value
from .recorder import BATCH_BYTES, BATCH_ROWS, Changes, Recorder
from .search_survey import Survey
from .shape import Shape, read_shape
from .sweep import Sweep
from .triggers import DERIVED, only_known_triggers


@dataclass(frozen=True, slots=True)
class Range:
    """The keys that one run of a statement changes, lowest first."""

    keys: array[int]


CutKey = tuple[str, str, str, tuple[str, ...]]
Cuts = Mapping[CutKey, tuple[Range, ...]]
"""Ranges by class, key of the finding, block and the names that fill it."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a transaction did, before its COMMIT."""

    changes: Changes
    undo_sha256: str
    violations_before: frozenset[int]
    touched_messages: array[int]
    search: search_index.Upkeep


def run_plan(
    context: ScanContext,
    steps: tuple[Step, ...],
    undo: BinaryIO,
    *,
    held: bool,
    allow_lossy: bool,
    on_step: Callable[[Step], None] = lambda _step: None,
    planners: Planners = PLANNERS,
) -> Outcome:
    """Run the steps inside the caller's transaction. Raises StalePlan or RolledBack; the caller must then roll back."""
    connection, shape = context.connection, context.shape
    owners = owners_of(steps, planners)
    refuse_live(context, steps, held)
    refuse_stale(context, owners, steps, allow_lossy=allow_lossy)
    remaking = search_remaking.begin(connection, shape, steps)
    if remaking.changed:
        shape = read_shape(connection)
        context = replace(context, shape=shape)
    tables = violations.with_referrers(shape, {s.table for step in steps for s in step.statements})
    before = violations.numbers(connection, shape, tables)
    cuts = cut_ranges(context, owners, steps)
    touched = reindexed_messages(context, owners, steps, cuts)
    upkeep = search_upkeep.choose(connection, shape, steps, touched, owners)
    search_index.register_tokenizer(connection, upkeep)
    search_index.begin_change(connection, upkeep)
    recorder = Recorder(connection, recordable_tables(shape), undo)
    try:
        with only_known_triggers(connection):
            for step in steps:
                on_step(step)
                run_step(context, owners[step.code], step, cuts, recorder)
        recorder.begin_sync()
        search_index.end_change(connection, upkeep)
        search_remaking.finish(connection, remaking)
        digest = recorder.finish()
    finally:
        recorder.close()
    refuse_surprises(shape, recorder.changes)
    refuse_remaining(context, owners, steps)
    refuse_new_violations(connection, shape, tables, before)
    search = replace(upkeep, remade=remaking.rebuilt)
    return Outcome(recorder.changes, digest, frozenset(before), touched, search)


def owners_of(steps: Iterable[Step], planners: Planners = PLANNERS) -> Planners:
    """What the steps belong to, by code. Raises StalePlan for a code that this release lacks."""
    wanted = {step.code for step in steps}
    if unknown := sorted(wanted - set(planners)):
        raise StalePlan(f"this release has no damage class {unknown[0]}; make the plan anew")
    return {code: planner for code, planner in planners.items() if code in wanted}


def recordable_tables(shape: Shape) -> tuple[str, ...]:
    """Canonical tables that SQLite's recorder can follow: those with a primary key."""
    return tuple(name for name in shape.canonical_tables if shape.tables[name].primary_key)


def refuse_live(context: ScanContext, steps: tuple[Step, ...], held: bool) -> None:
    """Raise BecameLive when a session of the plan is live now."""
    live = live_sessions(context.connection, context.shape, home=context.home, now=context.now, held=held)
    for step in steps:
        for session in step.session_ids:
            if (found := live.get(session)) is not None:
                raise BecameLive(
                    f"{step.slug} {step.key}: its session became live after the plan was made ({found.reason}); "
                    "nothing was changed; run hermes-dbtools repair again"
                )


def refuse_stale(
    context: ScanContext, owners: Planners, steps: tuple[Step, ...], *, allow_lossy: bool
) -> None:
    """Raise StalePlan unless every step is still exactly what its finding asks for, asked without indexes.

    A step that drops data is refused unless the plan was made with leave for that.
    """
    remedies = {
        (finding.code, finding.key, remedy.answer): remedy
        for planner in owners.values()
        for finding in planner.find(context)
        for remedy in finding.remedies
    }
    for step in steps:
        remedy = remedies.get((step.code, step.key, step.answer))
        if remedy is None or remedy.refused or remedy.step != step:
            what = "is gone" if remedy is None else "has changed"
            raise StalePlan(
                f"{step.slug} {step.key} {what} since the plan was made; nothing was changed; "
                "run hermes-dbtools repair again"
            )
        if remedy.safety is Safety.LOSSY and not allow_lossy:
            raise RolledBack(
                f"{step.slug} {step.key}: {step.answer} drops data, and the plan was made without --allow-lossy; "
                "nothing was changed"
            )


def cut_ranges(context: ScanContext, owners: Planners, steps: Iterable[Step]) -> Cuts:
    """The ranges of keys by which each statement that can be cut is run."""
    return {
        cut_key(step, statement): tuple(
            _cut(owners[step.code].rows(context, statement.split, statement.bindings, statement.names))
        )
        for step in steps
        for statement in step.statements
        if statement.split is not None
    }


def cut_key(step: Step, statement: Statement) -> CutKey:
    """By what the ranges of a statement are found."""
    return (step.code, step.key, statement.block, tuple(statement.names.values()))


def reindexed_messages(
    context: ScanContext, owners: Planners, steps: Iterable[Step], cuts: Cuts
) -> array[int]:
    """The ids of the messages that the steps remove, or whose searchable text they change.

    Raises RolledBack where such a statement does not list its rows: their entries could not be kept right.
    """
    touched = array("q")
    reindexing = search_upkeep.Reindexing(context.connection, context.shape, owners)
    for step in steps:
        for statement in step.statements:
            if statement.table == "messages" and reindexing.by(step, statement):
                if statement.split is None:
                    raise RolledBack(
                        f"{step.slug} {step.key}: {statement.block} changes what search finds and does not list its rows; "
                        "nothing was changed"
                    )
                for one in cuts[cut_key(step, statement)]:
                    touched.extend(one.keys)
    return touched


def run_step(
    context: ScanContext,
    planner: Planner,
    step: Step,
    cuts: Cuts,
    recorder: Recorder,
) -> None:
    """Run the statements of a step; each must change exactly its expected rows, or the one object it names."""
    connection = context.connection
    for statement in step.statements:
        query = queries.choose(planner.sql, statement.block, context.has)
        if query is None:
            raise StalePlan(f"{step.slug}: this file lacks what its repair {statement.block!r} needs")
        sql = queries.fill(query.sql, **statement.names) if statement.names else query.sql
        if statement.of_schema:
            recorder.flush()  # SQLite's recorder need not follow a table whose schema changes under it
            recorder.changes.schema.append(schema_changes.run(connection, sql, statement))
            continue
        changed = 0
        for bindings in _bindings(step, statement, cuts):
            total = connection.total_changes()
            connection.execute(sql, bindings)
            changed += connection.changes()
            recorder.note(statement.table, connection.changes(), connection.total_changes() - total)
            if recorder.batch_full():
                recorder.flush()
        if changed != statement.expect:
            raise RolledBack(
                f"{step.slug} {step.key}: {statement.block} would have changed {changed:,} rows of {statement.table}, "
                f"not the {statement.expect:,} expected; nothing was changed"
            )


def refuse_surprises(shape: Shape, changes: Changes) -> None:
    """Raise RolledBack when a trigger changed rows that neither a declared key nor a known trigger accounts for."""
    for (table, operation), rows in sorted(changes.indirect.items()):
        action = {"DELETE": "CASCADE", "UPDATE": "SET NULL"}.get(operation)
        cascades = any(key.on_delete == action for key in shape.tables[table].foreign_keys)
        derived = table == "messages" and operation == "UPDATE" and _has_derived_triggers(shape)
        if not cascades and not derived:
            raise RolledBack(
                f"a trigger changed {rows:,} rows of {table} that no step planned; nothing was changed"
            )


def refuse_remaining(context: ScanContext, owners: Planners, steps: tuple[Step, ...]) -> None:
    """Raise RolledBack when a planned finding is still there after its step."""
    if any(statement.table == "messages" for step in steps for statement in step.statements):
        context = replace(context, sweep=Sweep())
    if any(step.search or any(s.of_schema for s in step.statements) for step in steps):
        context = replace(context, shape=read_shape(context.connection), search=Survey(after=True))
    planned = {(step.code, step.key) for step in steps if step.statements or step.search}
    for planner in owners.values():
        for finding in planner.find(context):
            if (finding.code, finding.key) in planned:
                raise RolledBack(
                    f"{finding.slug} {finding.key} is still there after its repair; nothing was changed"
                )


def refuse_new_violations(
    connection: apsw.Connection, shape: Shape, tables: tuple[str, ...], before: set[int]
) -> None:
    """Raise RolledBack when a foreign key is broken that was not before."""
    violation = violations.first_new(connection, shape, tables, before)
    if violation is not None:
        raise RolledBack(
            f"the repair would break the foreign key of {violations.row_text(shape, violation)} "
            f"to {violation.parent}; nothing was changed"
        )


def _bindings(step: Step, statement: Statement, cuts: Cuts) -> Iterator[dict[str, Value]]:
    if statement.split is None:
        yield dict(statement.bindings)
        return
    for one in cuts[cut_key(step, statement)]:
        yield {**statement.bindings, "first": one.keys[0], "last": one.keys[-1]}


def _cut(rows: Iterable[tuple[Value, ...]]) -> Iterator[Range]:
    keys, size = array("q"), 0
    for key, weight in rows:
        # The statements of a split name integers; `whole` for each of a million rows would be half of the time.
        added = weight if isinstance(weight, int) else whole(weight)
        if keys and (len(keys) >= BATCH_ROWS or size + added > BATCH_BYTES):
            yield Range(keys)
            keys, size = array("q"), 0
        keys.append(key if isinstance(key, int) else whole(key))
        size += added
    if keys:
        yield Range(keys)


def _has_derived_triggers(shape: Shape) -> bool:
    return any(name in shape.triggers for name in DERIVED)
