"""A `trigram` tokenizer that ends a text at its first NUL byte, as SQLite 3.40.1 does; opens no file.

SQLite 3.54.1 skips NUL bytes and goes on (measured: `NUL json:abc` has 6 tokens there, none in 3.40.1), and
every store writes messages that begin with one. Entries must leave an index by the rule by which they came
in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import apsw

PIECE = 128 * 1024
"""Bytes tokenized at once: the tokens of a longer text would not fit into memory as Python objects."""


def register(connection: apsw.Connection) -> None:
    """Put the tokenizer in the place of `trigram` on this connection.

    The schema is read anew afterwards, because an open index keeps the tokenizer it was opened with, and so
    little as `PRAGMA table_list` opens every index.
    """
    builtin = apsw.Connection(":memory:")

    def factory(_connection: apsw.Connection, arguments: list[str]) -> Callable[..., Any]:
        trigram = builtin.fts5_tokenizer("trigram", arguments)
        whole = "remove_diacritics" in arguments

        def tokenize(utf8: bytes, reason: int, locale: str | None) -> Any:
            end = utf8.find(b"\0")
            text = utf8 if end < 0 else utf8[:end]
            if whole or len(text) <= PIECE or not _is_utf8(text):
                return trigram(text, reason, locale)
            return _by_pieces(trigram, text, reason, locale)

        return tokenize

    connection.register_fts5_tokenizer("trigram", factory)
    connection.execute("PRAGMA writable_schema = RESET")


def stops_at_nul(connection: apsw.Connection) -> bool:
    """Whether an index that this connection opens now would end trigram text at a NUL byte."""
    return not connection.fts5_tokenizer("trigram", [])(b"\0abc", apsw.FTS5_TOKENIZE_DOCUMENT, None)


def _by_pieces(
    trigram: Callable[..., Any], text: bytes, reason: int, locale: str | None
) -> Iterator[tuple[Any, ...]]:
    """The tokens of a long text; each piece begins two characters before the end of the one before it."""
    start = 0
    while True:
        end = min(start + PIECE, len(text))
        while end < len(text) and text[end] & 0xC0 == 0x80:
            end -= 1
        tokens = trigram(text[start:end], reason, locale)
        for first, last, *token in tokens:
            yield start + first, start + last, *token
        if end == len(text):
            return
        start = _characters_before(text, end, 2)


def _characters_before(text: bytes, end: int, count: int) -> int:
    for _ in range(count):
        end -= 1
        while text[end] & 0xC0 == 0x80:
            end -= 1
    return end


def _is_utf8(text: bytes) -> bool:
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return True
