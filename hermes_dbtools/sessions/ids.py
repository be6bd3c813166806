"""Find the session that a word of a command means; changes nothing."""

from __future__ import annotations

import json
from collections.abc import Iterable

from ..damage._declare import ScanContext, text
from ..model import UsageError
from ..shown import one_line

FILE = "sessions/delete"

SHORTEST_PREFIX = 4
"""Letters that a beginning of an id must have to stand for it."""

LONGEST = 1024
"""Letters above which a word is no id: the store's own have some twenty."""


def resolve(context: ScanContext, words: Iterable[str]) -> tuple[str, ...]:
    """The ids that words mean, each once, in the order asked: an id itself, or the beginning of exactly one.

    Raises UsageError for a word that means none or several.
    """
    return tuple(dict.fromkeys(_one(context, word) for word in words))


def there(context: ScanContext, ids: Iterable[str]) -> set[str]:
    """Those of some ids that have a row."""
    bindings = {"ids": json.dumps(sorted(ids))}
    return {str(row[0]) for row in context.rows(FILE, "sessions-there", bindings)}


def short(word: str) -> str:
    """A word as a line shows it."""
    line = one_line(word)
    return line if len(line) <= 80 else f"{line[:60]}… ({len(word):,} letters)"


def _one(context: ScanContext, word: str) -> str:
    try:
        word.encode("utf-8")
    except UnicodeEncodeError:
        raise UsageError(f"{short(word)}: no session has such an id; hermes-dbtools sessions list") from None
    if 0 < len(word) <= LONGEST and "\0" not in word:
        if there(context, (word,)):
            return word
        if len(word) >= SHORTEST_PREFIX:
            return _by_prefix(context, word)
    raise UsageError(f"{short(word)!r}: no session has this id; hermes-dbtools sessions list")


def _by_prefix(context: ScanContext, word: str) -> str:
    bindings = {"word": word, "next": word + "\U0010ffff"}
    found = [text(row[0]) for row in context.rows(FILE, "sessions-like", bindings)]
    if len(found) > 1:
        raise UsageError(f"{short(word)!r}: several sessions have ids that begin so; give more of it")
    if not found or not isinstance(found[0], str):
        raise UsageError(f"{short(word)!r}: no session has this id; hermes-dbtools sessions list")
    return found[0]
