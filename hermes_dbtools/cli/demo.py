"""`hermes-dbtools demo`: show the tool at work on a home made for the purpose; touches no other home."""

from __future__ import annotations

import click

from .options import epilog, write


@click.command(
    "demo",
    epilog=epilog(
        "Exit codes: 0 shown; 3 the demo could not be made or did not mend.", "hermes-dbtools demo"
    ),
)
@click.option("--keep", is_flag=True, help="Keep the folder, to try commands on it.")
def command(keep: bool) -> None:
    """Make a damaged home in a temporary folder, then really scan, plan, repair, scan again and undo."""
    from .. import demo

    demo.run(write, keep=keep)
