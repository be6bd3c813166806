"""A large part of the file is free pages

What it means
-------------
Rows were deleted and the file has kept their room. New rows use it first, so nothing grows because of it; but copies,
backups and checks read these pages too.

Why it happens
--------------
SQLite never gives room back by itself. A prune, a delete of many sessions or of a search index leaves it; public reports
show files of 1.9 GB of which three quarters were free.

Repair
------
By hand: `VACUUM INTO` writes a new file without them, which takes the place of the old one while nothing runs. The runbook
has the steps. No repair of this tool shrinks a file in place: that writes every page anew, and damaged files of public
reports were made so.

Safety
------
Manual, and a note: free pages are no damage. Below 10 MB, or a fifth of the file, it is not worth a word. What is told is
what is certain: half-filled pages, which a new file would pack better, are not counted.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...model import Finding, Safety, Severity
from ...sizes import size_text
from .._declare import ScanContext, declare, whole

LEAST = 10_000_000
"""Bytes below which free pages are not reported."""

SHARE = 5
"""Free pages are reported from one of so many pages on."""


def _find(context: ScanContext) -> Iterator[Finding]:
    size, pages, free = (
        sum(whole(row[0]) for row in context.connection.execute(f"PRAGMA {name}"))
        for name in ("page_size", "page_count", "freelist_count")
    )
    if not worth_a_word(free * size, pages * size):
        return
    yield DAMAGE.finding(
        table="",
        key=context.file.path.name,
        message=f"{size_text(free * size)} of {size_text(pages * size)} are free pages: VACUUM INTO makes a file of about "
        f"{size_text((pages - free) * size)}",
        evidence={
            "free_bytes": free * size,
            "bytes": pages * size,
            "page_size": size,
            "pages": pages,
            "free_pages": free,
        },
    )


def worth_a_word(free: int, size: int) -> bool:
    """Whether that many free bytes of a file of `size` bytes are reported."""
    return free >= LEAST and free * SHARE >= size


DAMAGE = declare(
    __name__,
    __doc__,
    code="HDB007",
    severity=Severity.NOTE,
    safety=Safety.MANUAL,
    noun=("file", "files"),
    sums=(("free_bytes", "bytes"),),
    find=_find,
)
