"""Run one damage class, and the statements of its remedies, on a fixture file; never plans or undoes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import apsw

from hermes_dbtools import queries
from hermes_dbtools.damage._declare import Damage, ScanContext
from hermes_dbtools.file_state import examine
from hermes_dbtools.model import Finding
from hermes_dbtools.shape import read_shape
from hermes_dbtools.structure import check_structure


@contextmanager
def looking(path: Path, *, writable: bool = False, trust_indexes: bool = True) -> Iterator[ScanContext]:
    """A context as a scan makes it, with `now` fixed; `writable` is for running statements."""
    state = examine(path)
    flags = apsw.SQLITE_OPEN_READWRITE if writable else apsw.SQLITE_OPEN_READONLY
    connection = apsw.Connection(str(path), flags=flags)
    try:
        connection.execute("PRAGMA foreign_keys = ON")
        shape = read_shape(connection)
        gate = check_structure(connection, shape)
        yield ScanContext(
            connection, shape, None, state, gate, now=1_790_000_000.0, trust_indexes=trust_indexes
        )
    finally:
        connection.close()


def findings(damage: Damage, path: Path, *, trust_indexes: bool = True) -> list[Finding]:
    """What the class finds; none where the file lacks what it needs."""
    with looking(path, trust_indexes=trust_indexes) as context:
        if not all(context.shape.has(need) for need in damage.needs):
            return []
        return list(damage.find(context))


def brief(found: list[Finding]) -> list[tuple[str, str, str]]:
    """Kind, key and severity of each finding."""
    return [(finding.kind, finding.key, finding.severity.word) for finding in found]


def mend(damage: Damage, path: Path, answer: str) -> int:
    """Run the steps of this answer for all findings, foreign keys on; returns the rows changed.

    Fails where a statement changes other than the rows it expects.
    """
    total = 0
    with looking(path, writable=True) as context:
        for finding in list(damage.find(context)):
            remedy = next((one for one in finding.remedies if one.answer == answer), None)
            if remedy is None or remedy.step is None or remedy.refused:
                continue
            for statement in remedy.step.statements:
                query = queries.choose(damage.sql, statement.block, context.has)
                assert query is not None
                context.connection.execute(query.sql, dict(statement.bindings))
                changed = context.connection.changes()
                assert changed == statement.expect, (finding.key, statement.block, changed)
                total += changed
    return total
