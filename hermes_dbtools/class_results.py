"""Ask the damage classes of one stage and make a result of what each finds; opens no file and never writes."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import apsw

from .damage import REGISTRY
from .damage._declare import IDLE_SECONDS, Damage, NeedsDeep, NotApplicable, ScanContext, whole
from .model import CouldNotLook, Finding, Result, Severity, Status
from .scan_progress import ScanProgress
from .sizes import size_text

LOOK_ERRORS = (apsw.Error, UnicodeDecodeError, OSError, CouldNotLook)
"""What makes a class `could-not-look`: the file's fault or the machine's, never a wrong statement of ours in silence."""

NEEDS_DEEP = "needs --deep"


@dataclass(frozen=True, slots=True)
class ScanOptions:
    """How to scan. `now` is epoch seconds; `limit` caps the findings kept per class, never the counts.

    `idle` are the seconds without activity after which an open session counts as never ended.
    """

    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    deep: bool = False
    pause_writers: bool = False
    limit: int | None = 1000
    fail_on: Severity | None = Severity.WARNING
    now: float = field(default_factory=time.time)
    idle: float = IDLE_SECONDS
    registry: tuple[Damage, ...] = REGISTRY


def stage_results(
    stage: str, context: ScanContext, options: ScanOptions, chosen: frozenset[str], told: ScanProgress
) -> tuple[Result, ...]:
    """A result of each class of a stage, in the order of the registry; those that are not chosen are skipped."""
    ceded_codes = {code for damage in options.registry for code in damage.cedes_to}
    claims: dict[str, set[tuple[str, str]]] = {}
    results = []
    asked_for = [damage for damage in options.registry if damage.stage == stage and damage.code in chosen]
    for damage in options.registry:
        if damage.stage != stage:
            continue
        if damage.code not in chosen:
            results.append(_result(damage, Status.SKIPPED, "not selected"))
            continue
        if damage.deep and not context.deep and not {damage.slug, damage.code}.intersection(options.select):
            results.append(_result(damage, Status.SKIPPED, NEEDS_DEEP))
            continue
        told.check(asked_for.index(damage) + 1, len(asked_for), damage, context)
        asked = {damage.slug, damage.code}.intersection(options.select)
        # What is asked for by its own name is looked at as a whole.
        looked = replace(context, deep=True) if asked else context
        taken = set().union(*(claims.get(code, set()) for code in damage.cedes_to))
        claimed = claims.setdefault(damage.code, set()) if damage.code in ceded_codes else None
        results.append(_run(damage, looked, options.limit, taken, claimed))
    return tuple(results)


def _run(
    damage: Damage,
    context: ScanContext,
    limit: int | None,
    taken: set[tuple[str, str]],
    claimed: set[tuple[str, str]] | None,
) -> Result:
    missing = [need for need in damage.needs if not context.shape.has(need)]
    if missing and damage.stage == "rows":
        return _result(damage, Status.NOT_APPLICABLE, f"this file has no {missing[0]}")
    damaged = sorted(context.gate.tables & set(damage.reads))
    if damaged and damage.stage == "rows":
        return _result(damage, Status.COULD_NOT_LOOK, f"table {damaged[0]} is damaged (HDB002)")
    started = time.perf_counter()
    kept: list[Finding] = []
    sums = dict.fromkeys((field for field, _unit in damage.sums), 0)
    count = ceded = 0
    highest = damage.severity
    worst: Severity | None = None
    try:
        for finding in damage.find(context):
            if (finding.table, finding.key) in taken:
                ceded += 1
                continue
            if claimed is not None:
                claimed.add((finding.table, finding.key))
            count += 1
            for name in sums:
                sums[name] += whole(finding.evidence.get(name))
            worst = finding.severity if worst is None else max(worst, finding.severity)
            if limit is None or len(kept) < limit:
                kept.append(finding)
    except NotApplicable as error:
        return _result(damage, Status.NOT_APPLICABLE, str(error))
    except NeedsDeep:
        return _result(damage, Status.SKIPPED, NEEDS_DEEP)
    except LOOK_ERRORS as error:
        return _result(damage, Status.COULD_NOT_LOOK, f"{type(error).__name__}: {error}")
    reason = f"{ceded} reported by {' or '.join(damage.cedes_to)}" if ceded else ""
    return Result(
        code=damage.code,
        slug=damage.slug,
        family=damage.family,
        severity=highest if worst is None else worst,
        status=Status.DAMAGED if count else Status.CLEAN,
        reason=reason,
        count=count,
        truncated=count > len(kept),
        findings=tuple(kept),
        found=_found(damage, count, sums),
        noun=damage.noun,
        answers=damage.answers,
        extent=damage.extent,
        seconds=time.perf_counter() - started,
    )


def _found(damage: Damage, count: int, sums: Mapping[str, int]) -> str:
    parts = [f"{count:,} {damage.noun[count != 1]}"]
    parts += [
        f"{sums[name]:,} {unit}" if unit != "bytes" else size_text(sums[name]) for name, unit in damage.sums
    ]
    return " · ".join(parts)


def _result(damage: Damage, status: Status, reason: str) -> Result:
    return Result(damage.code, damage.slug, damage.family, damage.severity, status, reason)


def all_others(
    options: ScanOptions, chosen: frozenset[str], done: tuple[Result, ...], reason: str
) -> tuple[Result, ...]:
    """A result of each class that has none yet: it could not look, for this reason."""
    codes = {result.code for result in done}
    return tuple(
        _result(damage, Status.COULD_NOT_LOOK, reason)
        if damage.code in chosen
        else _result(damage, Status.SKIPPED, "not selected")
        for damage in options.registry
        if damage.code not in codes
    )
