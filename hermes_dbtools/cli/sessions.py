"""`hermes-dbtools sessions`: the group of commands on the store's sessions; each is a module, loaded when asked."""

from __future__ import annotations

import importlib

import click

from .options import epilog, prepared

COMMANDS = ("list", "show", "delete", "export", "prune", "rebuild")
"""Every command of the group in the order of the help."""


class _Sessions(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        del ctx
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        del ctx
        if cmd_name not in COMMANDS:
            return None
        command = importlib.import_module(f"{__name__}_{cmd_name}").command
        assert isinstance(command, click.Command)
        return prepared(command)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        commands = [(name, self.get_command(ctx, name)) for name in COMMANDS]
        with formatter.section("Commands"):
            formatter.write_dl([(name, (one.help or "").partition("\n")[0]) for name, one in commands if one])


@click.group(
    "sessions",
    cls=_Sessions,
    epilog=epilog(
        {
            0: "done",
            1: "a session is live and was left alone",
            2: "usage",
            3: "could not look",
            4: "refused or rolled back",
        },
        "hermes-dbtools sessions delete 20260528_202640_5feceb",
    ),
)
def command() -> None:
    """Look at the store's sessions and change them, guarded.

    Each change is a plan, and can be undone. A session that a running turn owns is never touched, whoever asks.
    """
