"""Say how much of its parent's transcript a session only copied; holds no text longer than it is compared.

A branch begins as a copy of the rows that were active then, in their order. Later rewinds and compactions of the
parent only mark those rows, so a copy is a part of the parent's rows, in order, that reaches the last row kept and
leaves out none that is still active. What a compression keeps does not: a summary stands in between, or rows are missing.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass

from ...model import Value
from .._declare import ScanContext, whole

FILE = "lineage/transcripts"
SPOKEN = (b"user", b"assistant")
BLANK = b"\t\n\r "
SUMMARIES = (b"[CONTEXT COMPACTION", b"[CONTEXT SUMMARY]")
"""How the text begins that a compression puts in place of what it leaves out (agent/context_compressor.py of Hermes)."""


@dataclass(frozen=True, slots=True)
class Copy:
    """How a session's rows begin: `copied` rows of its parent's, then `own` rows; `digest` is of all that were compared.

    `reaches` says that the copy goes to the last row the parent still has from then, past no active one; `spoken` that
    both sides speak in it; `summarised` that it begins with a compression's summary.
    """

    copied: int
    own: int
    reaches: bool
    spoken: bool
    summarised: bool
    digest: str


def begins_alike(context: ScanContext, child: Value, parent: Value) -> bool:
    """Whether the first texts are the same: asked first, for it reads two rows."""
    return any(row[0] for row in context.rows(FILE, "begins-alike", {"child": child, "parent": parent}))


def compare(context: ScanContext, child: Value, parent: Value, *, texts_only: bool) -> Copy:
    """Lay the session's rows over its parent's; `texts_only` leaves out tool rows, which some forks do not copy.

    Without it the first row of the session's own ends the comparison: then nothing of it is a mere copy.
    """
    digest, roles, copied, own, first, reached = hashlib.sha256(), set[bytes](), 0, 0, 0, 0
    theirs: Iterator[tuple[int, bool, bytes, bytes]] | None = None
    copying, gap, summarised = True, False, False
    for row_id, _active, role, text in _rows(context, child, texts_only):
        if theirs is None:
            first = row_id
            theirs = (row for row in _rows(context, parent, texts_only) if row[0] < first)
        digest.update(b"%d %d " % (len(role), len(text)) + role + text)
        match, passed = _find_next(theirs, role, text) if copying else (None, False)
        if match is None:
            copying = False
            own += 1
            if not texts_only:
                break
        else:
            summarised |= copied == 0 and text.startswith(SUMMARIES)
            copied, reached, gap = copied + 1, match, gap or passed
            roles.add(role)
    last = _last_kept(context, parent, texts_only, first) if copied else 0
    reaches = 0 < last <= reached and not gap
    return Copy(copied, own, reaches, roles >= set(SPOKEN), summarised, digest.hexdigest())


def _find_next(
    theirs: Iterator[tuple[int, bool, bytes, bytes]], role: bytes, text: bytes
) -> tuple[int | None, bool]:
    """The next row that says the same, and whether an active one is passed on the way to it."""
    passed = False
    for row_id, active, *said in theirs:
        if said == [role, text]:
            return row_id, passed
        passed |= active
    return None, passed


def _last_kept(context: ScanContext, parent: Value, texts_only: bool, before: int) -> int:
    """The last row from before the copy that is still active; of all rows where none is."""
    last = kept = 0
    for row_id, active, _role, _text in _rows(context, parent, texts_only):
        if row_id < before:
            last, kept = row_id, row_id if active else kept
    return kept or last


def _rows(
    context: ScanContext, session_id: Value, texts_only: bool
) -> Iterator[tuple[int, bool, bytes, bytes]]:
    for row_id, active, role, text in context.rows(FILE, "rows", {"session_id": session_id}):
        spoken = bytes(role) if isinstance(role, bytes) else b""
        said = text.strip(BLANK) if isinstance(text, bytes) else b""
        if not texts_only or (spoken in SPOKEN and said):
            yield whole(row_id), bool(active), spoken, said
