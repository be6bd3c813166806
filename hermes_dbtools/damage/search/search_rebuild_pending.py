"""A search index waits for a rebuild, or is not fed by every change of messages

What it means
-------------
Search is behind: messages of a range of ids, or all that came since, are not found. Messages are saved and read
as ever. A rebuild that the store deferred may wait for days, and one that was broken off never goes on by itself.

Why it happens
--------------
The store found an index damaged and detached it (`fts_stale`), or it was stopped while it filled a new layout
(`fts_rebuild_high_water`, `fts_rebuild_progress`). Triggers are missing where a Python without the full-text
module opened the file: it takes them off so that messages can still be saved. One of the right name may write another
row, another text or nothing, made by hand or by a script: each is tried on a message made up in memory.

Repair
------
Exact, offline: the indexes are made anew from all messages in the layout they have, get the triggers they lack,
and the marks go, in one transaction. Marks that no trigger obeys go alone.

Safety
------
Exact: no message is touched; an undo leaves the indexes as they were made. A running Hermes may be at this very
work, so it must be stopped first. `fts_optimize_available` after an upgrade only offers a smaller layout and is
healthy.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal

from ...model import Finding, Safety, SearchWork, Severity
from ...search_definition import SearchIndex
from ...search_survey import Place, gap_of
from .._declare import ScanContext, declare
from . import _works
from ._pending import CJK, OF_CJK, SHARED, set_marks, waits

STALE, DEFERRED = ("fts_stale", "fts_cjk_stale"), "fts_rebuild_deferral"


def _find(context: ScanContext) -> Iterable[Finding]:
    places = context.search.places(context)
    marks = context.search.marks(context)
    for key, names, of_cjk in (("messages_fts", SHARED, False), (CJK, OF_CJK, True)):
        group = [place for place in places if (place.name == CJK) == of_cjk]
        if present := set_marks(marks, names):
            yield _marked(context, key, group, present)
            continue
        for place in group:
            if place.index is not None and place.index.missing_triggers:
                yield _unfed(context, place)


def _marked(context: ScanContext, key: str, group: list[Place], marks: Mapping[str, int]) -> Finding:
    there = [place for place in group if place.index is not None]
    kind = _kind(there, marks)
    works = [SearchWork(place.name, _work(context, place, kind), marks=tuple(marks)) for place in there]
    if not works:
        works = [SearchWork(key, "remove", marks=tuple(marks))]
    verb = (
        "make {} anew"
        if any(work.work == "remake" for work in works)
        else "bring in what {} lacks, if anything"
    )
    title = verb.format(" and ".join(work.index for work in works)) + ", and remove the marks"
    return DAMAGE.finding(
        table="state_meta",
        key=key,
        kind=kind,
        message=_MESSAGES[kind].format(waiting=_waiting(context, there)),
        evidence={
            "marks": dict(marks),
            "indexes": [place.name for place in there],
            "missing_triggers": sorted({e for p in there if p.index for e in p.index.missing_triggers}),
            **_span(there, marks),
        },
        remedies=(_works.remedy(DAMAGE, key=key, title=title, works=works, places=there),),
    )


def _work(context: ScanContext, place: Place, kind: str) -> Literal["remake", "mend"]:
    """Only where the entries that are in can be relied on, the others are brought in beside them."""
    if (
        kind in ("stale", "broken-off")
        or not place.usable
        or place.tokenizer_missing
        or waits(context, place)
    ):
        return "remake"
    content = context.search.content(context, place)
    return "mend" if content.indexed >= content.waiting + content.missing else "remake"


def _unfed(context: ScanContext, place: Place) -> Finding:
    assert place.index is not None
    content = context.search.content(context, place) if place.usable else None
    return DAMAGE.finding(
        table=place.name,
        key=place.name,
        kind="missing-triggers",
        message=_unfed_message(place.index),
        evidence={
            "missing_triggers": place.index.missing_triggers,
            **(
                {"wrong_triggers": [name for name, _sql in place.index.wrong_triggers]}
                if place.index.wrong_triggers
                else {}
            ),
            **(
                {
                    "expected": content.expected,
                    "indexed": content.indexed,
                    "missing": content.missing,
                    "left": content.left,
                    "missing_ranges": content.gaps,
                }
                if content
                else {}
            ),
        },
        remedies=(
            _works.remedy(
                DAMAGE,
                key=place.name,
                title=f"make {place.name} anew, with its triggers",
                works=(SearchWork(place.name, "remake"),),
                places=(place,),
            ),
        ),
    )


def _unfed_message(index: SearchIndex) -> str:
    if not index.wrong_triggers:
        return f"no trigger tells it of {', '.join(index.missing_triggers)}: what changes now is not found"
    names = ", ".join(name for name, _sql in index.wrong_triggers)
    return f"{names} does not keep it right: what changes now is not found, or is found wrongly"


def _kind(there: list[Place], marks: Mapping[str, int]) -> str:
    if any(mark in STALE for mark in marks):
        return "stale"
    if any(place.index and place.index.missing_triggers for place in there):
        return "broken-off"
    obeyed = {mark for place in there if place.index for mark in place.index.gap_marks}
    if not obeyed.intersection(marks) and DEFERRED not in marks:
        return "leftover-marks"
    return "refill" if obeyed.intersection(marks) else "deferred"


_MESSAGES = {
    "stale": "marked as stale: the store searches without it until it is made anew",
    "broken-off": "a rebuild was begun and its triggers are missing",
    "leftover-marks": "marks of a rebuild that no index of this file obeys",
    "refill": "a refill is in progress or was broken off: {waiting} messages wait for it",
    "deferred": "the store put a rebuild off",
}


def _waiting(context: ScanContext, there: list[Place]) -> str:
    counts = [context.search.content(context, p).waiting for p in there if p.usable and not waits(context, p)]
    return f"{max(counts, default=0):,}"


def _span(there: list[Place], marks: Mapping[str, int]) -> dict[str, int]:
    """The ids that are not in yet, as the triggers read the marks."""
    spans = [gap_of(place.index, marks) for place in there if place.index]
    above, up_to = max(spans, default=(0, 0), key=lambda span: span[1])
    return {"waiting_above_id": above, "waiting_up_to_id": up_to} if up_to else {}


DAMAGE = declare(
    __name__,
    __doc__,
    code="HDB804",
    severity=Severity.WARNING,
    safety=Safety.EXACT,
    answers=(_works.REBUILD,),
    reads=("messages", "sessions", "state_meta"),
    noun=("index", "indexes"),
    find=_find,
)
