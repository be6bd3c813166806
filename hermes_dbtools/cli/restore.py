"""`hermes-dbtools restore`: show or put a backup in place of a database; whether that may be is decided elsewhere."""

from __future__ import annotations

import click

from .options import Progress, as_given, epilog, format_option, hint, home_option, needs_yes, say, write

CODES = {
    0: "shown, or restored",
    1: "restored, and something failed after that",
    2: "usage",
    3: "could not look",
    4: "refused: the database is what it was",
}


@click.command("restore", epilog=epilog(CODES, "hermes-dbtools restore latest ~/.hermes"))
@click.argument("backup", metavar="BACKUP")
@click.argument("database", required=False, metavar="[DB]")
@home_option
@click.option("--apply", "apply_", is_flag=True, help="Put it in place; without it nothing is written.")
@click.option("--yes", is_flag=True, help="Do not ask before --apply.")
@format_option
@click.pass_context
def command(
    ctx: click.Context,
    backup: str,
    database: str | None,
    home: str | None,
    apply_: bool,
    yes: bool,
    format_: str,
) -> None:
    """Show what a restore would replace; with --apply, restore.

    BACKUP is a file, the beginning of a name as `backup --list` shows it, or `latest`. It is verified first.
    The database must not be in use. Its owner, mode and application_id stay, what lies beside it (-wal, -shm,
    -journal) goes, and the file itself is kept: it can be restored again.
    """
    from .. import documents
    from ..backups import restoring
    from ..report import backups as report
    from ..targets import one_target

    needs_yes(apply_ and not yes)
    where = one_target(database, home, missing_ok=True)
    as_json = format_ == "json"
    with Progress() as progress:
        prepared = restoring.prepare(where, backup, progress)
    seen = prepared.document()
    if not apply_:
        write(documents.encode(seen) if as_json else report.restore_text(seen))
        if not as_json:
            hint(report.restore_next(seen, as_given(ctx, ("apply_", "yes", "format_", "home"))))
        return
    if as_json or not yes:
        say(report.restore_text(seen))
    if not yes:
        click.confirm("put it in place?", abort=True, err=True)
    with Progress() as progress:
        done = restoring.restore(where, prepared, progress=progress)
    write(documents.encode(done) if as_json else report.restore_text(done))
    if not as_json:
        hint(report.restored_next(done))
