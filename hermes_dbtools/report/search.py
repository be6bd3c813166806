"""Print what was found of the full-text indexes, and what a plan does to them; computes nothing and opens nothing."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ..columns import columns
from ..model import SearchIndexState, Step
from ..shown import one_line
from ..sizes import counted

HEADERS = ("index", "layout", "columns", "triggers", "rows", "indexed", "verdict")
GAPS_SHOWN = 3


def search_lines(states: Sequence[SearchIndexState]) -> list[str]:
    """A table with one line per index, then why those are not well that are not; nothing without indexes."""
    if not states:
        return []
    table = columns([_row(state) for state in states], HEADERS, indent="  ")
    reasons = [one_line(f"  {state.name}: {_reason(state)}") for state in states if state.why]
    return [table, *reasons, f"  as SQLite {states[0].engine} sees them", ""]


def works_text(steps: Iterable[Step]) -> list[str]:
    """What the steps do to indexes, in one or two words each."""
    words = {"remake": "made anew", "mend": "mended", "remove": "removed"}
    works = [work for step in steps for work in step.search]
    counts = {word: len({work.index for work in works if work.work == word}) for word in words}
    return [
        f"{counted(count, 'search index', 'search indexes')} {words[word]}"
        for word, count in counts.items()
        if count
    ]


def _row(state: SearchIndexState) -> list[str]:
    return [
        one_line(state.name),
        state.layout or "-",
        " ".join(state.columns) or "-",
        f"{len(state.triggers)}" if state.present else "-",
        "-" if state.expected is None else f"{state.expected:,}",
        "-" if state.indexed is None else f"{state.indexed:,}",
        state.verdict,
    ]


def _reason(state: SearchIndexState) -> str:
    if not state.gaps:
        return state.why
    shown = ", ".join(
        f"{first} to {last}" if first != last else f"{first}"
        for first, last, _rows in state.gaps[:GAPS_SHOWN]
    )
    return f"{state.why} (ids {shown}{' …' if len(state.gaps) > GAPS_SHOWN else ''})"
