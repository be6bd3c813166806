"""`hermes-dbtools sessions delete`: show what would go, or delete it; who may go is decided elsewhere."""

from __future__ import annotations

import click

from .options import as_given, epilog, format_option, hint, needs_yes, say, write

CODES = {
    0: "deleted, or shown what would be",
    1: "a session is live or was left alone: Cannot delete active session",
    2: "usage, or no session has this id",
    3: "could not look",
    4: "refused or rolled back: no row was changed",
}


@click.command(
    "delete", epilog=epilog(CODES, "hermes-dbtools sessions delete 20260528_202640_5feceb --apply")
)
@click.argument("ids", nargs=-1, required=True, metavar="ID...")
@click.option("--home", metavar="PATH", help="The Hermes home, or its state.db.")
@click.option("--apply", "apply_", is_flag=True, help="Delete; without it nothing is written.")
@click.option("--yes", is_flag=True, help="Do not ask before --apply.")
@click.option("--whole-chain", is_flag=True, help="With every session of the same compression chain.")
@click.option("--backup", is_flag=True, help="Copy and verify the whole database first.")
@format_option
@click.pass_context
def command(
    ctx: click.Context,
    ids: tuple[str, ...],
    home: str | None,
    apply_: bool,
    yes: bool,
    whole_chain: bool,
    backup: bool,
    format_: str,
) -> None:
    """Show what a delete of sessions would take along; with --apply, delete them.

    ID is an id or the beginning of one. Delegates go with their session, other children stay and become roots; files move
    beside the receipt, and undo brings everything back. Works while a gateway runs.
    """
    from ..report import sessions as report
    from ..sessions import documents
    from ..sessions.deleting import DeleteOptions, delete_all, refuse_active, refuse_left
    from ..sessions.looking import look
    from ..targets import one_target

    needs_yes(apply_ and not yes)
    where = one_target(None, home)
    seen = look(where, ids, whole_chain=whole_chain, words=True)
    if len(ids) == 1:
        refuse_active(seen)
    as_json = format_ == "json"
    text = report.plan_text(seen.plan, seen.lock_seconds)
    if not apply_ or not seen.plan.steps:
        write(documents.plan_document(seen) if as_json else text)
        if not as_json and not apply_ and seen.plan.steps:
            hint(report.plan_next(ids, as_given(ctx, ("apply_", "yes", "format_"))))
        raise SystemExit(1 if seen.active or seen.refused else 0)
    if not yes:
        say(text)
        click.confirm(f"delete {len(seen.going):,} sessions?", abort=True, err=True)
    done = delete_all(where, seen.asked, DeleteOptions(whole_chain, backup))
    if len(ids) == 1:
        refuse_left(done)
    write(documents.deletion_document(done) if as_json else report.deletion_text(done))
    raise SystemExit(done.exit_code)
