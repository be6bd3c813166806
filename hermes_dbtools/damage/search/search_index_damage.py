"""A search index is damaged

What it means
-------------
Search fails or answers wrongly, and a message whose words fall on the damaged part cannot be written: the
triggers of the index fail, and the message with them. The messages themselves are whole: what is damaged was
made from them.

Why it happens
--------------
The same as for every damage of pages (a full or lying disk, a file copied while it was written), two processes
that made the index at once, an older engine that removed a row by another text than it came in with, or a table
of the index that somebody took away.

Repair
------
Exact, offline: the index is dropped and made anew from the messages, in the layout it had, with its triggers,
in one transaction. That this frees every damaged page is tried on a private copy first; where it does not, the
answer is refused, and a salvage into a new file is the way.

Safety
------
Exact: no message is touched; an undo leaves the index as it was made. The default scan asks for the pages of
the index and opens it; whether every entry fits its text is asked with `--deep`. A text with a NUL byte is
indexed differently by SQLite 3.40 and 3.54: an entry counts as right by the rule by which it came in, so a
healthy file of an older engine is not accused. An index that cuts the answers of tools by a moving mark cannot
be held against its text.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from ...engine import versions
from ...model import SELECTED, TO_SALVAGE, CouldNotLook, Finding, Safety, SearchWork, Severity
from ...search_check import Checked, check
from ...search_survey import Place
from ...search_trial import problems_after
from .._declare import NeedsDeep, ScanContext, declare
from . import _works
from ._pending import waits

_BY_SALVAGE = f": {TO_SALVAGE} makes a file without them"


def _find(context: ScanContext) -> Iterable[Finding]:
    places = context.search.places(context)
    broken = [place for place in places if place.index is not None and _broken(place)]
    for place in broken:
        left = _left_after_drop(context, place)
        found = _finding(place, _broken(place), Checked(""), pages=True, refused=left)
        yield msgspec.structs.replace(found, next=TO_SALVAGE) if left.endswith(_BY_SALVAGE) else found
    if not context.deep and context.trust_indexes:
        if not broken and any(place.index is not None for place in places):
            raise NeedsDeep
        return
    try:
        yield from _compared(context, places)
    except CouldNotLook:
        if not broken:
            raise  # without room for the comparison, the pages found damaged are still said


def _compared(context: ScanContext, places: Iterable[Place]) -> Iterator[Finding]:
    for place in places:
        if place.index is not None and _to_be_compared(context, place):
            checked = check(context.connection, place.index)
            if checked.problem:
                context.search.damaged[place.name] = checked.problem
                found = _finding(place, checked.problem, checked, pages=False)
                yield msgspec.structs.replace(found, next=f"{SELECTED} {DAMAGE.slug}")


def _broken(place: Place) -> str:
    """What is wrong with the tables of an index, or ''."""
    if place.lost:
        return f"it has no {', '.join(place.lost)}"
    if place.index is not None and place.index.content and place.index.unknown and not place.wanted.refused:
        return place.index.unknown
    return place.trouble


def _to_be_compared(context: ScanContext, place: Place) -> bool:
    """An index that another class reports, or that this engine cannot open, is not held against its text."""
    if not place.usable or place.tokenizer_missing or waits(context, place):
        return False
    content = context.search.content(context, place)
    return not content.missing and not content.left


def _finding(place: Place, problem: str, checked: Checked, *, pages: bool, refused: str = "") -> Finding:
    return DAMAGE.finding(
        table=place.name,
        key=place.name,
        kind="pages" if pages else "entries",
        message=f"it is damaged ({problem}); the messages are not"
        if pages
        else "its entries do not fit the messages",
        evidence={
            "first_line": problem,
            "canonical": False,
            "engine": versions()["sqlite"],
            **(
                {"nul_texts_whole": checked.whole, "nul_texts_up_to_nul": checked.stopped}
                if checked.whole or checked.stopped
                else {}
            ),
        },
        remedies=(
            _works.remedy(
                DAMAGE,
                key=place.name,
                title=f"drop {place.name} and make it anew from the messages",
                works=(SearchWork(place.name, "remake"),),
                places=(place,),
                refused=refused,
            ),
        ),
    )


def _left_after_drop(context: ScanContext, place: Place) -> str:
    """Why dropping the index would not leave a sound file, or ''; other damaged indexes go with it in the trial.

    Inside `apply` the drop itself follows, and its backup was tried. While a table is damaged, nothing is planned at all.
    """
    if context.gate.damages or not context.connection.readonly("main"):
        return ""
    broken = [
        other.name for other in context.search.places(context) if other.index is not None and _broken(other)
    ]
    try:
        problems = problems_after(context.connection, sorted({place.name, *broken}))
    except CouldNotLook as error:
        return str(error)
    if not problems:
        return ""
    return f"its pages cannot be freed in place ({problems[0].splitlines()[0]}){_BY_SALVAGE}"


DAMAGE = declare(
    __name__,
    __doc__,
    code="HDB802",
    severity=Severity.ERROR,
    safety=Safety.EXACT,
    answers=(_works.REBUILD,),
    reads=("state_meta",),
    noun=("index", "indexes"),
    find=_find,
)
