"""`hermes-dbtools scan`: diagnose, print, exit; changes nothing."""

from __future__ import annotations

from dataclasses import replace

import click

from .options import (
    SCAN_CODES,
    Progress,
    epilog,
    formats,
    home_option,
    idle_option,
    seconds_of,
    selection,
    severity,
    writable,
    write,
)

FORMATS = ("table", "json", "junit", "sarif", "github", "markdown", "prometheus")
DOCUMENTS = (
    "report", "plan", "receipt", "history", "baseline", "merged-report", "explain", "salvage", "compare", "space",
    "backup", "backups", "manifest", "restore", "sessions", "session", "deletion", "export",
)  # fmt: skip


@click.command("scan", epilog=epilog(SCAN_CODES, "hermes-dbtools scan ~/.hermes --select references,lineage"))
@click.argument("databases", nargs=-1, metavar="[DB]...")
@home_option
@click.option("--all-profiles", is_flag=True, help="Also every named profile of the home.")
@selection
@idle_option
@click.option(
    "--deep", is_flag=True, help="Also the slow checks: rows are read without indexes, images are decoded."
)
@click.option(
    "--pause-writers", is_flag=True, help="Let writers of a rollback-journal file wait for one whole copy."
)
@click.option(
    "-j", "--jobs", type=click.IntRange(min=1), default=1, metavar="N", help="Databases to look at at a time."
)
@click.option(
    "--baseline", metavar="FILE", help="Findings that are accepted: shown, and not counted for --fail-on."
)
@click.option(
    "--update-baseline",
    is_flag=True,
    help="Enter what counts now, drop what is not there any more; reasons and dates stay.",
)
@formats(*FORMATS)
@click.option(
    "--output", metavar="FILE", callback=writable, help="Write the report there instead of to stdout."
)
@click.option("--quiet", is_flag=True, help="Print nothing when the exit code is 0, and no progress.")
@click.option("--verbose", is_flag=True, help="List every finding.")
@click.option("--timings", is_flag=True, help="Seconds per class and for the structural check.")
@click.option("--host", default="", metavar="NAME", help="A name for the report to carry, for report merge.")
@click.option(
    "--json-schema",
    type=click.Choice(DOCUMENTS),
    metavar="NAME",
    help=f"Print the JSON Schema of a document instead of scanning: {', '.join(DOCUMENTS)}.",
)
def command(
    databases: tuple[str, ...],
    home: str | None,
    all_profiles: bool,
    select: tuple[str, ...],
    ignore: tuple[str, ...],
    fail_on: str,
    idle: int | None,
    deep: bool,
    pause_writers: bool,
    jobs: int,
    baseline: str | None,
    update_baseline: bool,
    format_: str,
    output: str | None,
    quiet: bool,
    verbose: bool,
    timings: bool,
    host: str,
    json_schema: str | None,
) -> None:
    """Diagnose databases; changes nothing.

    Says what is damaged, how badly, and what to run next.
    """
    from .. import documents, schemas
    from ..diagnosing import Request, diagnose, rendered
    from ..scanning import ScanOptions
    from ..targets import scan_targets

    if json_schema is not None:
        write(documents.encode(schemas.json_schema(json_schema)), output)
        return
    options = ScanOptions(
        select=select, ignore=ignore, deep=deep, pause_writers=pause_writers, fail_on=severity(fail_on)
    )
    if (seconds := seconds_of(idle)) is not None:
        options = replace(options, idle=seconds)
    targets = scan_targets(databases, home, all_profiles=all_profiles)
    request = Request(targets, options, jobs, baseline, update_baseline, host)
    with Progress(quiet=quiet) as progress:
        report = diagnose(request, progress)
    if output is not None or not quiet or report.exit_code:
        shown = rendered(report, request, format_, verbose=verbose, timings=timings)
        write(shown.decode("utf-8") if format_ == "table" else shown, output)
    raise SystemExit(report.exit_code)
