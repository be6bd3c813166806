"""`hermes-dbtools sessions`: the group of commands on the store's sessions; each is a module, loaded when asked."""

from __future__ import annotations

import click

from .groups import Commands
from .options import epilog

COMMANDS = ("list", "show", "delete", "export", "prune", "rebuild")
"""Every command of the group in the order of the help."""


class _Sessions(Commands):
    names = COMMANDS
    place = f"{__name__}_"


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
