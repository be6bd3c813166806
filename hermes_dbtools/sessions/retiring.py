"""Say what a delete must keep of the runtime ledger of the sessions that go, and which files it frees; decides nothing else.

The rules are those of orphaned-ledger-rows (HDB901): here the sessions are still there.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from .. import retirement
from ..damage._declare import ScanContext, text, whole
from ..damage.runtime._ledger import Retirement, retirements, unknown_columns
from ..media_files import State, folders_of
from ..media_names import TEXT_COLUMNS, digests_in, inode_of, inodes_of, name_of, paths_in
from ..model import FileTrash, Statement, Value
from ._operation import Operation

LEDGER = (
    "session_admissions.target_session_id",
    "worker_executions.session_id",
    "worker_receipts.execution_id",
)


@dataclass(slots=True)
class Ledger:
    """What the ledger holds of all that goes with one root, and what a retirement of it writes."""

    admissions: int = 0
    workers: dict[str, int] = field(default_factory=dict)
    receipts: int = 0
    to_bury: int = 0
    found: Retirement = field(default_factory=Retirement)
    changes: list[str] = field(default_factory=list)
    freed: list[FileTrash] = field(default_factory=list)
    freed_keys: list[str] = field(default_factory=list)
    refusal: str = ""


def has_ledger(context: ScanContext) -> bool:
    """Whether deletes of this file retire."""
    return all(context.shape.has(need) for need in LEDGER)


def read_ledgers(operation: Operation, context: ScanContext, roots: Sequence[str]) -> Mapping[str, Ledger]:
    """The ledger of each root; none for a file without one. The temporary table of doomed sessions is filled."""
    if not has_ledger(context):
        return {}
    ledgers = {root: Ledger() for root in roots}
    owners: dict[Value, Ledger] = {}
    for session, root, admissions, workers, receipts, tombstoned in operation.rows(context, "ledger"):
        one = owners[session] = ledgers[str(root)]
        one.admissions += whole(admissions)
        one.receipts += whole(receipts)
        one.to_bury += not tombstoned
        if workers:
            one.workers[str(session)] = whole(workers)
    for session, found in retirements(operation, context).items():
        _add(owners[session].found, found)
    unknown = unknown_columns(context)
    for one in ledgers.values():
        if one.admissions or one.workers:
            one.refusal = unknown or next(iter(one.found.obstacles), "")
    for key, root in operation.rows(context, "changes"):
        ledgers[str(root)].changes.append(str(key))
    if any(one.found.files or one.admissions for one in ledgers.values()):
        _free_files(operation, context, owners)
    return ledgers


def retire(ids: str, one: Ledger) -> Iterator[Statement]:
    """The statements that keep what must be kept of one root, then remove its rows of the ledger."""
    files = [(key, *place) for key, place in sorted(one.found.files.items())]
    written: tuple[tuple[str, Literal["insert", "update", "delete"], int, dict[str, Value]], ...] = (
        ("shorten-results", "update", one.found.results, {}),
        ("shorten-changes", "update", len(one.changes), {"keys": json.dumps(one.changes)}),
        ("retire-media", "insert", len(files), {"files": json.dumps(files)}),
        ("drop-retired-media", "delete", len(one.freed_keys), {"keys": json.dumps(one.freed_keys)}),
        ("retire-admissions", "insert", one.admissions, {}),
        ("retire-identities", "insert", one.admissions, {"identities": json.dumps(one.found.identities)}),
    )
    for block, operation, count, more in written:
        if count:
            bound = {} if block in ("shorten-changes", "drop-retired-media") else {"ids": ids}
            yield Statement(block, {**bound, **more}, count, "state_meta", operation)
    for session, workers in sorted(one.workers.items()):
        bindings: dict[str, Value] = {"id": session, "closing": retirement.closing_digest(session)}
        yield Statement("retire-workers", bindings, workers, "state_meta", "insert")
    if one.to_bury:
        yield Statement("bury", {"ids": ids}, one.to_bury, "state_meta", "insert")
    for block, table, count in (
        ("drop-receipts", "worker_receipts", one.receipts),
        ("drop-workers", "worker_executions", sum(one.workers.values())),
        ("drop-admissions", "session_admissions", one.admissions),
    ):
        if count:
            yield Statement(block, {"ids": ids}, count, table, "delete")


def _add(one: Retirement, other: Retirement) -> None:
    one.identities += other.identities
    one.results += other.results
    one.obstacles += other.obstacles
    for key, place in other.files.items():
        one.files.setdefault(key, place)


def _free_files(operation: Operation, context: ScanContext, owners: Mapping[Value, Ledger]) -> None:
    """Sort the files of the admissions that go: free ones are moved away, others keep the wish to go some day."""
    folders = folders_of(context.home) if context.home is not None else None
    paths: dict[str, tuple[str, Ledger]] = {}
    for row in operation.rows(context, "admissions"):
        if isinstance(row[4], bytes):
            for path in sorted(paths_in([row[4]])):
                paths.setdefault(retirement.retired_media_key(path), (path, owners[text(row[0])]))
    if folders is None or not paths:
        return
    digests = digests_in(_texts(operation, context))
    held = inodes_of(paths_in(_bytes(operation.rows(context, "held-lists"))))
    free: list[str] = []
    for key, (path, one) in sorted(paths.items()):
        state = State.OUTSIDE if _unprintable(path) else folders.held(path)
        if state is State.MISSING:
            one.found.files.pop(key, None)
        elif state is State.FINE and name_of(path) not in digests and inode_of(path) not in held:
            one.found.files.pop(key, None)
            if (file := planned(path)) is not None:
                one.freed.append(file)
                free.append(key)
    for (known,) in operation.rows(context, "keys-there", {"keys": json.dumps(free)}):
        paths[str(known)][1].freed_keys.append(str(known))


def planned(path: str, session: str = "") -> FileTrash | None:
    """A regular file as it is now, to be moved away; None for anything else."""
    try:
        found = os.lstat(path)
    except (OSError, ValueError):
        return None
    if not stat.S_ISREG(found.st_mode):
        return None
    return FileTrash(path, found.st_size, found.st_mtime_ns, session=session)


def _unprintable(path: str) -> bool:
    try:
        path.encode("utf-8")
    except UnicodeEncodeError:
        return True
    return "\0" in path


def _texts(operation: Operation, context: ScanContext) -> Iterator[bytes]:
    for column in TEXT_COLUMNS:
        if context.shape.has(f"messages.{column}"):
            yield from _bytes(operation.rows(context, "message-texts", None, {"column": column}))
    for block in ("admission-texts", "stored-texts"):
        yield from _bytes(operation.rows(context, block))


def _bytes(rows: Iterator[tuple[Value, ...]]) -> Iterator[bytes]:
    for (value,) in rows:
        if isinstance(value, bytes):
            yield value
