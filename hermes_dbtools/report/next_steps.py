"""Say what to run after a scan or a dry run, the most urgent first; computes nothing and opens nothing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from ..model import SELECTED, TO_SALVAGE, DatabaseReport, Plan, Result, Severity, Status
from ..plan import FIRST, PlanOptions, make_plan, mending_answers
from ..shown import one_line, shell_word
from . import schema_words

SALVAGE = "HDB002"
"""The class whose damage a salvage gets around."""


def scan_next(database: DatabaseReport, damaged: Sequence[Result]) -> list[str]:
    """What to run after a scan that found this, as lines."""
    if not damaged:
        return []
    commands = [(f"hermes-dbtools runbook {damaged[0].slug}", "what it means, step by step")]
    if database.shape is not None and not database.shape.known:
        commands.insert(0, schema_words.UPDATE)
    else:
        commands[:0] = _doing(database, damaged)
    width = max(len(command) for command, _what in commands)
    return [
        f"{'next:' if place == 0 else '':7}{command:{width}}   {what}"
        for place, (command, what) in enumerate(commands)
    ]


def plan_next(plan: Plan, database: DatabaseReport, options: str = "") -> list[str]:
    """What to run after a dry run; `options` are those it was made with, without which another plan would be applied."""
    if database.shape is not None and not database.shape.known:
        return ["   ".join(schema_words.UPDATE)]
    if plan.steps:
        command = f"hermes-dbtools repair {shell_word(database.path)}{options} --apply"
        return [f"stop {holders_text(database)}, then  {command}"] if database.holders else [command]
    if not plan.skipped:
        return []
    if _to_salvage(database.results):
        command, what = _salvage(database)
        return [f"{command}   {what}"]
    severity = {result.slug: result.severity for result in database.results}
    gravest = max(plan.skipped, key=lambda one: severity.get(one.slug, 0))
    runbook = f"hermes-dbtools runbook {gravest.slug}   what it means, step by step"
    return [*_consents(plan, database, gravest.slug, options), runbook]


def holders_text(database: DatabaseReport) -> str:
    """Who holds the file."""
    return ", ".join(f"{one_line(holder.name)} (pid {holder.pid})" for holder in database.holders)


def _consents(plan: Plan, database: DatabaseReport, slug: str, options: str) -> Iterator[str]:
    """The dry runs that would mend what this one left alone: with consent to drop data, or with an answer chosen."""
    repair = f"hermes-dbtools repair {shell_word(database.path)}{options}"
    lossy = PlanOptions(choices=plan.choices, allow_lossy=True, max_rows=plan.max_rows)
    if any(step.slug == slug for step in make_plan(database, lossy).steps):
        yield f"{repair} --allow-lossy   what would be dropped (nothing is written)"
    elif slug not in plan.choices:
        for answer, drops in mending_answers(database, slug):
            consent = " --allow-lossy" if drops and not plan.allow_lossy else ""
            what = f"what {answer!r} would {'drop' if drops else 'change'} (nothing is written)"
            yield f"{repair} --choose {slug}={answer}{consent}   {what}"


def _doing(database: DatabaseReport, damaged: Sequence[Result]) -> Iterator[tuple[str, str]]:
    if _to_salvage(damaged):
        yield _salvage(database)
        return
    if any(result.code in FIRST for result in damaged):
        return
    by_repair = [result for result in damaged if result.answers != ("report",)]
    own = _own(by_repair)
    others = [result for result in by_repair if not _own([result]) and result.severity > Severity.NOTE]
    for options in [*own, ""] if others or (by_repair and not own) else own:
        yield (
            f"hermes-dbtools repair {shell_word(database.path)}{options}",
            "what would be changed (nothing is written)",
        )


def _own(results: Iterable[Result]) -> list[str]:
    """The options of repairs that findings ask for: what only a deep look finds, a repair of everything does not find again."""
    asked = [f.next for result in results for f in result.findings if f.next.startswith(SELECTED)]
    return list(dict.fromkeys(one.removeprefix("hermes-dbtools repair") for one in asked))


def _to_salvage(results: Iterable[Result]) -> bool:
    found = [result for result in results if result.status is Status.DAMAGED]
    if any(result.code in FIRST and result.code != SALVAGE for result in found):
        return False
    return any(
        result.code == SALVAGE or any(f.next == TO_SALVAGE for f in result.findings) for result in found
    )


def _salvage(database: DatabaseReport) -> tuple[str, str]:
    return (
        f"{TO_SALVAGE} {shell_word(database.path)} NEW.db",
        "gets the rows into a new file; this one is not written",
    )
