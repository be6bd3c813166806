"""`hermes-dbtools runbook`: print a runbook; looks at no database."""

from __future__ import annotations

import sys

import click

from .options import READ_CODES, epilog, write


@click.command("runbook", epilog=epilog(READ_CODES, "hermes-dbtools runbook orphaned-messages"))
@click.argument("slug", required=False, metavar="[SLUG]")
def command(slug: str | None) -> None:
    """Print what to do about one kind of damage, step by step.

    SLUG is a slug or a code; without it, the runbooks are listed.
    """
    from .. import catalogue

    text = catalogue.runbooks() if slug is None else catalogue.runbook(slug)
    if sys.stdout is not None and sys.stdout.isatty():
        click.echo_via_pager(text)
    else:
        write(text)
