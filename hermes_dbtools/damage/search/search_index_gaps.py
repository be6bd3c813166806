"""A search index lacks messages, or holds entries of messages that are gone

What it means
-------------
Search does not find some messages, or fails on a hit whose message is gone. The messages themselves are whole.
An index can look finished and hold next to nothing: the number of its rows alone says little.

Why it happens
--------------
A program without the full-text module, or with the triggers taken off, wrote or deleted messages; a migration
stamped its work as done before it was; an index was restored from an older copy than the messages.

Repair
------
Exact, offline: the missing messages come in and the stray entries go, by the very rule of the file's own
triggers; then every entry is compared with its text. Where that fails, or would cost more, the index is
dropped and made anew in the layout it had, in the same transaction.

Safety
------
Exact: an index is made from messages and no message is touched. An undo leaves the index as it was made.
What should be in is asked of the view or table that the index reads: an index that leaves out answers of
tools, or the sessions of cron jobs, is whole without them. Rows that wait for a refill in progress are no gap.
"""

from __future__ import annotations

from collections.abc import Iterable

from ...model import Finding, Safety, SearchWork, Severity
from ...search_survey import Content, Place
from ...sizes import counted
from .._declare import ScanContext, declare
from . import _works
from ._pending import waits


def _find(context: ScanContext) -> Iterable[Finding]:
    for place in context.search.places(context):
        if not place.usable or waits(context, place):
            continue
        content = context.search.content(context, place)
        if content.missing or content.left:
            yield _finding(place, content)


def _finding(place: Place, content: Content) -> Finding:
    work = SearchWork(place.name, "remake" if _nothing_is_right(content) else "mend")
    rows = content.missing + content.left
    title = f"bring {place.name} up to its {content.expected:,} rows ({rows:,} to mend)"
    return DAMAGE.finding(
        table=place.name,
        key=place.name,
        message=_message(content),
        evidence={
            "expected": content.expected,
            "indexed": content.indexed,
            "missing": content.missing,
            "left": content.left,
            "missing_ranges": content.gaps,
            "left_ranges": content.left_gaps,
        },
        remedies=(_works.remedy(DAMAGE, key=place.name, title=title, works=(work,), places=(place,)),),
    )


def _nothing_is_right(content: Content) -> bool:
    """Whether there is no entry that a mending would keep."""
    return content.indexed == content.left


def _message(content: Content) -> str:
    parts = []
    if content.missing:
        first, last = content.gaps[0][0], content.gaps[-1][1]
        parts.append(
            f"{content.missing:,} of {content.expected:,} messages are not in it (ids {first} to {last} and on)"
            if content.missing > sum(gap[2] for gap in content.gaps)
            else f"{content.missing:,} of {content.expected:,} messages are not in it (ids {first} to {last})"
        )
    if content.left:
        parts.append(
            f"{counted(content.left, 'entry belongs', 'entries belong')} to no message that should be in it"
        )
    return "; ".join(parts)


DAMAGE = declare(
    __name__,
    __doc__,
    code="HDB801",
    severity=Severity.ERROR,
    safety=Safety.EXACT,
    answers=(_works.REBUILD,),
    reads=("messages", "sessions", "state_meta"),
    noun=("index", "indexes"),
    sums=(("missing", "rows missing"), ("left", "entries left")),
    find=_find,
)
