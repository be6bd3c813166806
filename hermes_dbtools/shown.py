"""Write paths and names so that they fit into one printable line; never decides what is printed."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterable
from pathlib import Path

from .terminal_text import OTHER_LETTERS

IOERR_SHMSIZE = 4874
"""SQLITEIOERR_SHMSIZE: this module tells words and knows no SQLite."""

_ESCAPED = re.compile(r"\\x([89a-f][0-9a-f])")
"""A byte that is not UTF-8, as it is written in paths."""


def shown(name: Path | str) -> str:
    """A path or name with its control characters and bytes that are not UTF-8 written as escapes."""
    return one_line(os.fsencode(name).decode("utf-8", "backslashreplace"))


def reason(error: BaseException) -> str:
    """What an error says, in the middle of a line."""
    if getattr(error, "extendedresult", 0) == IOERR_SHMSIZE:
        return "no room for its -shm"  # to SQLite that is a disk I/O error
    return error.strerror.lower() if isinstance(error, OSError) and error.strerror else str(error)


def named(error: BaseException, place: Path) -> str:
    """What an error says, behind the path that it is about: its own, else this one."""
    path = error.filename if isinstance(error, OSError) else None
    return f"{shown(path if isinstance(path, str) else place)}: {reason(error)}"


def one_line(text: str) -> str:
    """Any text in one line that a terminal shows and does not obey: what cannot be printed is escaped."""
    return "".join(
        letter if letter.isprintable() else letter.encode("unicode_escape").decode("ascii") for letter in text
    )


def shell_word(word: str) -> str:
    """A path as `path_text` writes it, or an id, in one line as a shell takes it.

    Where it holds what a terminal may show as something else (control characters, bytes that are not UTF-8), as bash, ksh
    and zsh take it in every locale.
    """
    told = word if _ESCAPED.search(word) is None else _ESCAPED.sub(_byte, word)
    if told == word and word.isprintable() and OTHER_LETTERS.isdisjoint(word):
        return shlex.quote(word)
    return "$'" + "".join(_quoted(letter) for letter in told) + "'"


def call(command: str, options: str, words: Iterable[str]) -> str:
    """A command with options, each with a space before it, and ids; those that begin like an option come last."""
    told = [shell_word(word) for word in words]
    if any(word.startswith("-") for word in told):
        return " ".join([f"{command}{options} --", *told])
    return " ".join([command, *told]) + options


def _byte(found: re.Match[str]) -> str:
    """The byte that an escape stands for, as Python has it in names of files."""
    return chr(0xDC00 + int(found.group(1), 16))


def _quoted(letter: str) -> str:
    if letter in "\\'":
        return f"\\{letter}"
    if letter.isprintable() and letter not in OTHER_LETTERS:
        return letter
    return "".join(f"\\{byte:03o}" for byte in letter.encode("utf-8", "surrogateescape"))
