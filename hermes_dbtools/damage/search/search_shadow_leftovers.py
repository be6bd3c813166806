"""Tables of a search index are left without the index

What it means
-------------
A virtual table is gone and the tables it was kept in are still there. While they have the names of an index
that the store wants, it cannot make that index: every start fails at it, or search stays off. Others only take
room.

Why it happens
--------------
`sqlite3 .recover` writes the tables of an index as ordinary ones and leaves the index out; a migration was
broken off between two steps; a migration to another layout renamed the old tables (`fts_v22_trash_…`) and was
stopped before it had taken them away by pieces.

Repair
------
Exact, offline: the tables go, and an index that the store wants is made anew from the messages, in the layout
its tables show, with its triggers, in the same transaction. Where that layout is not known, they go and the
store makes the index at its next start.

Safety
------
Exact: what the tables hold was made from messages. Only tables with the exact names that FTS5 gives, of an
index that the store has or had, are touched; a virtual table that this tool does not know is left alone.
"""

from __future__ import annotations

from collections.abc import Iterable

from ...model import Finding, Safety, SearchWork, Severity
from ...search_survey import Place, leftovers, table_bytes
from .._declare import ScanContext, declare
from . import _works


def _find(context: ScanContext) -> Iterable[Finding]:
    for place in context.search.places(context):
        if place.index is None:
            yield _orphaned(context, place)
    for name, tables in leftovers(context.shape).items():
        yield _demoted(context, name, tables)


def _orphaned(context: ScanContext, place: Place) -> Finding:
    makable = not _works.unmakable((place,)) and _tokenizer_is_here(context, place)
    work = SearchWork(place.name, "remake" if makable else "remove")
    title = f"drop what is left of {place.name}" + (" and make it anew from the messages" if makable else "")
    return DAMAGE.finding(
        table=place.name,
        key=place.name,
        kind="orphaned-tables",
        message=f"{len(place.parts)} tables of it are there and the index is not: the store cannot make it",
        evidence={
            "tables": place.parts,
            "layout": place.wanted.layout,
            "bytes": table_bytes(context.connection, place.parts),
        },
        remedies=(_works.remedy(DAMAGE, key=place.name, title=title, works=(work,), places=()),),
    )


def _tokenizer_is_here(context: ScanContext, place: Place) -> bool:
    index = place.wanted.index
    return index is not None and context.connection.fts5_tokenizer_available(index.tokenizer)


def _demoted(context: ScanContext, name: str, tables: tuple[str, ...]) -> Finding:
    unknown = tables == (name,)
    evidence = {"tables": tables, "bytes": table_bytes(context.connection, tables)}
    if unknown:
        return DAMAGE.finding(
            table=name,
            key=name,
            severity=Severity.NOTE,
            kind="unknown-index",
            message="a full-text table that no known release has and no trigger feeds",
            evidence=evidence,
        )
    work = SearchWork(name, "remove", leftovers=tables)
    return DAMAGE.finding(
        table=name,
        key=name,
        severity=Severity.WARNING,
        kind="demoted-tables",
        message=f"{len(tables)} tables of an earlier layout are left",
        evidence=evidence,
        remedies=(
            _works.remedy(DAMAGE, key=name, title=f"drop what is left of {name}", works=(work,), places=()),
        ),
    )


DAMAGE = declare(
    __name__,
    __doc__,
    code="HDB803",
    severity=Severity.ERROR,
    safety=Safety.EXACT,
    answers=(_works.REBUILD,),
    reads=("state_meta",),
    noun=("index", "indexes"),
    sums=(("bytes", "bytes"),),
    find=_find,
)
