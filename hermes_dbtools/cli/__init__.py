"""The command line: click only. A command parses, opens, calls, renders and exits; it decides nothing."""

from __future__ import annotations

import importlib

import click

COMMANDS = {
    "scan": "Diagnose databases; changes nothing.",
    "repair": "Show what would be changed; with --apply, change it.",
    "history": "List what was applied to a database.",
    "undo": "Show what an undo would restore; with --apply, restore it.",
    "checks": "The catalogue of damage classes.",
    "runbook": "A class's runbook: what to do, step by step.",
    "demo": "Try everything on a damaged home made for the purpose.",
}
"""Every command and its line in the help; their modules are imported only when they run."""


class _Commands(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        del ctx
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        del ctx
        if cmd_name not in COMMANDS:
            return None
        command = getattr(importlib.import_module(f"{__name__}.{cmd_name}"), "command")  # noqa: B009 - a module of ours
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        del ctx
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


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
    epilog="Exit codes: 0 done, 2 usage; each command lists its own. Example: hermes-dbtools scan ~/.hermes",
)
@click.option(
    "--version", is_flag=True, is_eager=True, expose_value=False, callback=_print_versions, help="Versions."
)
def cli() -> None:
    """Diagnose and repair the state.db of a Hermes agent.

    DB is a state.db or a Hermes home; without it, $HERMES_HOME or ~/.hermes is used.
    """
