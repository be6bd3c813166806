"""`hermes-dbtools undo`: show or take back an applied plan; what is a conflict is decided elsewhere."""

from __future__ import annotations

import click

from .options import WRITE_CODES, epilog, home_option, write


@click.command("undo", epilog=epilog(WRITE_CODES, "hermes-dbtools undo ~/.hermes --apply"))
@click.argument("database", required=False, metavar="[DB]")
@click.argument("receipt", required=False, metavar="[RECEIPT]")
@home_option
@click.option("--apply", "apply_", is_flag=True, help="Take it back; without it nothing is written.")
@click.option("--yes", is_flag=True, help="Do not ask before --apply.")
@click.option(
    "--online", is_flag=True, help="Permit it beside other processes, for sessions that are not live."
)
def command(
    database: str | None, receipt: str | None, home: str | None, apply_: bool, yes: bool, online: bool
) -> None:
    """Show what taking back a receipt would restore (the newest by default); with --apply, restore it."""
    from ..model import UsageError
    from ..report import table
    from ..targets import one_target
    from ..undoing import UndoOptions, choose_receipt, undo

    where = one_target(database, home)
    chosen = choose_receipt(where, receipt)
    if not apply_:
        write(table.undo_text(chosen, done=False))
        return
    if not yes:
        write(table.undo_text(chosen, done=False))
        if not click.get_text_stream("stdin").isatty():
            raise UsageError("--apply without a terminal needs --yes")
        click.confirm("take it back?", abort=True, err=True)
    write(table.undo_text(undo(where, chosen, UndoOptions(online=online)), done=True))
