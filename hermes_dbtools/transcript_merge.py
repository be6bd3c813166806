"""Put two tellings of one conversation together without saying anything twice; knows neither files nor tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from difflib import SequenceMatcher
from typing import Protocol

MOST_COMPARED = 4_000
"""Messages between the common beginning and end of two tellings that are compared each with each."""


class Told(Protocol):
    """A message of either telling."""

    @property
    def role(self) -> str:
        """Who says it."""

    @property
    def identity(self) -> bytes:
        """The same for the same message."""


def merge(first: Sequence[Told], second: Sequence[Told]) -> list[tuple[int, int]]:
    """The order of both together, as (0 or 1, place in that telling).

    Every message of `first` is there; of `second` only what `first` lacks. Where both differ between two
    messages that they share, in as many messages of the same roles, they tell the same in other words, and
    `first` counts: snapshots leave out secrets.
    """
    left, right = [m.identity for m in first], [m.identity for m in second]
    begin = _common(left, right)
    end = _common(left[begin:][::-1], right[begin:][::-1])
    order = [(0, place) for place in range(begin)]
    lone: list[tuple[int, int]] = []
    for tag, a, b, c, d in _changes(left, right, begin, end):
        order += [(0, place) for place in range(a, b)]
        same_roles = [m.role for m in first[a:b]] == [m.role for m in second[c:d]]
        if tag == "insert" or (tag == "replace" and not same_roles):
            order += [(1, place) for place in range(c, d)]
        if tag in ("delete", "replace"):
            lone += [(0, place) for place in range(a, b)]
    order += [(0, place) for place in range(len(left) - end, len(left))]
    return _without_moved(order, left, right, lone)


def _changes(
    left: list[bytes], right: list[bytes], begin: int, end: int
) -> list[tuple[str, int, int, int, int]]:
    a, b = left[begin : len(left) - end], right[begin : len(right) - end]
    if not a or not b:
        tag = "equal" if not a and not b else "insert" if not a else "delete"
        return [(tag, begin, begin + len(a), begin, begin + len(b))]
    if len(a) * len(b) > MOST_COMPARED**2:
        kept = set(a)
        return [
            ("delete", begin, begin + len(a), begin, begin),
            *(("insert", begin + len(a), begin + len(a), begin + i, begin + i + 1)
              for i, key in enumerate(b) if key not in kept),
        ]  # fmt: skip
    opcodes = SequenceMatcher(None, a, b, autojunk=False).get_opcodes()
    return [(tag, begin + i, begin + j, begin + k, begin + m) for tag, i, j, k, m in opcodes]


def _without_moved(
    order: list[tuple[int, int]], left: list[bytes], right: list[bytes], lone: list[tuple[int, int]]
) -> list[tuple[int, int]]:
    """Leave out what the first telling has at another place."""
    spare = Counter(left[place] for _side, place in lone)
    kept = []
    for side, place in order:
        if side == 1 and spare[right[place]] > 0:
            spare[right[place]] -= 1
            continue
        kept.append((side, place))
    return kept


def _common(left: Sequence[bytes], right: Sequence[bytes]) -> int:
    """How many of the first messages are the same."""
    count = 0
    for one, other in zip(left, right, strict=False):
        if one != other:
            break
        count += 1
    return count
