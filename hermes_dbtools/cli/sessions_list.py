"""`hermes-dbtools sessions list`: print the sessions; changes nothing."""

from __future__ import annotations

import click

from .options import READ_CODES, epilog, format_option, home_option, write


@click.command("list", epilog=epilog(READ_CODES, "hermes-dbtools sessions list ~/.hermes --hidden"))
@click.argument("database", required=False, metavar="[DB]")
@home_option
@click.option(
    "--source", "sources", multiple=True, metavar="WORD", help="Only of this source: cli, telegram ..."
)
@click.option(
    "--kind",
    "kinds",
    multiple=True,
    type=click.Choice(["root", "branch", "delegate", "continuation", "reset", "child"]),
    help="Only sessions that hang so under their parent.",
)
@click.option(
    "--state",
    "states",
    multiple=True,
    type=click.Choice(["live", "open", "closed", "archived"]),
    help="Only sessions in this state.",
)
@click.option("--hidden", is_flag=True, help="Only sessions that the store's own lists do not show.")
@click.option(
    "--limit",
    type=click.IntRange(min=0),
    default=50,
    show_default=True,
    help="How many of the newest to print; 0 for all.",
)
@format_option
def command(
    database: str | None,
    home: str | None,
    sources: tuple[str, ...],
    kinds: tuple[str, ...],
    states: tuple[str, ...],
    hidden: bool,
    limit: int,
    format_: str,
) -> None:
    """List sessions, newest first: kind, state, and why the store's own lists leave some out.

    A session is live while a running turn or another process owns it: nothing may change it then.
    """
    from .. import documents
    from ..report import session_list as report
    from ..sessions.listing import Filters, list_sessions
    from ..targets import one_target

    found = list_sessions(one_target(database, home), Filters(sources, kinds, states, hidden), limit)
    if format_ == "json":
        write(documents.encode(report.list_document(found.sessions, found.total)))
    else:
        write(report.list_text(found.sessions, found.total))
