"""The files that messages need or mention: find those that are gone; keeps no text and repairs nothing."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field

from ...media_files import Folder, MediaFolders, State, Wanted, is_file, state_of
from ...media_references import API_IMAGE_NAME, SHA256, Mention, Root, mentions, transcript_references
from ...model import Finding, Remedy, Safety, Severity, Statement, Value
from ...sizes import counted
from .._declare import Damage, ScanContext, printable, text, whole
from ._held import Copies, put_back

CHUNK = 200
"""Messages fetched at once; their number never enters the SQL."""

REPORT_ONLY = (Remedy("report", Safety.MANUAL),)


@dataclass(slots=True)
class Group:
    """What is gone of one session, or of one folder. Times are epoch seconds."""

    references: int = 0
    messages: set[int] = field(default_factory=set)
    roots: Counter[str] = field(default_factory=Counter)
    wanted: dict[str, Wanted | None] = field(default_factory=dict)
    oldest: float | None = None
    newest: float | None = None

    def add(self, message_id: int, root: Root, moment: Value) -> None:
        """Count one reference of a message."""
        self.references += 1
        self.messages.add(message_id)
        self.roots[root.value] += 1
        if isinstance(moment, int | float) and math.isfinite(moment):
            self.oldest = moment if self.oldest is None else min(self.oldest, moment)
            self.newest = moment if self.newest is None else max(self.newest, moment)


@dataclass(slots=True)
class Gone:
    """What messages miss: images and mentions by session, mentions into caches, and absent folders."""

    transcripts: dict[Value, Group] = field(default_factory=dict)
    mentions: dict[Value, Group] = field(default_factory=dict)
    swept: Group = field(default_factory=Group)
    absent: dict[str, Group] = field(default_factory=dict)


def gone_from_messages(
    damage: Damage, context: ScanContext, folders: MediaFolders, known: Collection[str]
) -> Gone:
    """What messages miss. Paths in `known` are reported elsewhere and count nowhere here."""
    gone = Gone()
    ids = context.sweep.run(context).reference_rows
    for first in range(0, len(ids), CHUNK):
        wanted = json.dumps(ids[first : first + CHUNK].tolist())
        for row in damage.rows(context, "texts", {"ids": wanted}):
            key, session, active, moment, images, content, calls, *others = row
            message_id = whole(key)
            if isinstance(images, bytes):
                _transcript(gone, folders, text(session), message_id, images, moment)
            seen: set[str] = set()
            for place, value in enumerate((content, calls, *others)):
                for mention in mentions(value, other=place > 0) if isinstance(value, bytes) else ():
                    found = _missing(mention, folders, bool(active), known)
                    if found is None or found[1] in seen:
                        continue
                    seen.add(found[1])
                    _group(gone, found[0], found[2], text(session)).add(message_id, found[2], moment)
    return gone


def text_findings(damage: Damage, gone: Gone, copies: Copies) -> Iterator[Finding]:
    """A finding for each session that misses images or mentions lost files, and one for the caches."""
    for session, group in sorted(gone.transcripts.items(), key=lambda item: printable(item[0])):
        yield _transcript_finding(damage, session, group, copies)
    for session, group in sorted(gone.mentions.items(), key=lambda item: printable(item[0])):
        yield damage.finding(
            table="messages",
            key=f"mentions {printable(session)}",
            kind="mention",
            severity=Severity.NOTE,
            message=f"{len(group.messages)} messages of one session mention files that are gone",
            evidence=_evidence(group) | {"session": printable(session)},
            session_ids=(session,),
            remedies=REPORT_ONLY,
        )
    if gone.swept.references:
        yield damage.finding(
            table="messages",
            key="swept caches",
            kind="swept",
            severity=Severity.NOTE,
            message=f"{len(gone.swept.messages)} messages mention files that Hermes removes by design",
            evidence=_evidence(gone.swept),
            remedies=REPORT_ONLY,
        )


def _transcript(
    gone: Gone, folders: MediaFolders, session: Value, message_id: int, images: bytes, moment: Value
) -> None:
    folder = folders.transcript_media
    for reference in transcript_references(message_id, images, folder.place):
        state = state_of(reference.path) if folder.present else State.MISSING
        if state is State.FINE:
            continue
        group = _group(gone, folder, Root.TRANSCRIPT_MEDIA, session, gone.transcripts)
        group.add(message_id, Root.TRANSCRIPT_MEDIA, moment)
        digest = reference.sha256 or ""
        group.wanted[reference.path] = Wanted(digest, None) if state is State.MISSING else None


def _group(
    gone: Gone, folder: Folder, root: Root, session: Value, sessions: dict[Value, Group] | None = None
) -> Group:
    if root is Root.SWEPT_CACHE:
        return gone.swept
    if not folder.present:
        return gone.absent.setdefault(root.value, Group())
    return (gone.mentions if sessions is None else sessions).setdefault(session, Group())


def _missing(
    mention: Mention, folders: MediaFolders, active: bool, known: Collection[str]
) -> tuple[Folder, str, Root] | None:
    """Folder, path and kind of a mentioned file that is gone under every reading, else None."""
    named: tuple[Folder, str, Root] | None = None
    for reading in mention.readings():
        folder = folders.owner(reading)
        if folder is None:
            continue
        if reading in known or is_file(reading):
            return None
        root = _kind(folder, reading, active) if named is None else None
        if root is not None:
            named = (folder, reading, root)
    return named


def _kind(folder: Folder, path: str, active: bool) -> Root | None:
    """What a path's absence means; None where it is cut short or nothing keeps the file.

    Upstream keeps an API image while any message mentions it, composer images and pastes while an active one
    does; other attachments go when their turn is settled, whatever mentions them.
    """
    name = path.rpartition("/")[2]
    if folder.root is Root.NATIVE_INPUTS:
        if API_IMAGE_NAME.fullmatch(name):
            return Root.NATIVE_INPUTS
        return Root.SWEPT_CACHE if _whole_name(name) else None
    if folder.root is Root.TRANSCRIPT_MEDIA:
        return Root.TRANSCRIPT_MEDIA if active and SHA256.fullmatch(name) else None
    if folder.root is Root.COMPOSER_PASTES:
        return Root.COMPOSER_PASTES if active and name.startswith("pasted_content_") else None
    if folder.root is Root.COMPOSER_IMAGES:
        return Root.COMPOSER_IMAGES if active and _whole_name(name) else None
    return Root.SWEPT_CACHE if _whole_name(name) else None


def _whole_name(name: str) -> bool:
    stem, dot, ending = name.rpartition(".")
    return bool(stem and dot) and 0 < len(ending) <= 5 and ending.isalnum()


def _transcript_finding(damage: Damage, session: Value, group: Group, copies: Copies) -> Finding:
    key = f"images {printable(session)}"
    ids = sorted(group.messages)
    statement = Statement(
        "drop-transcript",
        {
            "session": session,
            "ids": json.dumps(ids),
            "digests": json.dumps(sorted(path.rpartition("/")[2] for path in group.wanted)),
        },
        len(ids),
        "messages",
        "update",
    )
    title = f"let {counted(len(ids), 'message')} fall back to text"
    step = damage.step(key=key, answer="drop", title=title, statements=(statement,), session_ids=(session,))
    return damage.finding(
        table="messages",
        key=key,
        kind="transcript-image",
        severity=Severity.WARNING,
        message=f"{len(ids)} messages of one session have images whose files are gone: they are sent as text",
        evidence=_evidence(group) | {"session": printable(session), "files": len(group.wanted)},
        session_ids=(session,),
        remedies=(
            *REPORT_ONLY,
            put_back(damage, key, session, group.wanted, copies),
            Remedy("drop", Safety.LOSSY, step),
        ),
    )


def _evidence(group: Group) -> dict[str, object]:
    roots: Mapping[str, int] = group.roots
    return {
        "references": group.references,
        "messages": len(group.messages),
        "first_message": min(group.messages),
        "last_message": max(group.messages),
        "oldest": group.oldest,
        "newest": group.newest,
        "folders": dict(sorted(roots.items())),
    }
