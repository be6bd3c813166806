"""The command line: click only. A command parses, opens, calls, renders and exits; it decides nothing."""

from __future__ import annotations

import importlib

import click

from .options import epilog, prepared

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


class _Commands(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        del ctx
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        del ctx
        if cmd_name not in COMMANDS:
            return None
        command = importlib.import_module(f"{__name__}.{cmd_name}").command
        assert isinstance(command, click.Command)
        return prepared(command)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        commands = [(name, self.get_command(ctx, name)) for name in COMMANDS]
        with formatter.section("Commands"):
            formatter.write_dl([(name, first_line(command)) for name, command in commands if command])


def first_line(command: click.Command) -> str:
    """What a command does, in one line."""
    return (command.help or "").partition("\n")[0]


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
