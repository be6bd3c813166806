"""Run the command line and turn every failure into its exit code; decides nothing else."""

from __future__ import annotations

import os
import sys
import traceback

import click

from .cli import cli, shells, terminal
from .cli.options import NotWritten, ReaderGone, say


def main() -> None:
    """The console script. An expected failure is one line on stderr; an unexpected one names itself a fault of ours."""
    terminal.take_letters(sys.stdout, sys.stderr)
    shells.prepare()
    try:
        code = cli.main(prog_name="hermes-dbtools", standalone_mode=False)
    except click.ClickException as error:
        error.show()
        code = error.exit_code
    except (click.exceptions.Abort, KeyboardInterrupt):
        click.echo("hermes-dbtools: interrupted; nothing more was changed", err=True)
        code = 130
    except ReaderGone:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 141
    except Exception as error:  # noqa: BLE001 - the last place that can say whose fault it is
        code = _unwritten(error) if _is_unwritten(error) else _failed(error)
    sys.exit(code or 0)


def _is_unwritten(error: Exception) -> bool:
    """Whether it was an answer that could not be written: click writes help and versions by itself."""
    last = [frame.f_globals.get("__name__") for frame, _line in traceback.walk_tb(error.__traceback__)][-1:]
    return isinstance(error, NotWritten) or (isinstance(error, OSError) and last == ["click.utils"])


def _unwritten(error: Exception) -> int:
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # what is left in its buffer is given up
    reason = getattr(error, "strerror", None) or error
    say(f"hermes-dbtools: stdout: {reason}; what was applied stays applied: hermes-dbtools history\n")
    return 2


def _failed(error: Exception) -> int:
    from .model import ToolError
    from .shown import one_line

    if isinstance(error, ToolError):
        say(f"hermes-dbtools: {one_line(str(error))}\n")
        return error.exit_code
    from .engine import versions

    traceback.print_exc()
    click.echo(
        f"hermes-dbtools: a fault of this tool, please report it with the lines above ({versions()})",
        err=True,
    )
    return 4


if __name__ == "__main__":
    main()
