"""`hermes-dbtools report`: what is done with reports once they are made; scans nothing."""

from __future__ import annotations

import click

from .options import PRINT_CODES, epilog, format_option, prepared, say, writable, write

CODES = {
    0: "nothing at or above the --fail-on of the scans",
    1: "a report has findings",
    2: "usage, or a file that is no report",
    3: "a scan could not look",
}
EXAMPLE = "hermes-dbtools report merge ~/reports/web1.json ~/reports/web2.json"


@click.group("report", epilog=epilog(CODES, EXAMPLE))
def command() -> None:
    """Put JSON reports of many hosts together."""


@prepared
@command.command("merge", epilog=epilog(CODES, EXAMPLE))
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@format_option
@click.option(
    "--output", metavar="OUTPUT", callback=writable, help="Write the report there instead of to stdout."
)
def merge(files: tuple[str, ...], format_: str, output: str | None) -> None:
    """Put reports of `scan --format json` into one.

    A host is called what `scan --host` said, else what its file is called.
    """
    from .. import documents, merging
    from ..report.merged import merged_text
    from ..shown import one_line

    merged = merging.merge(files)
    for note in merged.notes:
        say(f"hermes-dbtools: {one_line(note)}\n")
    write(documents.encode(merged.document) if format_ == "json" else merged_text(merged), output)
    raise SystemExit(merged.document.exit_code)


@prepared
@command.command("playbook", epilog=epilog(PRINT_CODES, "hermes-dbtools report playbook"))
def playbook() -> None:
    """Print the Ansible playbook that scans many hosts.

    What can be set is said at its top.
    """
    from .. import catalogue

    write(catalogue.playbook().encode())
