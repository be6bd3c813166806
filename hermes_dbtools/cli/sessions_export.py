"""`hermes-dbtools sessions export`: write sessions into a file; deletes them only when told to and proved."""

from __future__ import annotations

import click

from .options import Progress, epilog, needs_yes, say, writable, write

CODES = {
    0: "exported, and deleted where that was asked",
    1: "a session is live: Cannot delete active session; the export stays",
    2: "usage, no session has this id, or the file is there already",
    3: "could not look",
    4: "refused or rolled back: nothing was deleted; the export stays",
}


@click.command("export", epilog=epilog(CODES, "hermes-dbtools sessions export 20260528_202640 -o talk.jsonl"))
@click.argument("ids", nargs=-1, required=True, metavar="ID...")
@click.option("--home", metavar="PATH", help="The Hermes home, or its state.db.")
@click.option(
    "-o", "--output", required=True, metavar="FILE", callback=writable, help="The file to write; - is stdout."
)
@click.option(
    "--format", "form", type=click.Choice(["jsonl", "json", "md"]), default="jsonl", show_default=True
)
@click.option("--force", is_flag=True, help="Replace FILE where it is there already.")
@click.option(
    "--delete-after-verified",
    is_flag=True,
    help="Then read FILE back and delete the sessions if it holds exactly what the store holds.",
)
@click.option("--yes", is_flag=True, help="Do not ask before --delete-after-verified.")
def command(
    ids: tuple[str, ...],
    home: str | None,
    output: str,
    form: str,
    force: bool,
    delete_after_verified: bool,
    yes: bool,
) -> None:
    """Write sessions with their whole lineage into a file that only its owner may read.

    ID is an id, the beginning of one, or a title. With it go the sessions of its compression chain and its delegates. A line of
    jsonl is what the store's own import reads.
    """
    from ..report import receipts, session_list
    from ..sessions import export
    from ..sessions.export_form import FORMATS
    from ..targets import one_target

    if delete_after_verified and (form == "md" or output == "-"):
        raise click.UsageError("--delete-after-verified needs a file of format json or jsonl")
    needs_yes(delete_after_verified and not yes)
    where = one_target(None, home)
    chosen = next(one for one in FORMATS if one == form)
    with Progress() as progress:
        done = export.export(where, ids, output, export.ExportOptions(form=chosen, force=force), progress)
    say(session_list.exported_text(done))
    if not delete_after_verified:
        return
    if not yes:
        click.confirm(f"delete {len(done.sessions):,} sessions if the file holds them?", abort=True, err=True)
    write(receipts.receipt_text(export.delete_verified(where, done)))
