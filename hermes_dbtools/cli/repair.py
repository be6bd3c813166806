"""`hermes-dbtools repair`: print the plan, or apply it; what may be applied is decided elsewhere."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING

import click

from . import completing
from .options import (
    WRITE_CODES,
    Progress,
    as_given,
    epilog,
    format_option,
    hint,
    home_option,
    idle_option,
    needs_yes,
    say,
    seconds_of,
    selection,
    severity,
    writable,
    write,
)

if TYPE_CHECKING:
    from ..apply import ApplyOptions
    from ..repairing import Prepared, Request

NOT_REPEATED = ("apply_", "yes", "rehearse", "save_plan", "format_", "verbose", "home")
"""Options that the command after a dry run has no use for."""


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
    "--choose",
    multiple=True,
    metavar="SLUG=ANSWER",
    shell_complete=completing.choices,
    help="The answer for a class that has several.",
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
@click.option("--save-plan", metavar="FILE", callback=writable, help="Write the plan as JSON.")
@click.option(
    "--plan", "plan_file", metavar="FILE", help="Use this saved plan; it must still fit the database."
)
@idle_option
@format_option
@click.option("--verbose", is_flag=True, help="List every step and everything skipped.")
@click.pass_context
def command(
    ctx: click.Context,
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
    idle: int | None,
    format_: str,
    verbose: bool,
) -> None:
    """Show what would be changed; with --apply, change it.

    All of it in one transaction or nothing, with a verified backup and an undo file.
    """
    from .. import repairing
    from ..apply import ApplyOptions
    from ..report import next_steps, plans
    from ..targets import one_target

    _refuse_contradictions(ctx, apply_=apply_, rehearse=rehearse, plan_file=plan_file)
    needs_yes(apply_ and not yes)
    request = repairing.Request(
        home=one_target(database, home),
        select=select,
        ignore=ignore,
        fail_on=severity(fail_on),
        choices=choose,
        allow_lossy=allow_lossy,
        max_rows=max_rows,
        plan_file=plan_file,
        idle=seconds_of(idle),
    )
    options = ApplyOptions(online=online, backup=not no_backup, verify=verify)
    if apply_:
        repairing.finish_pending(request.home)
    with Progress() as progress:
        prepared = repairing.prepare(request, progress)
        rehearsed = (
            repairing.rehearse(request, prepared, replace(options, progress=progress)) if rehearse else None
        )
    if save_plan is not None:
        write(_document(prepared), save_plan)
    as_json = format_ == "json"
    text = plans.plan_text(
        prepared.plan, prepared.report, seconds=prepared.lock_seconds, verbose=verbose, dry=not apply_
    )
    if apply_ and prepared.plan.steps:
        if not yes:
            _ask(prepared, text, as_json=as_json)
        raise SystemExit(_carry_out(request, prepared, replace(options, now=time.time()), as_json=as_json))
    write(_document(prepared) if as_json else text)
    if rehearsed is not None:
        (say if as_json else write)(plans.rehearsal_text(rehearsed))
    elif apply_:
        repairing.refuse_nothing_to_do(prepared)
    elif not as_json:
        hint(next_steps.plan_next(prepared.plan, prepared.report, as_given(ctx, NOT_REPEATED)))
    raise SystemExit(prepared.exit_code)


def _document(prepared: Prepared) -> bytes:
    from .. import documents, plan_documents
    from ..plan import totals

    return documents.encode(plan_documents.plan_document(prepared.plan, totals(prepared.plan)))


def _ask(prepared: Prepared, text: str, *, as_json: bool) -> None:
    """Show the plan and ask whether it is to be applied. Raises Abort where it is not."""
    from ..sizes import counted

    (say if as_json else write)(text)
    click.confirm(f"apply {counted(len(prepared.plan.steps), 'step')}?", abort=True, err=True)


def _refuse_contradictions(
    ctx: click.Context, *, apply_: bool, rehearse: bool, plan_file: str | None
) -> None:
    if apply_ and rehearse:
        raise click.UsageError("--apply or --rehearse, not both", ctx)
    if plan_file is not None and (
        said := [
            name
            for name in ("choose", "allow_lossy", "max_rows", "select", "ignore", "idle")
            if ctx.params[name]
        ]
    ):
        option = said[0].replace("_", "-")
        raise click.UsageError(
            f"a saved plan says what is done: --plan and --{option} exclude each other", ctx
        )


def _carry_out(request: Request, prepared: Prepared, options: ApplyOptions, *, as_json: bool) -> int:
    from .. import documents, repairing
    from ..report.plans import leftover_text
    from ..report.receipts import receipt_text

    with Progress() as progress:
        done = repairing.carry_out(request, prepared, options, progress)
    if done.receipt is not None:
        write(documents.encode_receipt(done.receipt) if as_json else receipt_text(done.receipt))
    (say if as_json else write)(leftover_text(done.report, prepared.plan))
    return done.exit_code
