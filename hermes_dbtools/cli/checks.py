"""`hermes-dbtools checks`: print the catalogue of damage classes; looks at no database."""

from __future__ import annotations

import click

from . import completing
from .options import PRINT_CODES, epilog, write


@click.command("checks", epilog=epilog(PRINT_CODES, "hermes-dbtools checks orphaned-messages"))
@click.argument("slug", required=False, metavar="[SLUG]", shell_complete=completing.classes)
def command(slug: str | None) -> None:
    """List the damage classes, or say what one of them means.

    SLUG is a slug or a code, as `checks` lists them.
    """
    from .. import catalogue

    write(catalogue.listing() if slug is None else catalogue.entry(slug))
