"""`hermes-dbtools explain`: say why a session fails or is hidden, or what a log means; changes nothing."""

from __future__ import annotations

import click

from .options import Progress, epilog, format_option, home_option, write

CODES = {
    0: "nothing is wrong with it now",
    1: "something is wrong, and said",
    2: "usage; an id that nothing knows; a file that is no log",
    3: "could not look",
}


@click.command("explain", epilog=epilog(CODES, "hermes-dbtools explain 20260528_202640_5feceb"))
@click.argument("words", nargs=-1, metavar="[DB] [SESSION]")
@home_option
@click.option(
    "--log",
    "logs",
    multiple=True,
    metavar="FILE",
    help="A log of the agent or gateway, of gzip or not; - is standard input; repeatable, for a rotated one.",
)
@format_option
def command(words: tuple[str, ...], home: str | None, logs: tuple[str, ...], format_: str) -> None:
    """Say why a session fails or is hidden, or what a log means.

    SESSION is an id, the beginning of one, or a title; one word alone is DB where a file bears that name. Without
    SESSION, a log is read: --log, or standard input; one line of a log may stand for SESSION. Of a log, only kinds of
    failure, ids and times are told.
    Changes nothing.
    """
    from .. import documents
    from ..explain.asking import answer
    from ..report import explain as report

    with Progress() as progress:
        explanation = answer(words, home, logs, progress)
    write(documents.encode(explanation) if format_ == "json" else report.text(explanation))
    raise SystemExit(explanation.exit_code)
