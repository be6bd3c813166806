"""Options that several commands share, and how a command writes its answer; holds no command."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from ..model import Severity, UsageError

F = TypeVar("F", bound=Callable[..., Any])

FAIL_ON = {"error": Severity.ERROR, "warning": Severity.WARNING, "note": Severity.NOTE, "never": None}

SCAN_CODES = "Exit codes: 0 nothing at or above --fail-on; 1 findings; 2 usage; 3 could not look (a check, or the whole file)."
WRITE_CODES = (
    "Exit codes: 0 done, and nothing at or above --fail-on is left; 1 findings are left, or the sessions are live; "
    "2 usage; 3 could not look; 4 refused or rolled back: no row was changed."
)
READ_CODES = "Exit codes: 0 printed; 2 usage; 3 could not look."


def epilog(codes: str, example: str) -> str:
    """The end of every help: exit codes and one example."""
    return f"{codes}\n\nExample: {example}"


def selection(function: F) -> F:
    """--select, --ignore and --fail-on."""
    function = click.option(
        "--fail-on",
        type=click.Choice(list(FAIL_ON)),
        default="warning",
        show_default=True,
        help="Lowest severity that makes the exit code 1.",
    )(function)
    function = click.option(
        "--ignore", multiple=True, metavar="WORD", callback=_words, help="Leave these out."
    )(function)
    return click.option(
        "--select",
        multiple=True,
        metavar="WORD",
        callback=_words,
        help="Only these: slugs, codes or families.",
    )(function)


def home_option(function: F) -> F:
    """--home, for commands that take one database."""
    return click.option("--home", metavar="FOLDER", help="The Hermes home to use where no DB is named.")(
        function
    )


def format_option(function: F) -> F:
    """--format, as the commands of this release have it."""
    return click.option(
        "--format", "format_", type=click.Choice(["table", "json"]), default="table", show_default=True
    )(function)


def write(text: str | bytes, output: str | None = None) -> None:
    """Write an answer to stdout, or to a file. Raises UsageError when the file cannot be written."""
    data = text if isinstance(text, bytes) else text.encode("utf-8", "backslashreplace")
    if output is None or output == "-":
        click.get_binary_stream("stdout").write(data)
        return
    try:
        Path(output).write_bytes(data)
    except OSError as error:
        raise UsageError(f"{output}: {error.strerror}") from None


def hint(lines: list[str]) -> None:
    """What to run next, on stderr."""
    for place, line in enumerate(lines):
        click.echo(f"{'next:' if place == 0 else '':7}{line}", err=True)


class Progress:
    """Says on stderr what is being looked at, once a second has passed and only on a terminal."""

    def __init__(self) -> None:
        """Start the clock."""
        self._started = time.monotonic()
        self._shown = False

    def __call__(self, what: str) -> None:
        """Tell what comes now."""
        if sys.stderr.isatty() and time.monotonic() - self._started > 1:
            click.echo(f"\r\033[K{int(time.monotonic() - self._started)} s  {what}", err=True, nl=False)
            self._shown = True

    def done(self) -> None:
        """Clear the line."""
        if self._shown:
            click.echo("\r\033[K", err=True, nl=False)


def _words(_ctx: click.Context, _param: click.Parameter, value: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(word for item in value for word in item.split(",") if word)
