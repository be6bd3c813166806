"""`hermes-dbtools runbook`: print a runbook; looks at no database."""

from __future__ import annotations

import sys

import click

from . import completing, terminal
from .options import PRINT_CODES, colour, epilog, write


@click.command("runbook", epilog=epilog(PRINT_CODES, "hermes-dbtools runbook first-response"))
@click.argument("slug", required=False, metavar="[SLUG]", shell_complete=completing.runbooks)
def command(slug: str | None) -> None:
    """Print what to do, step by step, about a damage or in a situation.

    SLUG is a damage class (its slug or code) or a procedure; without it, all are listed. `first-response` leads from what
    is seen to what is to be done. On a terminal it is shown page by page.
    """
    from .. import catalogue
    from ..runbook_text import for_terminal

    if slug is None:
        write(catalogue.runbooks())
        return
    text = catalogue.runbook(slug)
    if terminal.is_terminal(sys.stdout):
        click.echo_via_pager(for_terminal(text, terminal.width(sys.stdout), colour=colour()), color=colour())
    else:
        write(text)
