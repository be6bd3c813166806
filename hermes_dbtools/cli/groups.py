"""A group of commands, each a module that is loaded when it is asked for; offers none itself."""

from __future__ import annotations

import importlib
from typing import ClassVar

import click

from .options import prepared


class Commands(click.Group):
    """Commands in the order of `names`; the module of each is `place` with its name behind."""

    names: ClassVar[tuple[str, ...]]
    place: ClassVar[str]

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names in the order of the help."""
        del ctx
        return list(self.names)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of this name, None where there is none."""
        del ctx
        if cmd_name not in self.names:
            return None
        command = importlib.import_module(f"{self.place}{cmd_name}").command
        assert isinstance(command, click.Command)
        return prepared(command)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Each command in one line."""
        commands = [(name, self.get_command(ctx, name)) for name in self.names]
        with formatter.section("Commands"):
            formatter.write_dl([(name, first_line(command)) for name, command in commands if command])


def first_line(command: click.Command) -> str:
    """What a command does, in one line."""
    return (command.help or "").partition("\n")[0]
