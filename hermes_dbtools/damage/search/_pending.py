"""Which indexes wait for a rebuild, by the marks of `state_meta` and the triggers that are there; decides no repair."""

from __future__ import annotations

from collections.abc import Mapping

from ...search_survey import MARKS, Place
from .._declare import ScanContext

CJK = "messages_fts_cjk"
"""The one index with marks of its own; all others share theirs."""

OF_CJK = tuple(mark for mark in MARKS if mark.startswith("fts_cjk_"))
SHARED = tuple(mark for mark in MARKS if mark not in OF_CJK)


def waits(context: ScanContext, place: Place) -> bool:
    """Whether the store will fill the index anew as a whole, so that what it holds today says nothing."""
    if place.index is None:
        return False
    return place.index.stale_mark in context.search.marks(context) or bool(place.index.missing_triggers)


def set_marks(marks: Mapping[str, int], names: tuple[str, ...]) -> dict[str, int]:
    """Those of some marks that are set, in their order."""
    return {name: marks[name] for name in names if name in marks}
