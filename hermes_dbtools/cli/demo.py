"""`hermes-dbtools demo`: show the tool at work on a home made for the purpose; touches no other home."""

from __future__ import annotations

import click

from .options import epilog, write


@click.command(
    "demo",
    epilog=epilog({0: "shown", 2: "usage", 3: "it did not end as it should"}, "hermes-dbtools demo"),
)
@click.option("--keep", is_flag=True, help="Keep the folder, to try commands on it.")
def command(keep: bool) -> None:
    """Try everything on a damaged home made for the purpose.

    Makes it in a temporary folder, then really scans, plans, repairs, scans again and undoes.
    """
    from .. import demo

    demo.run(write, keep=keep)
