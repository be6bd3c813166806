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
check said before it stopped is kept. Damage of a search index is not reported here: it is made from messages
and can be made again.
"""

from __future__ import annotations

from collections.abc import Iterable

from ...model import Finding, Safety, Severity
from ...structure import KEY_INDEX, Gate, StructuralDamage
from .._declare import ScanContext, declare


def _find(context: ScanContext) -> Iterable[Finding]:
    for damage in context.gate.damages:
        yield DAMAGE.finding(
            table=damage.table,
            key=damage.index or damage.table,
            kind=damage.kind,
            message=_meaning(damage, context.gate),
            evidence={
                "object": damage.index or damage.table,
                "canonical": damage.kind != "index",
                "lines": damage.lines,
                "first_line": damage.first,
            },
        )


def _meaning(damage: StructuralDamage, gate: Gate) -> str:
    if damage.kind == "schema":
        return "the schema cannot be read: nothing is known of the rows; work on a copy"
    if damage.kind == "index" and damage.index.startswith(KEY_INDEX) and _only_indexes(damage.table, gate):
        return (
            f"the index of a key of {damage.table} is damaged; its rows are all there, and salvage reads them"
        )
    if damage.kind == "index" and damage.table in gate.tables:
        return f"index {damage.index} does not fit its table {damage.table}, which is damaged too"
    if damage.kind == "index":
        return f"index {damage.index} is damaged; the rows of {damage.table} are still read, without it"
    return f"table {damage.table} is damaged: its rows cannot be relied on; work on a copy"


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
