"""`hermes-dbtools fixture`: make a database to test with; reads and replaces no other."""

from __future__ import annotations

from pathlib import Path

import click

from ..fixtures.names import SHAPES
from . import completing
from .options import Progress, epilog, hint, write

CODES = {0: "made", 2: "usage, or a damage that this shape cannot have", 4: "refused: a file is in the way"}
COUNT = click.IntRange(min=0)


@click.command(
    "fixture",
    epilog=epilog(CODES, "hermes-dbtools fixture state.db --shape 22 --damage orphaned-messages=3"),
)
@click.argument("output", metavar="OUTPUT")
@click.option("--shape", type=click.Choice(SHAPES), default="22", show_default=True, help="Of which release.")
@click.option(
    "--damage",
    multiple=True,
    metavar="SLUG[:KIND][=N]",
    shell_complete=completing.makers,
    help="Damage of this class, N findings; repeatable.",
)
@click.option(
    "--seed", type=COUNT, default=0, show_default=True, help="Another one makes other ids and texts."
)
@click.option(
    "--sessions",
    type=COUNT,
    default=0,
    show_default=True,
    help="Healthy sessions beside the eight of every fixture.",
)
@click.option("--messages", type=COUNT, default=4, show_default=True, help="Messages of each of these.")
@click.option("--home", is_flag=True, help="OUTPUT is a folder: a Hermes home with a state.db and its files.")
@click.option("--force", is_flag=True, help="Replace what is there.")
def command(
    output: str,
    shape: str,
    damage: tuple[str, ...],
    seed: int,
    sessions: int,
    messages: int,
    home: bool,
    force: bool,
) -> None:
    """Make a fixture database with chosen damage.

    The same arguments make the same bytes (with the same SQLite). The classes of damage are those of `checks`; each
    damages sessions of its own, so one does not disturb another.
    """
    from ..fixtures.making import make
    from ..fixtures.orders import Request, ordered
    from ..report.fixture import made_next, made_text

    request = Request(
        Path(output),
        shape,
        tuple(ordered(word) for word in damage),
        seed,
        sessions,
        messages,
        home=home,
        force=force,
    )
    with Progress() as progress:
        made = make(request, progress)
    write(made_text(str(made.database), made.size, made.shape, made.damage))
    hint(made_next(str(request.output), made.later, deep=made.deep))
