"""`hermes-dbtools repair`: print the plan, or apply it; what may be applied is decided elsewhere."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from .options import (
    FAIL_ON,
    WRITE_CODES,
    Progress,
    epilog,
    format_option,
    hint,
    home_option,
    selection,
    write,
)

if TYPE_CHECKING:
    from ..model import Plan


@click.command(
    "repair",
    epilog=epilog(WRITE_CODES, "hermes-dbtools repair ~/.hermes --choose orphaned-messages=adopt --apply"),
)
@click.argument("database", required=False, metavar="[DB]")
@home_option
@selection
@click.option("--apply", "apply_", is_flag=True, help="Change the database; without it nothing is written.")
@click.option("--yes", is_flag=True, help="Do not ask before --apply. Allows nothing that was not allowed.")
@click.option(
    "--choose", multiple=True, metavar="SLUG=ANSWER", help="The answer for a class that has several."
)
@click.option("--allow-lossy", is_flag=True, help="Permit answers that drop rows or values.")
@click.option(
    "--max-rows", type=click.IntRange(min=0), help="How many rows the plan may remove.  [default: 10000]"
)
@click.option(
    "--online", is_flag=True, help="Permit it beside other processes, for sessions that are not live."
)
@click.option(
    "--no-backup", is_flag=True, help="Do not copy the database first; the undo file is still written."
)
@click.option("--verify", is_flag=True, help="Digests of all rows before and after, for the receipt.")
@click.option("--rehearse", is_flag=True, help="Run the real statements on a private copy and roll back.")
@click.option("--save-plan", metavar="FILE", help="Write the plan as JSON.")
@click.option(
    "--plan", "plan_file", metavar="FILE", help="Use this saved plan; it must still fit the database."
)
@format_option
@click.option("--verbose", is_flag=True, help="List every step and everything skipped.")
def command(  # noqa: PLR0913 - one parameter per option
    database: str | None,
    home: str | None,
    select: tuple[str, ...],
    ignore: tuple[str, ...],
    fail_on: str,
    apply_: bool,
    yes: bool,
    choose: tuple[str, ...],
    allow_lossy: bool,
    max_rows: int | None,
    online: bool,
    no_backup: bool,
    verify: bool,
    rehearse: bool,
    save_plan: str | None,
    plan_file: str | None,
    format_: str,
    verbose: bool,
) -> None:
    """Show what would be changed, in one transaction; with --apply, change it, with an undo and a backup."""
    from .. import documents, repairing
    from ..apply import ApplyOptions
    from ..plan import totals
    from ..report import table
    from ..targets import one_target

    progress = Progress()
    request = repairing.Request(
        home=one_target(database, home),
        select=select,
        ignore=ignore,
        fail_on=FAIL_ON[fail_on],
        choices=choose,
        allow_lossy=allow_lossy,
        max_rows=max_rows,
        plan_file=plan_file,
    )
    prepared = repairing.prepare(request, progress)
    plan = prepared.plan
    if save_plan is not None:
        write(documents.encode(documents.plan_document(plan, totals(plan))), save_plan)
    options = ApplyOptions(online=online, backup=not no_backup, verify=verify)
    if rehearse:
        changed = repairing.rehearse(request, prepared, options)
        progress.done()
        write(table.rehearsal_text(changed))
        raise SystemExit(prepared.exit_code)
    if not apply_:
        progress.done()
        if format_ == "json":
            write(documents.encode(documents.plan_document(plan, totals(plan))))
        else:
            write(table.plan_text(plan, prepared.report, seconds=prepared.lock_seconds, verbose=verbose))
            hint(table.plan_next(plan, prepared.report))
        raise SystemExit(prepared.exit_code)
    repairing.refuse_nothing_to_do(prepared)
    if not yes and plan.steps:
        progress.done()
        write(table.plan_text(plan, prepared.report, seconds=prepared.lock_seconds, verbose=verbose))
        _confirm(plan)
    done = repairing.carry_out(request, prepared, options, progress)
    progress.done()
    if done.receipt is not None:
        write(
            documents.encode_receipt(done.receipt) if format_ == "json" else table.receipt_text(done.receipt)
        )
    write(table.leftover_text(done.report, plan)) if format_ == "table" else None
    raise SystemExit(done.exit_code)


def _confirm(plan: Plan) -> None:
    from ..model import UsageError

    if not click.get_text_stream("stdin").isatty():
        raise UsageError("--apply without a terminal needs --yes")
    click.confirm(f"apply these {len(plan.steps):,} steps?", abort=True, err=True)
