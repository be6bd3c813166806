"""Run the command line in a process of its own, as an operator's shell would; judges only whether a document is as published."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import msgspec

from hermes_dbtools import schemas
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
    if done.stdout.startswith(DOCUMENT):
        name = msgspec.json.decode(done.stdout, type=DocumentHead).format.removeprefix(PUBLISHER)
        msgspec.json.decode(done.stdout, type=schemas.TYPES[name])
    return Ran(done.returncode, _text(done.stdout), _text(done.stderr))


def _text(data: bytes) -> str:
    return data.decode("utf-8", "backslashreplace")
