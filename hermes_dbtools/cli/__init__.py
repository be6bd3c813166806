"""The command line: click only. A command parses, opens, calls, renders and exits; it decides nothing."""

from __future__ import annotations

import click

from .groups import Commands
from .options import epilog

COMMANDS = (
    "scan",
    "report",
    "repair",
    "history",
    "undo",
    "explain",
    "sessions",
    "compare",
    "space",
    "backup",
    "restore",
    "salvage",
    "checks",
    "runbook",
    "fixture",
    "demo",
)
"""Every command in the order of the help; each is the module of its name. Its line is the first of its docstring."""


class _Commands(Commands):
    names = COMMANDS
    place = f"{__name__}."


def _print_versions(ctx: click.Context, _param: click.Parameter, value: bool) -> None:
    if not value or ctx.resilient_parsing:
        return
    from ..engine import versions

    found = versions()
    click.echo(f"hermes-dbtools {found['version']} (apsw {found['apsw']}, SQLite {found['sqlite']})")
    ctx.exit()


@click.group(
    cls=_Commands,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog=epilog(
        {0: "done", 1: "findings", 2: "usage", 3: "could not look", 4: "refused or rolled back"},
        "hermes-dbtools scan ~/.hermes",
        note="(each command's --help says more)",
    ),
)
@click.option(
    "--version", is_flag=True, is_eager=True, expose_value=False, callback=_print_versions, help="Versions."
)
def cli() -> None:
    """Diagnose and repair the state.db of a Hermes agent.

    DB is a state.db or a Hermes home; without it, $HERMES_HOME or ~/.hermes is used.
    """
