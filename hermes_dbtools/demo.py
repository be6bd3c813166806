"""Make a damaged home in a temporary folder and show every step on it; touches no other home."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

from . import home as homes
from . import repairing
from .apply import ApplyOptions
from .damage import REGISTRY
from .fixtures.shapes import empty_steps, script
from .fixtures.steps import Step
from .fixtures.steps import run as run_steps
from .model import CouldNotLook
from .report import plans, receipts, scans
from .scanning import ScanOptions, scan
from .undoing import undo

SCRIPTS = ("demo_healthy", "demo_damage")


def make_home(folder: Path) -> homes.Home:
    """Make a home of 13 invented sessions in `folder` and damage it as other programs have been seen to."""
    steps = [*empty_steps("22"), *(Step(script(name)) for name in SCRIPTS)]
    run_steps(folder / homes.DATABASE_NAME, steps)
    return homes.resolve(str(folder))


def run(write: Callable[[str], None], *, keep: bool) -> None:
    """Show scan, dry run, repair, scan and undo. Raises CouldNotLook when the demo does not end as it should."""
    folder = Path(tempfile.mkdtemp(prefix="hermes-demo-"))
    try:
        _show(write, make_home(folder), folder)
    finally:
        if keep:
            write(f"\nthe home stays: {folder}\n")
        else:
            shutil.rmtree(folder)


def _show(write: Callable[[str], None], home: homes.Home, folder: Path) -> None:
    def command(line: str) -> None:
        write(f"\n$ hermes-dbtools {line}\n")

    def quiet(_what: str) -> None:
        return None

    database = str(home.database)
    write(f"A home was made in {folder} and damaged. What an operator would do now:\n")
    command(f"scan {database}")
    before = scan((database,))
    write(scans.scan_text(before))
    command(f"repair {database}")
    request = repairing.Request(home)
    prepared = repairing.prepare(request, quiet)
    write(plans.plan_text(prepared.plan, prepared.report, seconds=prepared.lock_seconds))
    command(f"repair {database} --apply --allow-lossy --yes")
    request = repairing.Request(home, allow_lossy=True)
    done = repairing.carry_out(request, repairing.prepare(request, quiet), ApplyOptions(), quiet)
    if done.receipt is None:
        raise CouldNotLook("the demo found nothing to repair; please report this")
    write(receipts.receipt_text(done.receipt))
    command(f"scan {database}")
    after = scan((database,))
    write(scans.scan_text(after))
    command(f"undo {database} --apply --yes")
    write(receipts.undo_text(undo(home, done.receipt), done=True))
    command(f"scan {database}")
    again = scan((database,), ScanOptions())
    write(scans.scan_text(again))
    found = [
        [(r.code, r.count) for r in report.databases[0].results if r.count] for report in (before, again)
    ]
    if found[0] != found[1] or after.exit_code != 0:
        raise CouldNotLook("the demo did not end as it should; please report this")
    count = len(REGISTRY)
    write(f"\nThe same findings as before: undone. {count} damage classes were checked each time.\n")
