"""Pages of a table or an index are damaged

What it means
-------------
`quick_check` finds that a b-tree of the file is not what it must be. Where it is a table, its rows cannot be
relied on: some may be gone, others may be read twice, and healthy rows of another table can look orphaned
because of it. Where it is an index alone, all rows are there and are still read, without that index.

Why it happens
--------------
A disk that lies or is full, a machine that lost power, a copy made while the file was written, a sidecar
deleted by hand, file locks dropped by a second library in the same process, a network or synced folder.

Repair
------
By hand, on a copy, never in place: the runbook carries the rows over into a new file. An index that alone is
damaged is left out of the copy and made again. While this stands, no plan touches the file.

Safety
------
Manual. Each table is checked by itself, so one bad page does not hide what is known of the others, and what a
check said before it stopped is kept. Rows are counted by reading them: an index that is whole says which there are.
Damage of a search index is not reported here: it is made from messages and can be made again.
"""

from __future__ import annotations

from collections.abc import Iterable

from ...model import Finding, Safety, Severity
from ...readable_rows import Readable, readable_rows
from ...structure import KEY_INDEX, Gate, StructuralDamage
from .._declare import ScanContext, declare

FREE_LIST = "free list"
"""How a finding calls the list of free pages."""


def _find(context: ScanContext) -> Iterable[Finding]:
    for damage in context.gate.damages:
        read = _read(context, damage)
        yield DAMAGE.finding(
            table=damage.table,
            key=_object(damage),
            kind=damage.kind,
            message=_meaning(damage, context.gate, read),
            evidence={
                "object": _object(damage),
                "canonical": damage.kind not in ("index", "free-list"),
                "lines": damage.lines,
                "first_line": damage.first,
                "pages": list(damage.pages),
                **_counts(read),
            },
        )


def _read(context: ScanContext, damage: StructuralDamage) -> Readable | None:
    if damage.kind != "table" or damage.table not in context.shape.tables:
        return None
    # An index that only does not fit its table tells which rows are missing; one with damaged pages does not.
    bad = frozenset(d.index for d in context.gate.damages if d.kind == "index" and d.pages)
    return readable_rows(context.connection, context.shape, damage.table, bad)


def _counts(read: Readable | None) -> dict[str, object]:
    if read is None:
        return {}
    return {
        "rows": read.total,
        "rows_readable": read.readable,
        "rows_unreadable": read.unreadable,
        "counted_by": read.index,
        "at_most": read.at_most,
    }


def _object(damage: StructuralDamage) -> str:
    return FREE_LIST if damage.kind == "free-list" else damage.index or damage.table


def _meaning(damage: StructuralDamage, gate: Gate, read: Readable | None) -> str:
    if damage.kind == "schema":
        return "the schema cannot be read: nothing is known of the rows; work on a copy"
    if damage.kind == "free-list":
        return "the list of free pages is damaged: the rows are all there, and the next write may go over some of them"
    if damage.kind == "index" and damage.index.startswith(KEY_INDEX) and _only_indexes(damage.table, gate):
        if not damage.pages:
            return f"the index of a key of {damage.table} does not fit its rows; salvage says which there are"
        return (
            f"the index of a key of {damage.table} is damaged; its rows are all there, and salvage reads them"
        )
    if damage.kind == "index" and damage.table in gate.tables:
        return f"index {damage.index} does not fit its table {damage.table}, which is damaged too"
    if damage.kind == "index":
        return f"index {damage.index} is damaged; the rows of {damage.table} are still read, without it"
    return f"{_rows(damage.table, read)}, {_others(damage.table, gate)}; work on a copy"


def _rows(table: str, read: Readable | None) -> str:
    damaged = f"table {table} is damaged: its rows cannot be relied on"
    if read is None:
        return damaged
    if read.unreadable is None:
        return f"{damaged}, {read.readable:,} are readable, of how many is not known"
    most = "at most " if read.at_most else ""
    return f"{damaged}, {most}{read.unreadable:,} of {read.total:,} are unreadable"


def _others(table: str, gate: Gate) -> str:
    """What the damage means for the rest: the tables of the conversations, and search, which is made from messages."""
    damaged = {damage.table for damage in gate.damages if damage.kind != "index"}
    intact = [name for name in ("sessions", "messages") if name not in damaged]
    words = [f"{' and '.join(intact)} intact"] if intact else []
    if table == "messages":
        words.append("search rebuildable from what is readable")
    return ", ".join(words) or "other tables damaged too"


def _only_indexes(table: str, gate: Gate) -> bool:
    return all(damage.kind == "index" for damage in gate.damages if damage.table == table)


DAMAGE = declare(
    __name__,
    __doc__,
    code="HDB002",
    severity=Severity.ERROR,
    safety=Safety.MANUAL,
    stage="structure",
    noun=("object", "objects"),
    find=_find,
)
