"""`hermes-dbtools scan`: diagnose, print, exit; changes nothing."""

from __future__ import annotations

import click

from .options import (
    SCAN_CODES,
    Progress,
    epilog,
    format_option,
    home_option,
    selection,
    severity,
    writable,
    write,
)


@click.command("scan", epilog=epilog(SCAN_CODES, "hermes-dbtools scan ~/.hermes --select references,lineage"))
@click.argument("databases", nargs=-1, metavar="[DB]...")
@home_option
@click.option("--all-profiles", is_flag=True, help="Also every named profile of the home.")
@selection
@click.option(
    "--deep", is_flag=True, help="Also the slow checks: rows are read without indexes, images are decoded."
)
@click.option(
    "--pause-writers", is_flag=True, help="Let writers of a rollback-journal file wait for one whole copy."
)
@format_option
@click.option(
    "--output", metavar="FILE", callback=writable, help="Write the report there instead of to stdout."
)
@click.option("--verbose", is_flag=True, help="List every finding.")
@click.option("--timings", is_flag=True, help="Seconds per class and for the structural check.")
@click.option(
    "--json-schema",
    type=click.Choice(["report", "plan", "receipt"]),
    help="Print the JSON Schema of a document instead of scanning.",
)
def command(
    databases: tuple[str, ...],
    home: str | None,
    all_profiles: bool,
    select: tuple[str, ...],
    ignore: tuple[str, ...],
    fail_on: str,
    deep: bool,
    pause_writers: bool,
    format_: str,
    output: str | None,
    verbose: bool,
    timings: bool,
    json_schema: str | None,
) -> None:
    """Diagnose databases; changes nothing.

    Says what is damaged, how badly, and what to run next.
    """
    from .. import documents, engine, schemas
    from ..report import table
    from ..scanning import ScanOptions, scan
    from ..targets import scan_targets

    if json_schema is not None:
        write(documents.encode(schemas.json_schema(json_schema)), output)
        return
    targets = scan_targets(databases, home, all_profiles=all_profiles)
    options = ScanOptions(
        select=select, ignore=ignore, deep=deep, pause_writers=pause_writers, fail_on=severity(fail_on)
    )
    with Progress() as progress:
        report = scan(targets, options, progress)
    if format_ == "json":
        write(documents.encode(documents.report_document(report, engine.versions(), timings=timings)), output)
    else:
        write(table.scan_text(report, verbose=verbose, timings=timings), output)
    raise SystemExit(report.exit_code)
