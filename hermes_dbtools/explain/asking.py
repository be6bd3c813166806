"""Find out what the words of the command ask for, and answer it; changes nothing."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

from ..model import UsageError
from ..shown import shown
from ..targets import one_target
from .answers import explain_log, explain_session
from .document import Explanation
from .next_commands import place_of
from .reading_log import read_log

USAGE = "name a session, or give a log: --log FILE, or on standard input"


def answer(
    words: tuple[str, ...], home: str | None, log: str | None, progress: Callable[[str], None]
) -> Explanation:
    """Answer `[DB] (SESSION | --log FILE | log on stdin)`. Raises UsageError for words that ask for nothing."""
    database, session = _told(words, home, log)
    where = one_target(database, home)
    if session is not None:
        return explain_session(where, session, progress)
    name = "-" if log is None else log
    reading = read_log(name, _stdin() if name == "-" else None)
    option = f" --log {shlex.quote(os.fspath(Path(name).absolute()))}" if name != "-" else ""
    again = f"hermes-dbtools explain{place_of(where).database}{option}"
    return explain_log(where, reading, progress, again=again)


def _told(words: tuple[str, ...], home: str | None, log: str | None) -> tuple[str | None, str | None]:
    """DB and SESSION among the words: one word alone is the database where it is a path."""
    if len(words) > 2:
        raise UsageError(f"{shown(words[2])}: too many words; give [DB] and one SESSION")
    if log is not None:
        if len(words) > 1:
            raise UsageError("a session or a log, not both")
        return (words[0] if words else None), None
    if len(words) == 2:
        return words
    if not words:
        return None, None
    (word,) = words
    return (word, None) if home is None and _is_path(word) else (None, word)


def _is_path(word: str) -> bool:
    """Whether a word is meant as a file: an id holds no separator, and one that exists is none."""
    return os.sep in word or word.endswith(".db") or os.path.lexists(word) if "\0" not in word else False


def _stdin() -> BinaryIO:
    if sys.stdin is None or sys.stdin.isatty():
        raise UsageError(USAGE)
    return sys.stdin.buffer
