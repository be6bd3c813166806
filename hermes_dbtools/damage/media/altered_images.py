"""A media file does not hold the bytes that its name says

What it means
-------------
Files under `native-inputs` lie in a folder that is named by the SHA-256 of their bytes, and files under
`cache/transcript_media` are themselves named so. One whose bytes have another digest was changed or cut off after it was
written. Hermes compares them before it uses them: a turn that needs such a file fails, and an image of a transcript is sent
as text.

Why it happens
--------------
A disk that was full or lost power in the middle of writing, a cleaner or an optimiser of images that rewrote files in place,
a synchronisation that brought half of a file.

Repair
------
By hand: put the right file back from a backup or from another copy of the home, or remove the wrong one, so that Hermes
treats it as missing.

Safety
------
Manual. Only regular files in those two places are read, no link is followed. Not reported: files with other names
(temporary ones among them) and folders that are not named by a digest.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator

from ...media_files import folders_of
from ...model import Finding, Safety, Severity
from .._declare import ScanContext, declare
from ._held import shown
from ._stored import StoredFile, stored_files


def _find(context: ScanContext) -> Iterator[Finding]:
    folders = folders_of(context.home) if context.home is not None else None
    if folders is None:
        return
    for file in stored_files(folders):
        with file.open() as opened:
            size = os.fstat(opened.fileno()).st_size
            found = hashlib.file_digest(opened, "sha256").hexdigest()
        if found != file.digest:
            yield _finding(file, found, size)


def _finding(file: StoredFile, found: str, size: int) -> Finding:
    name = shown(file.name)
    return DAMAGE.finding(
        table="files",
        key=name,
        message=f"{name} has other bytes than its name says ({size:,} bytes)",
        evidence={"path": shown(file.path), "named": file.digest, "sha256": found, "size": size},
    )


DAMAGE = declare(
    __name__,
    __doc__,
    code="HDB704",
    severity=Severity.ERROR,
    safety=Safety.MANUAL,
    noun=("file", "files"),
    sums=(("size", "bytes"),),
    find=_find,
)
