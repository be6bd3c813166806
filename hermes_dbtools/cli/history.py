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
    from .. import documents, receipts
    from ..model import CouldNotLook
    from ..report.receipts import history_text
    from ..sizes import path_text
    from ..targets import one_target
    from ..undoing import history

    where, unproven = one_target(database, home), None
    try:
        found = history(where)
    except CouldNotLook as error:
        # A file that is lost is when its backups are wanted.
        if not (found := receipts.read_all(where)):
            raise
        unproven = CouldNotLook(
            f"{error}; the receipts are shown as they were written; "
            f"their backups: {where.dbtools_dir}/RECEIPT/{receipts.BACKUP}"
        )
    if format_ == "json":
        write(documents.encode(documents.history_document(path_text(where.database), found)))
    else:
        write(history_text(found))
    if unproven is not None:
        raise unproven
    if malformed := receipts.malformed(where):
        others = f" (and {len(malformed) - 1:,} more)" if len(malformed) > 1 else ""
        raise CouldNotLook(f"{malformed[0].line}{others}")
