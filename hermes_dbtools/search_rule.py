"""Tell by which rule an entry of a trigram index came in: whole, or up to its first NUL; writes nothing.

FTS5 keeps the number of tokens of each column in `<index>_docsize.sz`. Both rules predict that number, and
they differ wherever text follows the NUL byte, so one row of the file says which engine wrote it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

import apsw

from .search_definition import SearchIndex

Rule = Literal["stops", "whole", "either", "neither"]
Count = Callable[[bytes], int]


def token_counter(connection: apsw.Connection, index: SearchIndex) -> Count:
    """A function that counts the tokens this engine makes of a text for this index."""
    if index.trigram and "remove_diacritics" not in index.tokenizer_arguments:
        return _trigrams
    tokenizer = connection.fts5_tokenizer(index.tokenizer, list(index.tokenizer_arguments))
    return lambda text: sum(
        1 for _ in tokenizer(text, apsw.FTS5_TOKENIZE_DOCUMENT, None, include_offsets=False)
    )


def rule_of(count: Count, sizes: bytes, texts: Sequence[bytes | None]) -> Rule:
    """The rule by which a row with these packed token counts and these column texts came in."""
    found = unpacked(sizes)
    whole = [count((text or b"").replace(b"\0", b"")) for text in texts]
    stops = [count((text or b"").partition(b"\0")[0]) for text in texts]
    if found == whole:
        return "either" if whole == stops else "whole"
    return "stops" if found == stops else "neither"


def unpacked(sizes: bytes) -> list[int]:
    """The integers of a docsize record: big-endian groups of seven bits, the last without its high bit."""
    numbers, value = [], 0
    for byte in sizes:
        value = value << 7 | byte & 0x7F
        if not byte & 0x80:
            numbers.append(value)
            value = 0
    return numbers


def _trigrams(text: bytes) -> int:
    """One token for each character but the last two; characters are counted as SQLite reads UTF-8."""
    try:
        characters = len(text.decode())
    except UnicodeDecodeError:
        characters = _characters(text)
    return max(characters - 2, 0)


def _characters(text: bytes) -> int:
    """A lead byte takes every continuation byte behind it; one without a lead byte stands for itself."""
    count, inside = 0, False
    for byte in text:
        if byte & 0xC0 == 0x80 and inside:
            continue
        inside = byte >= 0xC0
        count += 1
    return count
