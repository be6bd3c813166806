"""`hermes-dbtools salvage`: get the rows out of a damaged file into a new one; never writes the damaged one."""

from __future__ import annotations

import click

from .options import Progress, epilog, format_option, hint, write

CODES = {
    0: "everything was read",
    1: "something was lost, or is not as it must be: the answer says what",
    2: "usage",
    3: "nothing can be read, or it is no store: nothing was made",
    4: "refused, or OUTPUT cannot be written: nothing was made",
}


@click.command("salvage", epilog=epilog(CODES, "hermes-dbtools salvage ~/.hermes/state.db ~/new-state.db"))
@click.argument("source", metavar="SOURCE")
@click.argument("output", metavar="OUTPUT")
@format_option
def command(source: str, output: str, format_: str) -> None:
    """Get the rows out of a damaged file into a new store.

    SOURCE is a state.db or a Hermes home; it is copied and never opened. OUTPUT must not be there yet; it gets the
    shape of SOURCE.
    """
    from .. import documents, engine
    from ..report import salvage as report
    from ..salvage import api

    with Progress() as progress:
        done = api.salvage_target(source, output, progress)
    if format_ == "json":
        write(documents.encode(report.salvage_document(done, engine.versions())))
    else:
        write(report.salvage_text(done))
        hint(report.salvage_next(done))
    raise SystemExit(done.exit_code)
