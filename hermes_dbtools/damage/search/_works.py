"""The remedies of the search family, in one form: an index made anew, mended or removed, offline; plans and reads nothing."""

from __future__ import annotations

from collections.abc import Iterable

from ...model import Remedy, Safety, SearchWork
from ...search_survey import Place
from .._declare import Damage

REBUILD = "rebuild"


def remedy(
    damage: Damage,
    *,
    key: str,
    title: str,
    works: Iterable[SearchWork],
    places: Iterable[Place],
    refused: str = "",
) -> Remedy:
    """The one answer to a finding. It is refused where an index can be neither opened nor made by this engine."""
    step = damage.step(
        key=key, answer=REBUILD, title=title, statements=(), session_ids=(), search=tuple(works)
    )
    return Remedy(REBUILD, Safety.EXACT, step, refused=refused or unmakable(places) or None)


def unmakable(places: Iterable[Place]) -> str:
    """Why one of the indexes cannot be made anew here, or ''."""
    for place in places:
        if place.wanted.refused or place.wanted.index is None:
            return f"{place.name} cannot be made anew: {place.wanted.refused}"
        if place.tokenizer_missing:
            return (
                f"{place.name} needs the tokenizer {place.wanted.index.tokenizer}, which is not here (HDB805)"
            )
    return ""
