"""Files in the media folders are named by nothing.

What it means
-------------
A file below `native-inputs`, `cache/transcript_media` or `composer-pastes` is older than a day, and no message, no admission and
no other stored value names it. Nothing reads it; it takes room. The three folders are one finding each.

Why it happens
--------------
Hermes writes a file before the row that names it, so a crash between the two leaves the file. A delete by a script or another
user interface removes rows and no files. One held file that cannot be identified (dangling-image-references) stops every clean-up
of images; public reports tell of folders that only grow.

Repair
------
`trash` moves the files beside the receipt, after the COMMIT, each only as the file that was found, with the digest that its name
says, and only while nothing names it. Room is gained when the receipt's folder is removed; until then undo puts the files back.

Safety
------
Planned only with `--allow-lossy`, and refused while another process holds the store or while `sessions` is empty. Never touched:
files that were written, renamed or linked within 24 hours, files that an admission of any state lists, files that any message
names (active or not, in plain text or escaped as JSON), other names of a held file, links, folders, temporary names, pasted texts
under names that Hermes does not give, and files that a delete has marked for removal (retired-media-leftovers). The messages of
other profiles are not asked: each profile has folders of its own. A pasted text in a draft that was never sent is named by
nothing.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...media_files import folders_of
from ...model import Finding, Remedy, Safety, Severity, Step
from ...retirement import retired_media_key
from ...sizes import counted, size_text
from .._declare import Damage, NotApplicable, ScanContext, declare
from ._held import STOPPER, broken_references
from ._unnamed import HELD, MediaFile, media_files, unnamed

GRACE_SECONDS = 24 * 3600
"""How long a file is left alone after its bytes or its name changed: a row that names it may still come."""

NO_SESSIONS = "sessions is empty: its rows were lost, and these files are part of what is left of them"


def _find(context: ScanContext) -> Iterator[Finding]:
    folders = folders_of(context.home) if context.home is not None else None
    if folders is None:
        raise NotApplicable("the file lies in no Hermes home: nothing says where its images are")
    old = [file for file in media_files(context, folders) if file.changed <= context.now - GRACE_SECONDS]
    if not old:
        return
    retired = {row[0] for row in DAMAGE.rows(context, "retired")}
    free = unnamed(context, [file for file in old if retired_media_key(file.path) not in retired])
    if not free:
        return
    stopped = any(broken_references(context, folders))
    refused = HELD if context.file.holders.held else None
    if not any(True for _row in DAMAGE.rows(context, "any-session")):
        refused = NO_SESSIONS
    for name in dict.fromkeys(file.folder for file in free):
        group = [file for file in free if file.folder == name]
        yield _finding(name, group, refused, stopped=stopped and name == "native-inputs")


def _finding(name: str, files: list[MediaFile], refused: str | None, *, stopped: bool) -> Finding:
    size = sum(file.size for file in files)
    found = counted(len(files), "file")
    step = Step(
        DAMAGE.code,
        DAMAGE.slug,
        name,
        "trash",
        f"move {found} of {name} away: {size_text(size)}",
        (),
        trash=tuple(file.trash() for file in files),
    )
    evidence: dict[str, object] = {
        "files": len(files),
        "bytes": size,
        "oldest": min(file.mtime_ns for file in files) / 1e9,
        "newest": max(file.mtime_ns for file in files) / 1e9,
    }
    if stopped:
        evidence["caused_by"] = STOPPER
    return DAMAGE.finding(
        table="files",
        key=name,
        message=f"{found} of {name} that nothing names: {size_text(size)}",
        evidence=evidence,
        remedies=(Remedy("trash", Safety.LOSSY, None if refused else step, refused),),
    )


DAMAGE: Damage = declare(
    __name__,
    __doc__,
    code="HDB703",
    severity=Severity.NOTE,
    safety=Safety.LOSSY,
    answers=("trash",),
    reads=("messages", "session_admissions", "sessions", "state_meta"),
    noun=("media folder", "media folders"),
    sums=(("files", "files"), ("bytes", "bytes")),
    find=_find,
)
