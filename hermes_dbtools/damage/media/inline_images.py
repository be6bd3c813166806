"""Messages hold whole images in base64

What it means
-------------
The bytes of an image stand in the message itself, a third larger than the image, and again in each copy of the message: in
branches, in what a compression keeps and sets aside. They make most of the size of some files. An image over the limits of
a provider (5 MB of base64, 8,000 pixels a side) makes each request of its session fail.

Why it happens
--------------
Hermes stores what is sent. In public reports base64 made 521 of 616 MB of all content, 398 MB of it exact duplicates; single
photos of 5 to 20 MB stopped their sessions.

Repair
------
Nothing is changed unless it is chosen. `placeholder` puts a line of text with type, size and digest in the place of each
image of a session. The model does not see the image any more.

Safety
------
Lossy: the image is gone from the file but for undo and the backup, so it also needs `--allow-lossy`. Sessions with less than
a kilobyte of images are not reported. Images quoted in plain text are counted and never changed; URLs and files are none
of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from ...image_check import dimensions
from ...inline_images import in_text, parts_of
from ...model import Finding, Remedy, Safety, Severity, Value
from ...sizes import counted
from .._declare import ScanContext, declare, printable
from ._parts import Place, contents, placeholder, put_placeholders

LEAST = 1024
"""Bytes of base64 in a session below which nothing is said."""

MOST_BYTES, MOST_PIXELS = 5 * 1024 * 1024, 8000
"""What a provider takes at most: bytes of base64 of one image, pixels of one side."""


@dataclass(slots=True)
class _Images:
    """The images of one session; sizes are bytes of base64, `places` what a placeholder would stand for."""

    count: int = 0
    size: int = 0
    largest: int = 0
    duplicates: int = 0
    duplicate_size: int = 0
    over_limit: int = 0
    quoted: int = 0
    quoted_size: int = 0
    places: dict[int, list[Place]] = field(default_factory=dict)


def _find(context: ScanContext) -> Iterator[Finding]:
    sessions: dict[Value, _Images] = {}
    seen: set[bytes] = set()
    for message_id, session, content in contents(context):
        found = sessions.setdefault(session, _Images())
        for image in parts_of(content):
            place = placeholder(image)
            digest = bytes.fromhex(place.sha256)
            size = len(image.encoded)
            found.count += 1
            found.size += size
            found.largest = max(found.largest, size)
            found.over_limit += size > MOST_BYTES or max(dimensions(image.head())) > MOST_PIXELS
            if digest in seen:
                found.duplicates += 1
                found.duplicate_size += size
            seen.add(digest)
            found.places.setdefault(message_id, []).append(place)
        for size in in_text(content):
            found.quoted += 1
            found.quoted_size += size
    for session, found in sorted(sessions.items(), key=lambda item: printable(item[0])):
        if found.size >= LEAST or found.over_limit:
            yield _finding(session, found)
        if found.quoted_size >= LEAST:
            yield _quoted(session, found)


def _finding(session: Value, found: _Images) -> Finding:
    step = DAMAGE.step(
        key=session,
        answer="placeholder",
        title=f"put placeholders for {counted(found.count, 'image')} of {printable(session)}",
        statements=put_placeholders(session, found.places),
        session_ids=(session,),
        bytes_freed=found.size,
    )
    over = f", {found.over_limit} over the limits of a provider" if found.over_limit else ""
    return DAMAGE.finding(
        table="messages",
        key=session,
        kind="over-limit" if found.over_limit else "",
        message=f"{counted(found.count, 'image')} in {counted(len(found.places), 'message')}{over}",
        evidence={
            "images": found.count,
            "messages": len(found.places),
            "bytes": found.size,
            "largest": found.largest,
            "duplicates": found.duplicates,
            "duplicate_bytes": found.duplicate_size,
            "over_limit": found.over_limit,
        },
        session_ids=(session,),
        remedies=(Remedy("report", Safety.CHOICE), Remedy("placeholder", Safety.LOSSY, step)),
    )


def _quoted(session: Value, found: _Images) -> Finding:
    return DAMAGE.finding(
        table="messages",
        key=f"{printable(session)} quoted",
        kind="quoted",
        message=f"{counted(found.quoted, 'image')} quoted in plain text",
        evidence={"session": printable(session), "images": found.quoted, "bytes": found.quoted_size},
        session_ids=(session,),
        remedies=(
            Remedy("report", Safety.CHOICE),
            Remedy(
                "placeholder",
                Safety.LOSSY,
                refused="the image is quoted in plain text, which is never changed",
            ),
        ),
    )


DAMAGE = declare(
    __name__,
    __doc__,
    code="HDB706",
    severity=Severity.NOTE,
    safety=Safety.LOSSY,
    answers=("report", "placeholder"),
    reads=("messages",),
    noun=("session", "sessions"),
    sums=(("images", "images"), ("bytes", "bytes")),
    find=_find,
)
