"""Say of each full-text index what was found, in one line of a report; asks the file nothing that no class asked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Literal

import apsw

from .model import SearchIndexState
from .search_survey import Content, Place, leftovers

if TYPE_CHECKING:
    from .damage._declare import ScanContext

ALWAYS = ("messages_fts", "messages_fts_trigram")
"""Indexes of which a report says so too where they are not there."""

Verdict = Literal["ok", "degraded", "stale", "broken", "leftover"]


def states(context: ScanContext) -> tuple[SearchIndexState, ...]:
    """Each index in name order, then what is left of others; empty where no class of the search family looked."""
    if not context.search.begun:
        return ()
    places = {place.name: place for place in context.search.places(context)}
    marks = context.search.marks(context)
    found = [_present(context, place, marks) for place in places.values()]
    found += [_absent(name) for name in ALWAYS if name not in places]
    return (*sorted(found, key=lambda state: state.name), *_left(context))


def _present(context: ScanContext, place: Place, marks: Mapping[str, int]) -> SearchIndexState:
    content = context.search.counted(place)
    verdict, why = _verdict(place, content, marks, context.search.damaged.get(place.name, ""))
    index = place.index
    return SearchIndexState(
        name=place.name,
        present=index is not None,
        layout=place.wanted.layout,
        columns=index.columns if index else (),
        tokenizer=index.tokenizer if index else "",
        triggers=tuple(name for name, _sql in index.triggers) if index else (),
        missing_triggers=index.missing_triggers if index else (),
        expected=content.expected if content else None,
        indexed=content.indexed if content else None,
        missing=content.missing if content else 0,
        left=content.left if content else 0,
        gaps=content.gaps if content else (),
        verdict=verdict,
        why=why,
        engine=apsw.sqlite_lib_version(),
    )


def _verdict(
    place: Place, content: Content | None, marks: Mapping[str, int], damaged: str
) -> tuple[Verdict, str]:
    index = place.index
    if index is None:
        return "broken", "its tables are there without it"
    if place.lost or place.trouble or damaged:
        return "broken", place.trouble or damaged or f"it has no {', '.join(place.lost)}"
    if place.tokenizer_missing and index.triggers:
        return "broken", f"the tokenizer {index.tokenizer} is not here"
    if index.unknown:
        return "broken", index.unknown
    if index.stale_mark in marks:
        return "stale", f"marked by {index.stale_mark}"
    if index.wrong_triggers:
        return "stale", f"{', '.join(name for name, _sql in index.wrong_triggers)} does not keep it right"
    if index.missing_triggers:
        return "stale", f"no trigger for {', '.join(index.missing_triggers)}"
    if content is not None and (content.missing or content.left):
        return "stale", f"{content.missing:,} rows missing, {content.left:,} left"
    if index.gap_marks[0] and index.gap_marks[0] in marks:
        waiting = f"{content.waiting:,} rows wait" if content is not None else "rows wait"
        return "stale", f"a refill is in progress: {waiting}"
    return "ok", ""


def _absent(name: str) -> SearchIndexState:
    return _nothing(name, "degraded", "there is no such index: search does without it")


def _left(context: ScanContext) -> Iterator[SearchIndexState]:
    for name, tables in leftovers(context.shape).items():
        yield _nothing(name, "leftover", f"{len(tables)} tables of an earlier layout")


def _nothing(name: str, verdict: Verdict, why: str) -> SearchIndexState:
    return SearchIndexState(
        name=name, present=False, layout="", columns=(), tokenizer="", triggers=(), missing_triggers=(),
        expected=None, indexed=None, missing=0, left=0, gaps=(), verdict=verdict, why=why,
        engine=apsw.sqlite_lib_version(),
    )  # fmt: skip
