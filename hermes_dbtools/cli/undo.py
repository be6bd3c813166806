"""`hermes-dbtools undo`: show or take back an applied plan; what is a conflict is decided elsewhere."""

from __future__ import annotations

import click

from .options import UNDO_CODES, Progress, epilog, format_option, home_option, needs_yes, say, write


@click.command("undo", epilog=epilog(UNDO_CODES, "hermes-dbtools undo ~/.hermes --apply"))
@click.argument("database", required=False, metavar="[DB]")
@click.argument("receipt", required=False, metavar="[RECEIPT]")
@home_option
@click.option("--apply", "apply_", is_flag=True, help="Take it back; without it nothing is written.")
@click.option("--yes", is_flag=True, help="Do not ask before --apply.")
@click.option(
    "--online", is_flag=True, help="Permit it beside other processes, for sessions that are not live."
)
@format_option
def command(
    database: str | None,
    receipt: str | None,
    home: str | None,
    apply_: bool,
    yes: bool,
    online: bool,
    format_: str,
) -> None:
    """Show what an undo would restore; with --apply, restore it.

    RECEIPT is the beginning of an id as `history` lists it; without it, the newest is taken.
    """
    from .. import documents
    from ..report.receipts import undo_text
    from ..targets import one_target
    from ..undoing import UndoOptions, choose_receipt, undo

    needs_yes(apply_ and not yes)
    where = one_target(database, home)
    chosen = choose_receipt(where, receipt)
    as_json = format_ == "json"
    text = undo_text(chosen, done=False)
    if not apply_:
        write(documents.encode_receipt(chosen) if as_json else text)
        return
    if not yes:
        (say if as_json else write)(text)
        click.confirm("take it back?", abort=True, err=True)
    with Progress() as progress:
        undone = undo(where, chosen, UndoOptions(online=online, progress=progress))
    write(documents.encode_receipt(undone) if as_json else undo_text(undone, done=True))
