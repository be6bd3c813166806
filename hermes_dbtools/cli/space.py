"""`hermes-dbtools space`: say what takes how much room, print, exit; changes nothing."""

from __future__ import annotations

import shutil
import sys

import click

from .options import READ_CODES, Progress, epilog, format_option, hint, home_option, write

WIDEST = 40


@click.command("space", epilog=epilog(READ_CODES, "hermes-dbtools space ~/.hermes --top 20"))
@click.argument("database", required=False, metavar="[DB]")
@home_option
@click.option(
    "--top",
    type=click.IntRange(min=0),
    default=10,
    show_default=True,
    help="How many of the largest sessions to name.",
)
@click.option("--no-repairs", is_flag=True, help="Do not ask what each repair would free: that takes a scan.")
@format_option
def command(database: str | None, home: str | None, top: int, no_repairs: bool, format_: str) -> None:
    """Say what takes room in and beside a store; changes nothing.

    Bytes of tables, indexes and search indexes add up to the file. Those of sources and sessions are the bytes of their
    values. It says too what each repair would free: inside the file that is room for new rows; only VACUUM INTO makes a
    smaller file.
    """
    from .. import documents, engine
    from ..report import space as report
    from ..space import SpaceOptions, space
    from ..targets import one_target

    with Progress() as progress:
        found = space(one_target(database, home), SpaceOptions(top=top, repairs=not no_repairs), progress)
    if format_ == "json":
        write(documents.encode(report.space_document(found, engine.versions())))
    else:
        write(report.space_text(found, bars=_bars(), top=top))
        hint(report.space_next(found))


def _bars() -> int:
    """The room for bars on a terminal, 0 where the answer goes elsewhere."""
    if sys.stdout is None or not sys.stdout.isatty():
        return 0
    return max(0, min(WIDEST, shutil.get_terminal_size().columns - 80))
