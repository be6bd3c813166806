"""An admission or a message names a media file that is not there.

What it means
-------------
The database names a media file that is not there, is not a regular file, or does not lie in the folder that
owns it. How bad that is depends on who names it:

* An admission that holds the file (`api_turn_v1.media` in every status; `attachments_v1`, `native_text_v1`
  and the document lines of a hosted room until the turn is settled) is an error. Hermes identifies every
  held file before it removes any: one that it cannot identify stops all clean-up of images, and the folder
  only grows.
* `messages.media_content` of an active message is a warning: the message is sent to the model as text.
* A path in the text of a message is a note: nothing breaks, but the reader no longer finds the file. Paths
  into caches that Hermes empties by age, and attachments of settled turns, dangle by design; they are
  counted once.

A folder that is absent as a whole is one finding, not one for each file. Inline data, URLs, paths of Windows,
`hermes-retained:<sha256>`, arbitrary local paths in chat text and retired keys name no file of this home and
are not looked at. A database that does not stand in a home (no `cache`, `sessions`, `logs`,
`config.yaml` … beside it) is not judged.

Why it happens
--------------
Files removed by hand or by a cleaner of disks; a home restored, moved or synchronised without its `cache`
folder; a home moved behind a link, so that the recorded real path is no longer the folder's; a crash between
publishing a file and a power loss. Reports tell of stored names that no longer resolve after a folder moved,
and of turns that fail until the gateway is started anew because an image is missing.

Repair
------
`report` (the default) changes nothing. `relink` copies the bytes back to their content-addressed place when
exactly one regular file in the home's media folders has the recorded digest. `drop` takes the dead entry out
of a settled admission, which makes clean-up work again and shows `[Image no longer retained]` on replay; or
empties `media_content`, so that the message is its text. Text of messages is never changed.

Safety
------
`relink` writes only where nothing stands and only inside the owning folder; the rows stay as they are.
`drop` loses the reference, so it needs `--allow-lossy`, and is refused while the admission may still run.
Sessions that are live are left alone. Images are opened only to compare digests, and only files of the
recorded size.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator

from ...media_files import MediaFolders, State, find_copies, folders_of
from ...model import Finding, Remedy, Safety, Severity
from .._declare import Damage, NotApplicable, ScanContext, declare
from ._held import Broken, broken_references, held_findings, shown
from ._texts import Gone, Group, gone_from_messages, text_findings


def _find(context: ScanContext) -> Iterable[Finding]:
    folders = folders_of(context.home) if context.home is not None else None
    if folders is None:
        raise NotApplicable("the file lies in no Hermes home: nothing says where its images are")
    broken = broken_references(context, folders)
    gone = gone_from_messages(DAMAGE, context, folders, {one.path for one in broken})
    absent, listed = _by_absence(broken, folders)
    wanted = [want for one in listed if (want := one.wanted())]
    wanted += [want for group in gone.transcripts.values() for want in group.wanted.values() if want]
    copies = find_copies(folders, wanted)
    yield from _absent_folders(absent, gone)
    yield from held_findings(DAMAGE, listed, copies)
    yield from text_findings(DAMAGE, gone, copies)


def _by_absence(broken: list[Broken], folders: MediaFolders) -> tuple[dict[str, list[Broken]], list[Broken]]:
    """Held files by the absent folder that they all are in, and the rest.

    Without the home's own `native-inputs`, references into that of another home say only that files did not
    come along.
    """
    own = folders.native_inputs
    if own.present:
        return {}, broken
    absent: dict[str, list[Broken]] = {}
    listed: list[Broken] = []
    for one in broken:
        if one.state is not State.OUTSIDE:
            absent.setdefault(own.root.value, []).append(one)
        elif one.other_home and not os.path.lexists(one.path):
            absent.setdefault(one.other_home, []).append(one)
        else:
            listed.append(one)
    return absent, listed


def _absent_folders(held: dict[str, list[Broken]], gone: Gone) -> Iterator[Finding]:
    for key in sorted({*held, *gone.absent}):
        references, mentioned = held.get(key, []), gone.absent.get(key, Group())
        reason = (
            "the whole folder is absent: put it back, or make it empty to have its files listed one by one"
        )
        yield DAMAGE.finding(
            table="session_admissions" if references else "messages",
            key=shown(key),
            kind="folder-absent",
            severity=Severity.WARNING if references else Severity.NOTE,
            message=f"the whole folder {shown(key)} is absent, with {_count(references, mentioned)}",
            evidence={
                "held": len(references),
                "sessions": len({one.session for one in references}),
                "mentioned": mentioned.references,
                "messages": len(mentioned.messages),
            },
            remedies=(
                Remedy("report", Safety.MANUAL),
                Remedy("relink", Safety.EXACT, refused=reason),
                Remedy("drop", Safety.LOSSY, refused=reason),
            ),
        )


def _count(references: list[Broken], mentioned: Group) -> str:
    parts = [f"{len(references)} held files"] if references else []
    if mentioned.references:
        parts.append(f"{mentioned.references} files that messages name")
    return " and ".join(parts)


DAMAGE: Damage = declare(
    __name__,
    __doc__,
    code="HDB701",
    severity=Severity.ERROR,
    safety=Safety.CHOICE,
    answers=("report", "relink", "drop"),
    reads=("messages", "session_admissions"),
    noun=("finding about media files", "findings about media files"),
    find=_find,
)
