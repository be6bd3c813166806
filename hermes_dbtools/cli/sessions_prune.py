"""`hermes-dbtools sessions prune`: show which old sessions would go, or delete them; which may go is decided elsewhere."""

from __future__ import annotations

import click

from .options import as_given, epilog, format_option, hint, needs_yes, say, write

CODES = {
    0: "pruned, or shown what would be",
    1: "a session is live or was left alone",
    2: "usage",
    3: "could not look",
    4: "refused or rolled back: no row was changed",
}


@click.command("prune", epilog=epilog(CODES, "hermes-dbtools sessions prune --older-than 30d --source cron"))
@click.option(
    "--older-than", required=True, metavar="AGE", help="Without any activity for so long: 30d, 12h, 2w."
)
@click.option("--source", help="Only of this source.")
@click.option("--end-reason", help="Only those that ended for this reason.")
@click.option("--title", metavar="TEXT", help="Only with this text in the title.")
@click.option("--model", metavar="TEXT", help="Only with this text in the model's name.")
@click.option("--folder", metavar="PATH", help="Only those that worked in this folder or below it.")
@click.option("--user", metavar="ID", help="Only of this user of a platform.")
@click.option("--archived/--not-archived", default=None, help="Only archived ones, or only others.")
@click.option("--min-messages", type=click.IntRange(min=0), help="Only with so many messages or more.")
@click.option("--max-messages", type=click.IntRange(min=0), help="Only with so many messages or fewer.")
@click.option("--home", metavar="PATH", help="The Hermes home, or its state.db.")
@click.option("--apply", "apply_", is_flag=True, help="Delete; without it nothing is written.")
@click.option("--yes", is_flag=True, help="Do not ask before --apply.")
@click.option("--backup", is_flag=True, help="Copy and verify the whole database first.")
@format_option
def command(
    older_than: str,
    home: str | None,
    apply_: bool,
    yes: bool,
    backup: bool,
    format_: str,
    **asked: str | int | None,
) -> None:
    """Show which old sessions would go; with --apply, delete them.

    Whole lineages only: a compression chain with its delegates goes when all of it is old and has ended. Live, pinned and
    half-matched lineages are spared and counted; branches stay and become roots.
    """
    from ..report import sessions as report
    from ..sessions import documents, pruning
    from ..targets import one_target

    needs_yes(apply_ and not yes)
    where = one_target(None, home)
    wanted = {name.replace("_", "-"): value for name, value in asked.items() if value is not None}
    seen = pruning.look_at(where, older_than, wanted)
    as_json = format_ == "json"
    text = report.plan_text(seen.look.plan, seen.look.lock_seconds) + report.spared_text(
        seen.pinned, seen.half_matched
    )
    if not apply_ or not seen.look.plan.steps:
        write(documents.plan_document(seen.look) if as_json else text)
        if not as_json and not apply_ and seen.look.plan.steps:
            hint(
                [
                    f"hermes-dbtools sessions prune{as_given(click.get_current_context(), ('apply_', 'yes', 'format_'))} --apply"
                ]
            )
        raise SystemExit(1 if seen.look.active or seen.look.refused else 0)
    if not yes:
        say(text)
        click.confirm(f"delete {len(seen.look.going):,} sessions?", abort=True, err=True)
    done = pruning.prune(where, seen, backup=backup)
    spared = report.spared_text(seen.pinned, seen.half_matched)
    write(documents.deletion_document(done) if as_json else report.deletion_text(done) + spared)
    raise SystemExit(done.exit_code)
