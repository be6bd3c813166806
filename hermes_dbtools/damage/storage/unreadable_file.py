"""The file is no SQLite database: empty, all zeroes, cut off, or without its header

What it means
-------------
Not one row of this file can be read as it stands. Hermes either fails to start with it or, where the file is
empty, starts a new history without saying so.

Why it happens
--------------
A crash or a full disk while the file was written or copied; a sync client, an operating system update or a
backup that put zeroes or another file in its place; a copy that stopped half-way. Public reports show 95 MB
of zero bytes after a system update, a file of 0 bytes after a crash, and a first page torn by an
out-of-memory kill.

Repair
------
By hand, from a backup or from what a copy still holds: the runbook says in which order to look. Nothing is
planned.

Safety
------
Manual. The file is looked at before SQLite opens anything, because opening an empty file for writing would
make it a new, empty database. A missing file, a folder, a FIFO or a file without permission is not damage:
nothing was looked at.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ...model import Finding, Safety, Severity
from .._declare import ScanContext, declare

MESSAGES: Mapping[str, str] = {
    "empty": "the file is 0 bytes long: no row is left; stop Hermes before it starts anew here",
    "zeroes": "the file holds only zero bytes: no row is left; look for a backup, or a -wal",
    "wrong-header": "the file does not begin as an SQLite database does: it is another file, or its "
    "first page is overwritten; work on a copy",
    "truncated": "the file is shorter than its header says: its end is cut off; work on a copy",
}


def _find(context: ScanContext) -> Iterable[Finding]:
    state = context.file
    message = MESSAGES.get(state.problem)
    if message is None:
        return
    evidence: dict[str, object] = {"bytes": state.size}
    if state.problem == "truncated":
        evidence["expected_bytes"] = state.page_size * state.page_count
    if state.wal_size is not None:
        evidence["wal_bytes"] = state.wal_size
    yield DAMAGE.finding(
        table="", key=state.path.name, kind=state.problem, message=message, evidence=evidence
    )


DAMAGE = declare(
    __name__,
    __doc__,
    code="HDB001",
    severity=Severity.ERROR,
    safety=Safety.MANUAL,
    stage="file",
    noun=("file", "files"),
    find=_find,
)
