"""Compare every entry of a full-text index with the text it came in by, in a scratch database; never touches the file.

FTS5 does the comparing. What it must not hold against a healthy index is put right first: a text with a NUL byte that came in
by the rule of another engine ends at that byte (each entry is asked for its number of tokens, so a file that two engines
wrote passes), and rows that are not in the index are no entries. Answers of tools that the triggers cut by a moving mark
cannot be told, so there the index is checked without its text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import apsw

from . import known
from .copies import scratch_folder
from .file_sql import run_one
from .queries import quote
from .search_definition import TEXT_COLUMNS, SearchIndex
from .search_rule import rule_of, token_counter
from .search_segments import unreachable
from .search_sql import filled, names, rows, run
from .search_sql import texts as texts_of

_CONTENT = re.compile(
    r"""\bcontent\s*=\s*('(?:[^']|'')*'|"(?:[^"]|"")*"|`[^`]*`|\[[^\]]*\]|\w+)""", re.IGNORECASE
)
_ROWID = re.compile(
    r"""\bcontent_rowid\s*=\s*('(?:[^']|'')*'|"(?:[^"]|"")*"|`[^`]*`|\[[^\]]*\]|\w+)""", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class Checked:
    """What FTS5 said of one index ('' for nothing) and how many texts with a NUL byte came in whole, or up to it."""

    problem: str
    whole: int = 0
    stopped: int = 0


def check(connection: apsw.Connection, index: SearchIndex) -> Checked:
    """Check one index whose tables are all there and whose tokenizer is here. Raises CouldNotLook without room."""
    try:
        if problem := unreachable(connection, index) or _of_another_text(connection, index):
            return Checked(problem)
        whole, stopped = _nul_rows(connection, index)
        with scratch_folder(_room(connection)) as folder:
            scratch = apsw.Connection(str(folder / "index.db"))
            try:
                scratch.execute("PRAGMA journal_mode = OFF").fetchall()
                scratch.execute("PRAGMA synchronous = OFF").fetchall()
                with scratch:
                    _carry(connection, scratch, index, stopped)
                return Checked(_problem(connection, scratch, index), whole, len(stopped))
            finally:
                scratch.close()
    except (apsw.Error, UnicodeDecodeError) as error:
        return Checked(str(error))


def _room(connection: apsw.Connection) -> int:
    """Bytes that the scratch database can take at most."""
    ((pages,),) = connection.execute("PRAGMA page_count").fetchall()
    ((size,),) = connection.execute("PRAGMA page_size").fetchall()
    return int(pages) * int(size)  # type: ignore[arg-type]  # both pragmas answer with an integer


def _nul_rows(connection: apsw.Connection, index: SearchIndex) -> tuple[int, frozenset[int]]:
    """How many texts with a NUL byte came in whole, and the ids of those that came in up to it; only of trigrams."""
    if not index.trigram:
        return 0, frozenset()
    count = token_counter(connection, index)
    block = "nul_rows_inline" if index.inline else "nul_rows_external"
    whole = 0
    stopped: set[int] = set()
    for id_, sizes, *texts in rows(connection, block, parts=names(index)):
        rule = rule_of(count, sizes, texts)
        whole += rule == "whole"
        if rule == "stops":
            stopped.add(id_)
    return whole, frozenset(stopped)


def _of_another_text(connection: apsw.Connection, index: SearchIndex) -> str:
    """How many entries of an index with a copy of its own hold another text than their message gives, or ''."""
    if not index.inline:
        return ""
    whole, stopped = (texts_of(index, stopped=one) for one in (False, True))
    parts = {**names(index), "whole": whole, "until_nul": stopped}
    ((count, first),) = run(connection, "other_texts", parts=parts)
    return (
        f"{index.name}: {count:,} entries, the first of message {first}, hold another text" if count else ""
    )


def _carry(
    connection: apsw.Connection, scratch: apsw.Connection, index: SearchIndex, stopped: frozenset[int]
) -> None:
    if not index.inline:
        run(scratch, "make_texts")
        for block in ("take_texts", "take_texts_left_out") if index.reads_view else ("take_texts",):
            texts = rows(connection, block, parts=names(index))
            scratch.executemany(filled("put_texts", {}), _as_came_in(_wide(index, texts), stopped))
    run_one(scratch, _create_sql(index))
    for tail in known.SHADOW_TAILS:
        if tail == "content" and not index.inline:
            continue
        parts = {"table": quote(f"{index.name}_{tail}")}
        found = rows(connection, f"take_{tail}", parts=parts)
        run(scratch, "empty_table", parts=parts)
        scratch.executemany(
            filled(f"put_{tail}", parts), _as_came_in(found, stopped) if tail == "content" else found
        )


def _create_sql(index: SearchIndex) -> str:
    sql = _CONTENT.sub("content='entry_texts'", index.create_sql, count=1)
    return _ROWID.sub("content_rowid='id'", sql, count=1)


def _wide(index: SearchIndex, found: Iterable[tuple[Any, ...]]) -> Iterator[tuple[Any, ...]]:
    """Rows with every text column, None for those that the index lacks."""
    places = [index.columns.index(name) + 1 if name in index.columns else None for name in TEXT_COLUMNS]
    for row in found:
        yield (row[0], *(None if place is None else row[place] for place in places))


def _as_came_in(found: Iterable[tuple[Any, ...]], stopped: frozenset[int]) -> Iterator[tuple[Any, ...]]:
    for id_, *texts in found:
        if id_ in stopped:
            yield (id_, *(text if text is None else text.partition(b"\0")[0] for text in texts))
        else:
            yield (id_, *texts)


def _problem(connection: apsw.Connection, scratch: apsw.Connection, index: SearchIndex) -> str:
    """What FTS5 says, in the words of the pragma: the command names no index."""
    try:
        run(scratch, "strict_check", {"strict": int(not _cut_by_mark(connection, index))}, names(index))
    except apsw.Error:
        said = [
            str(line)
            for (line,) in scratch.execute(f"PRAGMA integrity_check({quote(index.name)})")
            if line != "ok"
        ]
        return said[0].splitlines()[0] if said else f"entries of {index.name} do not fit their texts"
    return ""


def _cut_by_mark(connection: apsw.Connection, index: SearchIndex) -> bool:
    limit = index.head_limit
    return limit is not None and bool(run(connection, "long_answers", {"limit": limit})[0][0])
