"""Render what a salvage did as text and JSON; computes nothing and opens nothing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

import msgspec

from ..columns import columns
from ..shown import one_line, shell_word
from ..sizes import counted, short, size_text

if TYPE_CHECKING:
    from ..salvage.facts import Salvaged, SalvagedTable

FORMAT_VERSION = 1
SHOWN = 10
"""Pages, ranges or sessions of one kind before the rest is only counted; JSON has more."""

_PROOF = {
    "index": "proved by an index",
    "partly": "at least: no index could be read whole",
    "": "not proved by an index",
}


def salvage_document(done: Salvaged, tool: Mapping[str, str]) -> dict[str, Any]:
    """What was read, lost and made, as JSON."""
    return {
        "format": "hermes-dbtools/salvage",
        "format_version": FORMAT_VERSION,
        "tool": dict(tool),
        "everything_read": done.complete,
        **msgspec.to_builtins(done),
    }


def salvage_text(done: Salvaged) -> str:
    """What was read and what was lost: the file, its tables, then everything that is not as it was."""
    name = one_line(PurePath(done.source).name)
    lines = [
        f"{name} · {size_text(done.size)} · {done.page_count:,} pages of {done.page_size:,} bytes",
        *_ways(done),
        "",
        _tables(done.tables),
    ]
    for table in done.tables:
        lines += _losses(table)
    lines += [line for line in _beside(done) if line]
    rows = sum(table.rows for table in done.tables)
    end = (
        "everything was read"
        if done.complete
        else "not everything could be read, or is as it must be: see above"
    )
    lines += ["", f"{rows:,} rows in {one_line(done.output)}: {end}"]
    return "\n".join(lines) + "\n"


def salvage_next(done: Salvaged) -> list[str]:
    """What to run next: look at the new file, mend it, and put it in the place of the old one."""
    output = shell_word(done.output)
    restore = f"hermes-dbtools restore {output} {shell_word(done.source)} --apply"
    return [
        f"hermes-dbtools scan {output}   what is still to be mended in it",
        f"{restore}   puts it in the place of the damaged file, which is kept",
    ]


def _ways(done: Salvaged) -> list[str]:
    lines = []
    if done.header == "derived":
        lines.append("its header was lost: page size and encoding follow from its pages")
    if done.schema == "pages":
        lines.append("pages of its schema were lost; the others were found one by one")
    if done.schema == "known":
        lines.append(f"a part of its schema was lost and was taken from the known shape {done.shape}")
    if done.free_list != "whole":
        lines.append("its list of free pages cannot be read: rows that were deleted may be among those found")
    if done.log:
        lines.append(done.log)
    if done.log_lost:
        count = counted(done.log_lost, "transaction lies", "transactions lie")
        lines.append(
            f"{count} behind a damaged place of the -wal and cannot be read: the newest messages are lost"
        )
    if done.unread_bytes:
        lines.append(
            f"{size_text(done.unread_bytes)} of its pages could not be read, or are cut off at its end"
        )
    return lines


def _tables(tables: Iterable[SalvagedTable]) -> str:
    rows = [
        [
            table.name,
            f"{table.rows:,}",
            f"{table.by_pages:,}" if table.by_pages else "",
            _lost(table),
            f"{len(table.pages):,}" if table.pages else "",
        ]
        for table in tables
    ]
    head = ["table", "rows", "from pages", "lost", "bad pages"]
    return columns(rows, head, indent="  ", numbers=True)


def _lost(table: SalvagedTable) -> str:
    if table.complete:
        return ""
    if table.proof == "index":
        return f"{table.lost:,}"
    if table.at_most is not None:
        return f"{table.lost:,} to {table.at_most:,}" if table.lost < table.at_most else f"{table.lost:,}"
    return f"at least {table.lost:,}" if table.lost else "unknown"


def _losses(table: SalvagedTable) -> list[str]:
    lines = []
    if table.pages:
        lines.append(f"  {table.name}: unreadable pages {_some([str(page) for page in table.pages])}")
    if table.lost:
        ranges = [str(low) if low == high else f"{low}-{high}" for low, high in table.ranges]
        lines.append(f"  {table.name}: lost ids {_some(ranges)} ({_PROOF[table.proof]})")
    if table.sessions:
        named = [f"{one_line(short(session))} ({count:,})" for session, count in table.sessions]
        lines.append(f"  {table.name}: lost of sessions {_some(named)}")
    if table.from_damaged:
        lines.append(
            f"  {table.name}: {table.from_damaged:,} rows lie on damaged pages: look at them before you rely on them"
        )
    if table.refused:
        lines.append(
            f"  {table.name}: {table.refused:,} rows repeat a key or break a rule of their table and were left out"
        )
    return ["", *lines] if lines else []


def _beside(done: Salvaged) -> list[str]:
    def each(counts: Mapping[str, int], words: str) -> list[str]:
        return [f"  {table}: {count:,} {words}" for table, count in counts.items()]

    lines = ["", *_schema(done)]
    if done.recovered:
        lines.append(
            f"  sessions: {done.recovered:,} rebuilt for the rows that name them, with source 'recovered'"
        )
    if done.detached:
        lines.append(f"  sessions: {done.detached:,} detached from a parent that is lost")
    lines += each(done.unpointed, "rows name no longer what is lost")
    lines += each(done.left_out, "rows left out: what they belong to is lost, or was deleted")
    lines += each(done.other_type, "rows with a value of another type than their column keeps")
    lines += each(done.not_text, "rows with text that is not UTF-8")
    if done.counters_off:
        lines.append(
            f"  sessions: the counters of {done.counters_off:,} do not fit their messages (repair recounts them)"
        )
    if done.violations:
        lines.append(f"  {done.violations:,} rows break a foreign key")
    if done.highest_ids == "lost":
        lines.append("  the highest ids ever given are lost: those of deleted rows may be given again")
    if done.doubts:
        lines.append("  pages of the old file do not add up: a row may hold what is not its own")
        lines += [f"    {one_line(doubt)}" for doubt in done.doubts[:SHOWN]]
    lines += [f"  the new file: {one_line(problem)}" for problem in done.problems[:SHOWN]]
    return lines if len(lines) > 1 else []


def _schema(done: Salvaged) -> list[str]:
    lines = []
    if done.schema_pages:
        lines.append(f"  schema: unreadable pages {_some([str(page) for page in done.schema_pages])}")
    if done.uncertain:
        tables = ", ".join(one_line(name) for name in done.uncertain)
        lines.append(f"  schema: more than one order of columns fits the rows of {tables}: look at them")
    if done.not_made:
        lines.append(
            f"  schema: could not be made again: {_some([one_line(name) for name in done.not_made])}"
        )
    if done.unplaced:
        lines.append(
            f"  {len(done.unplaced):,} pages hold rows that belong to no table for certain; none was taken"
        )
    if done.search_problem:
        lines.append(f"  search indexes are empty: {one_line(done.search_problem)}")
    elif done.search:
        lines.append(f"  search indexes made anew: {', '.join(done.search)}")
    return lines


def _some(items: Sequence[str]) -> str:
    more = f" and {len(items) - SHOWN:,} more" if len(items) > SHOWN else ""
    return ", ".join(items[:SHOWN]) + more
