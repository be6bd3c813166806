"""Write paths and names so that they fit into one printable line; never decides what is printed."""

from __future__ import annotations

import os
import shlex
from pathlib import Path


def shown(name: Path | str) -> str:
    """A path or name with its control characters and bytes that are not UTF-8 written as escapes."""
    return one_line(os.fsencode(name).decode("utf-8", "backslashreplace"))


def one_line(text: str) -> str:
    """Any text in one line that a terminal shows and does not obey: what cannot be printed is escaped."""
    return "".join(
        letter if letter.isprintable() else letter.encode("unicode_escape").decode("ascii") for letter in text
    )


def shell_word(path: str) -> str:
    """A path as a shell takes it; where it holds control characters, as bash, ksh and zsh do."""
    return shlex.quote(path) if path.isprintable() else f"$'{one_line(path)}'"
