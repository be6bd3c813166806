"""`hermes-dbtools sessions show`: print everything about one session; changes nothing."""

from __future__ import annotations

import click

from .options import READ_CODES, Progress, epilog, format_option, write


@click.command("show", epilog=epilog(READ_CODES, "hermes-dbtools sessions show 20260528_202640"))
@click.argument("word", metavar="ID")
@click.option("--home", metavar="PATH", help="The Hermes home, or its state.db.")
@format_option
def command(word: str, home: str | None, format_: str) -> None:
    """Show one session: lineage, who holds it, rows and bytes, images, receipts, findings.

    ID is an id, the beginning of one, or a title.
    """
    from .. import documents
    from ..report import session_list as report
    from ..sessions.showing import show
    from ..targets import one_target

    with Progress() as progress:
        shown = show(one_target(None, home), word, progress=progress)
    if format_ == "json":
        write(documents.encode(report.show_document(shown)))
    else:
        write(report.show_text(shown))
