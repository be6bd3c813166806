"""From a request to a plan to a repaired file, as the `repair` command needs it; writes only through `apply`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from . import apply, database, lock_estimate, plan_documents, preflight, receipts, settle, unfinished
from .damage import REGISTRY
from .damage._declare import IDLE_SECONDS
from .home import Home
from .model import Active, CouldNotLook, DatabaseReport, Plan, Receipt, Refused, Severity, UsageError
from .plan import PlanOptions, make_plan
from .scanning import ScanOptions, exit_code, scan
from .selection import checked_choices, parse_choice
from .sizes import counted


@dataclass(frozen=True, slots=True)
class Request:
    """What the operator asked for; `choices` are the words as given."""

    home: Home
    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    fail_on: Severity | None = Severity.WARNING
    choices: tuple[str, ...] = ()
    allow_lossy: bool = False
    max_rows: int | None = None
    plan_file: str | None = None
    idle: float | None = None


@dataclass(frozen=True, slots=True)
class Prepared:
    """A scan and the plan that follows from it. `exit_code` is the one of a dry run."""

    report: DatabaseReport
    plan: Plan
    exit_code: int
    lock_seconds: float


@dataclass(frozen=True, slots=True)
class Done:
    """What was applied, and the scan afterwards."""

    receipt: Receipt | None
    report: DatabaseReport
    exit_code: int


def prepare(request: Request, progress: Callable[[str], None]) -> Prepared:
    """Scan and plan, or load the saved plan.

    Raises CouldNotLook when the file as a whole cannot be looked at, UsageError for a plan of another file.
    """
    choices = checked_choices(REGISTRY, (parse_choice(choice) for choice in request.choices))
    saved = None if request.plan_file is None else _load(request.plan_file)
    report = _scan(request, progress)
    if report.error:
        raise CouldNotLook(report.error)
    plan = saved or make_plan(
        report, PlanOptions(choices, request.allow_lossy, request.max_rows, request.idle)
    )
    state = database.examine(request.home.database)
    if saved is not None:
        preflight.refuse_wrong_file(saved, state)
    return Prepared(report, plan, exit_code((report,), request.fail_on), lock_estimate.seconds(plan, state))


def refuse_nothing_to_do(prepared: Prepared) -> None:
    """Raise Active when every finding that could be mended belongs to a live session, Refused for a newer file."""
    shape = prepared.report.shape
    if shape is not None and not shape.known:
        raise Refused(
            f"{prepared.report.path}: newer than this tool knows, report only; nothing was changed; update hermes-dbtools"
        )
    active = prepared.plan.skipped_active
    if active and not prepared.plan.steps:
        sessions = sorted({str(item.session_id) for item in active})
        raise Active(
            f"{counted(len(sessions), 'live session')} left alone: {sessions[0]} "
            f"({active[0].reason}); nothing was changed; try again when it is idle"
        )


def carry_out(
    request: Request, prepared: Prepared, options: apply.ApplyOptions, progress: Callable[[str], None]
) -> Done:
    """Apply the plan and scan again. A plan without steps changes nothing."""
    if not prepared.plan.steps:
        return Done(None, prepared.report, prepared.exit_code)
    receipt = apply.apply_plan(request.home, prepared.plan, replace(options, progress=progress))
    report = _scan(request, progress)
    return Done(receipt, report, exit_code((report,), request.fail_on))


def finish_pending(home: Home) -> None:
    """Finish what a crash left behind the COMMIT of a repair or an undo; changes no row.

    Before the scan of an apply: the files it puts back are findings until then.
    """
    waiting = any(receipt.status in ("pending", "committed") for receipt in receipts.read_all(home))
    if waiting or any(unfinished.begun(home)):
        state = database.examine(home.database)
        with database.repair_lock(state.path):
            settle.settle_home(home, state)


def rehearse(request: Request, prepared: Prepared, options: apply.ApplyOptions) -> dict[str, int]:
    """Run the plan on a private copy; returns rows changed by table."""
    return apply.rehearse(request.home, prepared.plan, options) if prepared.plan.steps else {}


def _scan(request: Request, progress: Callable[[str], None]) -> DatabaseReport:
    options = ScanOptions(
        select=request.select,
        ignore=request.ignore,
        limit=None,
        fail_on=request.fail_on,
        idle=IDLE_SECONDS if request.idle is None else request.idle,
    )
    (report,) = scan((str(request.home.database),), options, progress).databases
    return report


def _load(plan_file: str) -> Plan:
    try:
        content = Path(plan_file).read_bytes()
    except OSError as error:
        raise UsageError(f"{plan_file}: {error.strerror}") from None
    return plan_documents.decode_plan(content, plan_file)
