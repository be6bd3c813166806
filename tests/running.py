"""Run the command line as a shell would, in a process of its own or in this one; judges no more than what is published."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from contextlib import chdir, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from io import BytesIO, TextIOWrapper
from pathlib import Path
from typing import IO
from unittest.mock import patch

import msgspec
import pytest

from hermes_dbtools import schemas
from hermes_dbtools.__main__ import main
from hermes_dbtools.documents import DocumentHead

CHECKOUT = Path(__file__).resolve().parent.parent
COMMAND = (sys.executable, "-m", "hermes_dbtools")
SECONDS = 120
PUBLISHER = "hermes-dbtools/"
DOCUMENT = b'{\n  "format": "hermes-dbtools/'
"""How a document begins."""


@dataclass(frozen=True, slots=True)
class Ran:
    """What one command did; text is UTF-8 whatever the locale, bytes that are not are escaped."""

    code: int
    out: str
    err: str


def environment(**changes: str | None) -> dict[str, str]:
    """This process's environment without what names a home; a change of None takes a name out."""
    names = {name: value for name, value in os.environ.items() if not name.startswith("HERMES_")}
    names["PYTHONPATH"] = str(CHECKOUT)
    for name, value in changes.items():
        names.pop(name, None)
        if value is not None:
            names[name] = value
    return names


def tool(
    *arguments: str | bytes | Path,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    stdin: int | IO[bytes] = subprocess.DEVNULL,
    before: Callable[[], None] | None = None,
) -> Ran:
    """Run `hermes-dbtools` with these arguments; `before` runs in the child before it starts.

    Fails where it prints a document that has no published schema or does not fit its own.
    """
    done = subprocess.run(
        [*COMMAND, *arguments],
        env=environment() if env is None else env,
        cwd=cwd,
        stdin=stdin,
        capture_output=True,
        preexec_fn=before,
        timeout=SECONDS,
        check=False,
    )
    return _ran(done.returncode, done.stdout, done.stderr)


def tool_here(
    *arguments: str | bytes | Path, env: Mapping[str, str] | None = None, cwd: Path | None = None
) -> Ran:
    """The same without a process: for tests to which start, signals, locale and terminal of one are nothing.

    The database must not be open in this process: the tool closes it, and with that every lock on it goes.
    """
    out, err = (TextIOWrapper(BytesIO(), "utf-8", write_through=True) for _ in range(2))
    with (
        patch.dict(os.environ, environment() if env is None else env, clear=True),
        patch.object(sys, "argv", ["hermes-dbtools", *map(os.fsdecode, arguments)]),
        patch.object(sys, "stdin", TextIOWrapper(BytesIO(), "utf-8")),
        redirect_stdout(out),
        redirect_stderr(err),
        chdir(Path.cwd() if cwd is None else cwd),
        pytest.raises(SystemExit) as ended,
    ):
        main()
    code = ended.value.code
    assert isinstance(code, int)
    return _ran(code, out.buffer.getvalue(), err.buffer.getvalue())


def _ran(code: int, out: bytes, err: bytes) -> Ran:
    if out.startswith(DOCUMENT):
        name = msgspec.json.decode(out, type=DocumentHead).format.removeprefix(PUBLISHER)
        msgspec.json.decode(out, type=schemas.TYPES[name])
    return Ran(code, _text(out), _text(err))


def _text(data: bytes) -> str:
    return data.decode("utf-8", "backslashreplace")
