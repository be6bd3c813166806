"""Options that several commands share, and how a command writes its answer; holds no command."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
from click.core import ParameterSource

from . import completing, terminal
from .progress import Progress

if TYPE_CHECKING:
    from ..model import Severity

__all__ = ["Progress"]

F = TypeVar("F", bound=Callable[..., Any])
C = TypeVar("C", bound=click.Command)

COLOUR = "hermes_dbtools.color"
"""The place of --color in what the commands of one call share."""

FAIL_ON = ("error", "warning", "note", "never")

SCAN_CODES = {
    0: "nothing at or above --fail-on",
    1: "findings at or above --fail-on",
    2: "usage",
    3: "could not look: at one check, or at a whole file",
}
WRITE_CODES = {
    0: "done, and nothing at or above --fail-on is left",
    1: "findings are left, or their sessions are live",
    2: "usage",
    3: "could not look: at one check, or at a whole file",
    4: "refused or rolled back: no row was changed",
}
UNDO_CODES = {
    0: "shown, or taken back",
    1: "a session of it is live; or taken back, and something failed after that",
    2: "usage",
    3: "could not look",
    4: "refused or rolled back: no row was changed",
}
READ_CODES = {0: "printed", 2: "usage", 3: "could not look"}
PRINT_CODES = {0: "printed", 2: "usage"}


def epilog(codes: Mapping[int, str], example: str, note: str = "") -> str:
    """The end of every help: exit codes and one example, in lines that click must not join."""
    lines = ["\b", f"Exit codes {note}".rstrip() + ":"]
    lines += [f"  {code}  {meaning}" for code, meaning in codes.items()]
    return "\n".join([*lines, "", "\b", "Example:", f"  {example}"])


def selection(function: F) -> F:
    """--select, --ignore and --fail-on."""
    function = click.option(
        "--fail-on",
        type=click.Choice(FAIL_ON),
        default="warning",
        show_default=True,
        help="Lowest severity that makes the exit code 1.",
    )(function)
    function = click.option(
        "--ignore",
        multiple=True,
        metavar="WORD",
        callback=_words,
        shell_complete=completing.selection,
        help="Leave these out.",
    )(function)
    return click.option(
        "--select",
        multiple=True,
        metavar="WORD",
        callback=_words,
        shell_complete=completing.selection,
        help="Only these: slugs, codes or families.",
    )(function)


def idle_option(function: F) -> F:
    """--idle."""
    return click.option(
        "--idle",
        type=click.IntRange(min=1),
        metavar="DAYS",
        help="After how long without activity an open session counts as never ended.  [default: 30]",
    )(function)


def seconds_of(days: int | None) -> float | None:
    """Days as seconds; None where nothing was said."""
    return None if days is None else days * 86_400.0


def severity(fail_on: str) -> Severity | None:
    """The lowest severity that counts, None for `never`."""
    from ..model import Severity

    return None if fail_on == "never" else Severity[fail_on.upper()]


def home_option(function: F) -> F:
    """--home, for every command that is about a database."""
    return click.option("--home", metavar="FOLDER", help="The Hermes home to use where no DB is named.")(
        function
    )


def formats(*names: str) -> Callable[[F], F]:
    """--format, of these; the first one is the default."""
    return click.option("--format", "format_", type=click.Choice(names), default=names[0], show_default=True)


def format_option(function: F) -> F:
    """--format, as most commands have it."""
    return formats("table", "json")(function)


def prepared(command: C) -> C:
    """The command with --color, and with files offered by a shell where it takes one."""
    if isinstance(command, click.Group) or any(param.name == "color" for param in command.params):
        return command
    for param in command.params:
        if param.metavar in completing.FILES and isinstance(param.type, click.types.StringParamType):
            param.type = click.Path(readable=False)
    command.params.append(
        click.Option(
            ["--color"],
            type=click.Choice(terminal.CHOICES),
            default="auto",
            show_default=True,
            expose_value=False,
            callback=_colour,
            help="Colours in tables.",
        )
    )
    return command


def writable(_ctx: click.Context, _param: click.Parameter, value: str | None) -> str | None:
    """Callback of an option that names a file to write: said before the work and not after it."""
    if value is not None and value != "-":
        folder = Path(value).parent
        if not folder.is_dir():
            raise click.BadParameter(f"{folder} is not a folder")
        if Path(value).is_dir():
            raise click.BadParameter(f"{value} is a folder")
    return value


def as_given(ctx: click.Context, leave_out: Collection[str] = ()) -> str:
    """The options of this call as a shell takes them, each with a space before it: for a command that does the same."""
    from ..shown import shell_word
    from ..sizes import path_text

    words: list[str] = []
    for param in ctx.command.params:
        name = param.name or ""
        given = ctx.get_parameter_source(name) is ParameterSource.COMMANDLINE and param.expose_value
        if not given or name in leave_out or not isinstance(param, click.Option):
            continue
        value = ctx.params[name]
        if param.is_flag:
            words.append(param.opts[0])
        else:
            for item in value if param.multiple else (value,):
                words += [param.opts[0], str(item)]
    return "".join(f" {shell_word(path_text(word))}" for word in words)


def write(text: str | bytes, output: str | None = None) -> None:
    """Write an answer to stdout, or to a file, whole or not at all. Raises UsageError when the file cannot be written.

    Text is for a person and is fitted to a terminal; bytes are a document and stay what they are.
    """
    from ..model import UsageError
    from ..replacing import replace_content

    if output is None or output == "-":
        _to_stdout(text)
        return
    data = text if isinstance(text, bytes) else text.encode("utf-8", "backslashreplace")
    try:
        replace_content(output, data)
    except (OSError, ValueError) as error:
        raise UsageError(f"{output}: {getattr(error, 'strerror', None) or error}") from None


def say(text: str) -> None:
    """Write what is no part of the answer, to stderr."""
    from ..terminal_text import fitted

    shown = fitted(text, terminal.width(sys.stderr)) if terminal.is_terminal(sys.stderr) else text
    _to_stderr(shown)


def hint(lines: list[str]) -> None:
    """What to run next, on stderr; what is said of each command, after three spaces, stands in one column."""
    parts = [line.partition("   ") for line in lines]
    width = max((len(command) for command, said, _what in parts if said), default=0)
    for place, (command, said, what) in enumerate(parts):
        line = f"{command:{width}}   {what.lstrip()}" if said else command
        _to_stderr(f"{'next:' if place == 0 else '':7}{line}\n")


def needs_yes(asked: bool) -> None:
    """Raise UsageError where a question cannot be asked; before any work is done."""
    from ..model import UsageError

    if asked and not (sys.stdin is not None and sys.stdin.isatty()):
        raise UsageError("--apply without a terminal needs --yes")


class ReaderGone(Exception):
    """Whoever read stdout has stopped reading; click would call it a finding (exit code 1)."""


class NotWritten(Exception):
    """Stdout is a file that takes no more."""


def colour() -> bool:
    """Whether this call colours what it writes to stdout."""
    context = click.get_current_context(silent=True)
    choice = "auto" if context is None else context.meta.get(COLOUR, "auto")
    return terminal.in_colour(choice, sys.stdout)


def _to_stderr(text: str) -> None:
    """Not by `click.echo`, which takes a stream that can write ASCII only for a mistake.

    Where stderr cannot be written, nobody can be told; the exit code and the answer still are what they are.
    """
    if sys.stderr is not None:
        with contextlib.suppress(OSError):
            sys.stderr.write(text)
            sys.stderr.flush()


def _colour(ctx: click.Context, _param: click.Parameter, value: str) -> None:
    ctx.meta[COLOUR] = value


def _to_stdout(text: str | bytes) -> None:
    if sys.stdout is None:  # closed by the caller: nobody reads the answer, the exit code still says it
        return
    data = text if isinstance(text, bytes) else terminal.encoded(_for_person(text), sys.stdout)
    try:
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
    except BrokenPipeError as error:
        raise ReaderGone from error
    except OSError as error:
        raise NotWritten(error.strerror) from error


def _for_person(text: str) -> str:
    from ..terminal_text import coloured, fitted

    shown = fitted(text, terminal.width(sys.stdout)) if terminal.is_terminal(sys.stdout) else text
    return coloured(shown) if colour() else shown


def _words(_ctx: click.Context, _param: click.Parameter, value: tuple[str, ...]) -> tuple[str, ...]:
    words = tuple(word for item in value for word in item.split(",") if word)
    if value and not words:
        raise click.BadParameter("names no damage class or family")
    return words
