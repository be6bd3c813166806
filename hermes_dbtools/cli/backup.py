"""`hermes-dbtools backup`: make a verified copy of a store, or list the copies; what a copy is, is decided elsewhere."""

from __future__ import annotations

from pathlib import Path

import click

from .options import Progress, epilog, format_option, hint, home_option, writable, write

CODES = {
    0: "made and verified, unchanged since the last one, or listed",
    2: "usage",
    3: "could not look",
    4: "refused: no backup was made",
}


@click.command("backup", epilog=epilog(CODES, "hermes-dbtools backup ~/.hermes --keep 7"))
@click.argument("database", required=False, metavar="[DB]")
@home_option
@click.option("-o", "--output", metavar="FILE", callback=writable, help="Write this new file instead.")
@click.option(
    "--keep", type=click.IntRange(min=1), metavar="N", help="Leave so many backups, remove older ones."
)
@click.option("--list", "list_", is_flag=True, help="List the backups there are; makes none.")
@format_option
@click.pass_context
def command(
    ctx: click.Context,
    database: str | None,
    home: str | None,
    output: str | None,
    keep: int | None,
    list_: bool,
    format_: str,
) -> None:
    """Make a verified copy of a database.

    A running gateway notices nothing. The copy lies in dbtools/backups beside the database, readable by its
    owner only. Where nothing has changed since the last one, none is made. --keep counts what this command
    made: backups of repairs, and what a restore replaced, are never removed.
    """
    from .. import documents
    from ..backups import shelf, taking
    from ..backups.documents import BackupsDocument
    from ..report import backups as report
    from ..sizes import path_text
    from ..targets import one_target

    if list_ and (output is not None or keep is not None):
        raise click.UsageError("--list makes no backup: not with -o or --keep", ctx)
    if output is not None and (keep is not None or output == "-"):
        raise click.UsageError("-o names one new file: not with --keep, and not stdout", ctx)
    where = one_target(database, home, missing_ok=list_)
    if list_:
        found = BackupsDocument(database=path_text(where.database), backups=shelf.kept(where))
        write(documents.encode(found) if format_ == "json" else report.list_text(found))
        return
    options = taking.BackupOptions(output=None if output is None else Path(output), keep=keep)
    with Progress() as progress:
        done = taking.back_up(where, options, progress)
    if format_ == "json":
        write(documents.encode(done))
        return
    write(report.backup_text(done))
    hint(report.backup_next(done))
