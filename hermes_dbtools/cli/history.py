"""`hermes-dbtools history`: list receipts; changes nothing."""

from __future__ import annotations

import click

from .options import READ_CODES, epilog, format_option, home_option, write


@click.command("history", epilog=epilog(READ_CODES, "hermes-dbtools history ~/.hermes"))
@click.argument("database", required=False, metavar="[DB]")
@home_option
@format_option
def command(database: str | None, home: str | None, format_: str) -> None:
    """List what was applied to a database, and what became of it."""
    from .. import documents
    from ..report import table
    from ..targets import one_target
    from ..undoing import history

    found = history(one_target(database, home))
    if format_ == "json":
        write(documents.encode([documents.receipt_document(receipt) for receipt in found]))
    else:
        write(table.history_text(found))
