"""Find out what the words of the command ask for, and answer it; changes nothing."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

from ..home import Home
from ..model import UsageError
from ..shown import shell_word, shown
from ..sizes import path_text
from ..targets import one_target
from .answers import explain_log, explain_session
from .document import Explanation
from .next_commands import place_of
from .reading_log import LogReading, read_line, read_logs

_LOG = re.compile(r"\.log($|[.-])")
"""The name of a log, rotated or not."""

USAGE = "name a session, or give a log: --log FILE, or on standard input"


def answer(
    words: tuple[str, ...], home: str | None, logs: tuple[str, ...], progress: Callable[[str], None]
) -> Explanation:
    """Answer `[DB] (SESSION | --log FILE… | log on stdin)`. Raises UsageError for words that ask for nothing."""
    logs, words = _all_logs(words, logs)
    database, session = _told(words, home, logs)
    where = one_target(database, home)
    if session is not None:
        return _of_session(where, session, progress)
    if logs in ((), ("-",)):
        return explain_log(where, read_logs(("-",), _stdin()), progress)
    files = "".join(f" --log {shell_word(path_text(Path(name).absolute()))}" for name in logs)
    again = f"hermes-dbtools explain{place_of(where).database}{files}"
    return explain_log(where, read_logs(logs), progress, again=again)


def _of_session(where: Home, word: str, progress: Callable[[str], None]) -> Explanation:
    """The answer about a session, or about a line of a log that was given in its place."""
    try:
        return explain_session(where, word, progress)
    except UsageError:
        line = _as_line(word)
        if line is None:
            raise
        return explain_log(where, line, progress)


def _as_line(word: str) -> LogReading | None:
    """What a word holds that is a line of a log, None where it is none."""
    reading = read_line(word) if " " in word else None
    return reading if reading is not None and reading.kinds else None


def _all_logs(words: tuple[str, ...], logs: tuple[str, ...]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """All logs, and the words that are left: of `--log errors.log*` a shell makes an option and words."""
    more = tuple(word for word in words if logs and _LOG.search(Path(word).name))
    return (*logs, *more), tuple(word for word in words if word not in more)


def _told(words: tuple[str, ...], home: str | None, logs: tuple[str, ...]) -> tuple[str | None, str | None]:
    """DB and SESSION among the words: one word alone is the database where it is a path."""
    if len(words) > 2:
        raise UsageError(f"{shown(words[2])}: too many words; give [DB] and one SESSION")
    if logs:
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
    if "\0" in word:
        return False
    return os.path.lexists(word) or ((os.sep in word or word.endswith(".db")) and _as_line(word) is None)


def _stdin() -> BinaryIO:
    if sys.stdin is None or sys.stdin.isatty():
        raise UsageError(USAGE)
    return sys.stdin.buffer
