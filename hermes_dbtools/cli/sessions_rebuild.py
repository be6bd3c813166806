"""`hermes-dbtools sessions rebuild`: show what would come back of a lost session, or bring it back."""

from __future__ import annotations

import click

from .options import as_given, epilog, format_option, hint, needs_yes, say, write

CODES = {
    0: "rebuilt, or shown what would be",
    1: "the session is live: its agent may heal it",
    2: "usage, or nothing of such a session is left",
    3: "could not look",
    4: "refused or rolled back: no row was changed",
}


@click.command(
    "rebuild", epilog=epilog(CODES, "hermes-dbtools sessions rebuild 20260528_202640_5feceb --apply")
)
@click.argument("word", metavar="ID")
@click.option("--home", metavar="PATH", help="The Hermes home, or its state.db.")
@click.option("--apply", "apply_", is_flag=True, help="Rebuild it; without it nothing is written.")
@click.option("--yes", is_flag=True, help="Do not ask before --apply.")
@click.option(
    "--no-backup", is_flag=True, help="Do not copy the database first; the undo file is still written."
)
@format_option
@click.pass_context
def command(
    ctx: click.Context, word: str, home: str | None, apply_: bool, yes: bool, no_backup: bool, format_: str
) -> None:
    """Give a session whose row is lost its row and its transcript again, under the same id.

    Reads sessions/ID.jsonl, ID.json and session_ID.json and keeps the messages that are left, each once. A session that is there,
    that its user deleted, or that is live is refused.
    """
    from .. import documents, plan_documents
    from ..plan import totals
    from ..report import session_list as report
    from ..report.receipts import receipt_text
    from ..sessions import rebuild
    from ..targets import one_target

    needs_yes(apply_ and not yes)
    where = one_target(None, home)
    options = rebuild.RebuildOptions(backup=not no_backup)
    prepared = rebuild.prepare(where, word, options)
    as_json = format_ == "json"
    if not apply_:
        document = plan_documents.plan_document(prepared.plan, totals(prepared.plan), prepared.planners)
        write(documents.encode(document) if as_json else report.rebuild_text(prepared))
        if not as_json:
            hint(report.rebuild_next(prepared, as_given(ctx, ("apply_", "yes", "format_"))))
        return
    if not yes:
        say(report.rebuild_text(prepared))
        click.confirm("rebuild it?", abort=True, err=True)
    receipt = rebuild.carry_out(where, prepared, options)
    write(documents.encode_receipt(receipt) if as_json else receipt_text(receipt))
