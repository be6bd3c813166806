"""Gather what the ledger says of sessions that are gone, and why one may not be retired; decides nothing else."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from ... import retirement
from ...model import Value
from .._declare import Planner, ScanContext, text, whole
from ..references._adoption import identity

LISTS = ("api_turn_v1", "attachments_v1", "native_text_v1")
"""Parts of an admission's payload that list files, in the order of the block that reads them."""

_COLUMNS = (
    ("session_admissions", retirement.ADMISSION_COLUMNS),
    ("worker_executions", retirement.EXECUTION_COLUMNS),
    ("worker_receipts", retirement.RECEIPT_COLUMNS),
)


class Asker(Protocol):
    """Whoever has the blocks that are asked here in an SQL file of its own."""

    def rows(
        self, context: ScanContext, block: str, bindings: Mapping[str, Value] | None = None
    ) -> Iterator[tuple[Value, ...]]:
        """Rows of one of its blocks."""


@dataclass(slots=True)
class Retirement:
    """What a retirement of one session writes, and all that speaks against it."""

    identities: list[tuple[str, str]] = field(default_factory=list)
    files: dict[str, tuple[str, str, int]] = field(default_factory=dict)
    results: int = 0
    obstacles: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class LostSession:
    """The ledger rows of one session that has no row."""

    id: Value
    admissions: int
    workers: int
    receipts: int
    unfinished: int
    unknown: int
    tombstoned: bool


def lost_sessions(damage: Planner, context: ScanContext) -> list[LostSession]:
    """Every session without a row that the ledger names, in the order of its id."""
    found = []
    for value, storage, admissions, workers, receipts, unfinished, unknown, tombstoned in damage.rows(
        context, "sessions"
    ):
        found.append(
            LostSession(
                identity(value, storage),
                whole(admissions),
                whole(workers),
                whole(receipts),
                whole(unfinished),
                whole(unknown),
                bool(tombstoned),
            )
        )
    return found


def retirements(asker: Asker, context: ScanContext) -> Mapping[Value, Retirement]:
    """What a retirement of every session writes that the asker's blocks `admissions` and `workers` are about, by its id."""
    found: dict[Value, Retirement] = defaultdict(Retirement)
    for row in asker.rows(context, "admissions"):
        session_id, *words = (text(value) for value in row[:4])
        _admission(found[session_id], session_id, words, *row[4:])
    for value, fits, there in asker.rows(context, "workers"):
        one = found[text(value)]
        if not fits:
            one.obstacles.append("a worker of it holds a value that is no text")
        if there:
            one.obstacles.append("a terminal key of one of its workers is there already")
    _taken(asker, context, found)
    return found


def unknown_columns(context: ScanContext) -> str:
    """Why no row of this file's ledger may be retired, or ''."""
    for table, known in _COLUMNS:
        if more := sorted(set(context.shape.tables[table].columns) - known):
            return f"{table} has the column {more[0]}, which this tool does not know and would lose"
    return ""


def _admission(
    one: Retirement,
    session_id: Value,
    words: list[Value],
    lists: Value,
    fits: Value,
    result: Value,
    there: Value,
) -> None:
    admission, principal, request = words
    if not (
        fits
        and isinstance(session_id, str)
        and isinstance(admission, str)
        and isinstance(principal, str)
        and isinstance(request, str)
    ):
        one.obstacles.append("an admission of it holds a value that is no text")
        return
    if not isinstance(lists, bytes):
        one.obstacles.append("the payload of one of its admissions cannot be read")
        return
    if result == -1:
        one.obstacles.append("a stored result of it cannot be read")
    if there:
        one.obstacles.append("a terminal key of one of its admissions is there already")
    one.results += result == 1
    one.identities.append((admission, retirement.identity_key(principal, session_id, request)))
    for key, name, place in _files(lists):
        one.files.setdefault(key, (admission, name, place))


def _files(lists: bytes) -> Iterator[tuple[str, str, int]]:
    """The key of each file that an admission lists, with the list and the place in it."""
    parts = json.loads(lists.decode("utf-8", "surrogateescape"))
    for name, part in zip(LISTS, parts, strict=True):
        for place, entry in enumerate(part if isinstance(part, list) else ()):
            if isinstance(entry, dict) and isinstance(entry.get("path"), str):
                yield retirement.retired_media_key(entry["path"]), name, place


def _taken(asker: Asker, context: ScanContext, found: Mapping[Value, Retirement]) -> None:
    """Leave out the keys of files that are stored already; a stored identity is an obstacle."""
    keys = {key for one in found.values() for key in one.files}
    keys |= {key for one in found.values() for _admission_id, key in one.identities}
    if not keys:
        return
    rows = asker.rows(context, "keys-there", {"keys": json.dumps(sorted(keys))})
    there = {str(row[0]) for row in rows}
    taken = set(there)
    for one in found.values():
        one.files = {key: place for key, place in one.files.items() if key not in taken}
        taken |= one.files.keys()
        if any(key in there for _admission_id, key in one.identities):
            one.obstacles.append("a terminal key of one of its requests is there already")
