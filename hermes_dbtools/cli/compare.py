"""`hermes-dbtools compare`: say what changed between two files, print, exit; changes nothing."""

from __future__ import annotations

import click

from .options import FAIL_ON, Progress, epilog, format_option, hint, severity, write

CODES = {
    0: "no row was lost, and no new damage at or above --fail-on",
    1: "rows were lost, or there is new damage",
    2: "usage",
    3: "could not look: at a file, a table or one check",
}


@click.command("compare", epilog=epilog(CODES, "hermes-dbtools compare ~/before.db ~/.hermes"))
@click.argument("before", metavar="BEFORE")
@click.argument("after", metavar="AFTER")
@click.option(
    "--fail-on",
    type=click.Choice(FAIL_ON),
    default="error",
    show_default=True,
    help="Lowest severity of new damage that makes the exit code 1. Lost rows always do.",
)
@click.option("--no-damage", is_flag=True, help="Compare rows and schema only; look for no damage.")
@format_option
def command(before: str, after: str, fail_on: str, no_damage: bool, format_: str) -> None:
    """Say what an upgrade or a repair did to a store; changes nothing.

    Counts the rows that were lost, gained and changed, names the sessions that left the list and why, the changes of
    the schema, and damage that is new. What a documented step of an upgrade converts is told apart from changes. BEFORE
    is a copy made earlier, AFTER the store; each is a state.db or a Hermes home.
    """
    from .. import documents, engine
    from ..comparing.compare import CompareOptions, compare
    from ..report import compare as report
    from ..targets import one_target

    options = CompareOptions(damage=not no_damage, fail_on=severity(fail_on))
    with Progress() as progress:
        found = compare(one_target(before, None), one_target(after, None), options, progress)
    if format_ == "json":
        write(documents.encode(report.compare_document(found, engine.versions())))
    else:
        write(report.compare_text(found))
        hint(report.compare_next(found))
    raise SystemExit(found.exit_code)
