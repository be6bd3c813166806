"""What stdout and stderr can show: whether they are terminals, how wide, in which colours and letters; writes nothing."""

from __future__ import annotations

import codecs
import contextlib
import io
import os
from typing import TextIO

NARROW, WIDE = 20, 500
"""Columns below which nothing is fitted, and what a terminal that does not say how wide it is counts as."""

CHOICES = ("auto", "always", "never")

_PLAIN = "hermes-dbtools-plain"
_LOCALES = ("LC_ALL", "LC_CTYPE", "LANG")


def is_terminal(stream: TextIO | None) -> bool:
    """Whether a person reads what is written there."""
    return stream is not None and not stream.closed and stream.isatty()


def width(stream: TextIO | None) -> int:
    """The columns of a terminal; `$COLUMNS`, where it is set, says it."""
    told = os.environ.get("COLUMNS", "")
    columns = int(told) if told.isdecimal() else 0
    with contextlib.suppress(OSError, ValueError):
        if stream is not None and not columns:
            columns = os.get_terminal_size(stream.fileno()).columns
    return columns if columns >= NARROW else WIDE


def in_colour(choice: str, stream: TextIO | None) -> bool:
    """Whether severities are to be coloured on a stream; `auto` asks the stream, NO_COLOR and TERM."""
    if choice != "auto":
        return choice == "always"
    return is_terminal(stream) and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def take_letters(*streams: TextIO | None) -> None:
    """Make each stream that is not of UTF-8 write other letters for ours; nothing that is printed may raise for its letters.

    A stream is what Python says it is, but for a locale that asks for C by name: Python would write UTF-8 there.
    """
    codecs.register_error(_PLAIN, _plain)
    for stream in streams:
        if isinstance(stream, io.TextIOWrapper):
            plain = _asks_for_c() or not _is_utf8(stream.encoding)
            stream.reconfigure(encoding="ascii" if plain else "utf-8", errors=_PLAIN)


def encoded(text: str, stream: TextIO) -> bytes:
    """The text as a stream takes it that has been made ready."""
    ready = getattr(stream, "errors", "") == _PLAIN
    if ready and not _is_utf8(stream.encoding):
        return text.encode("ascii", _PLAIN)
    return text.encode("utf-8", "backslashreplace")


def _is_utf8(encoding: str) -> bool:
    return codecs.lookup(encoding).name == "utf-8"


def _asks_for_c() -> bool:
    if os.environ.get("PYTHONIOENCODING") or os.environ.get("PYTHONUTF8") == "1":
        return False
    named = next((os.environ[name] for name in _LOCALES if os.environ.get(name)), "")
    return named in ("C", "POSIX")


def _plain(error: UnicodeError) -> tuple[str | bytes, int]:
    """Other letters for ours; those of names of files stay what they are, or a command could not be repeated."""
    from ..terminal_text import plain_letter

    if not isinstance(error, UnicodeEncodeError):
        raise error
    return plain_letter(error.object, error.start), error.start + 1
