"""An image in a message, or a stored one, does not decode

What it means
-------------
The base64 of an image is none, or its bytes are cut off, broken, or no image. Providers refuse the whole conversation each
time it is sent, so the session cannot go on. A stored file of that kind does the same to the turn that uses it.

Why it happens
--------------
An upload that was cut off, a disk that was full, a program that shortened texts in the middle of the base64. In a public
report a PNG of 2.9 MB with a sound header and no end killed its session; it was deleted, with its route.

Repair
------
Nothing is changed unless it is chosen. `placeholder` puts a line of text with type, size and digest in the place of the
image in the message. Stored files are never changed.

Safety
------
Choice; a placeholder loses the bytes but for undo and the backup. Looks only with `--deep` or when it is selected by
name, because it reads every image. Without Pillow (the extra `images`) PNG is checked down to its compressed rows, JPEG, GIF and
WebP for their structure and end; other formats are not judged.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field

from ...image_check import flaw
from ...inline_images import InlineImage, parts_of
from ...media_files import folders_of
from ...model import Finding, Remedy, Safety, Severity, Value
from ...sizes import counted
from .._declare import ScanContext, declare, printable
from ._held import shown
from ._parts import Place, contents, placeholder, put_placeholders
from ._stored import stored_files

ENDINGS = (".png", ".jpg", ".jpeg", ".gif", ".webp")
MOST_BYTES = 64 * 1024 * 1024
"""Larger files are not read: no provider takes them, and no message holds them."""


@dataclass(slots=True)
class _Broken:
    """Images of one session that do not decode. `places` are what a placeholder would stand for."""

    images: int = 0
    size: int = 0
    flaws: dict[str, int] = field(default_factory=dict)
    places: dict[int, list[Place]] = field(default_factory=dict)


def _find(context: ScanContext) -> Iterator[Finding]:
    sessions: dict[Value, _Broken] = {}
    for message_id, session, content in contents(context):
        for image in parts_of(content):
            if why := _flaw(image):
                broken = sessions.setdefault(session, _Broken())
                broken.images += 1
                broken.size += len(image.encoded)
                broken.flaws[why] = broken.flaws.get(why, 0) + 1
                broken.places.setdefault(message_id, []).append(placeholder(image))
    for session, broken in sorted(sessions.items(), key=lambda item: printable(item[0])):
        yield _in_messages(session, broken)
    yield from _stored(context)


def _flaw(image: InlineImage) -> str:
    decoded = image.decoded()
    return "its base64 is none" if decoded is None else flaw(decoded, image.media_type)


def _in_messages(session: Value, broken: _Broken) -> Finding:
    step = DAMAGE.step(
        key=session,
        answer="placeholder",
        title=f"put placeholders for {counted(broken.images, 'broken image')} of {printable(session)}",
        statements=put_placeholders(session, broken.places),
        session_ids=(session,),
        bytes_freed=broken.size,
    )
    return DAMAGE.finding(
        table="messages",
        key=session,
        kind="inline",
        message=f"{counted(broken.images, 'image')} in {counted(len(broken.places), 'message')} that "
        f"{'does' if broken.images == 1 else 'do'} not decode",
        evidence={
            "images": broken.images,
            "messages": len(broken.places),
            "first_message": min(broken.places),
            "last_message": max(broken.places),
            "bytes": broken.size,
            "flaws": dict(sorted(broken.flaws.items())),
        },
        session_ids=(session,),
        remedies=(Remedy("report", Safety.CHOICE), Remedy("placeholder", Safety.CHOICE, step)),
    )


def _stored(context: ScanContext) -> Iterator[Finding]:
    folders = folders_of(context.home) if context.home is not None else None
    for file in stored_files(folders) if folders is not None else ():
        if not file.name.lower().endswith(ENDINGS):
            continue
        with file.open() as opened:
            size = os.fstat(opened.fileno()).st_size
            why = flaw(opened.read()) if size <= MOST_BYTES else ""
        if why:
            yield DAMAGE.finding(
                table="files",
                key=shown(file.name),
                kind="stored",
                message=f"{shown(file.name)} does not decode: {why}",
                evidence={"images": 1, "path": shown(file.path), "size": size, "flaw": why},
                remedies=(
                    Remedy("report", Safety.CHOICE),
                    Remedy("placeholder", Safety.CHOICE, refused="a stored file is never changed"),
                ),
            )


DAMAGE = declare(
    __name__,
    __doc__,
    code="HDB705",
    severity=Severity.ERROR,
    safety=Safety.CHOICE,
    answers=("report", "placeholder"),
    reads=("messages",),
    noun=("finding about images", "findings about images"),
    sums=(("images", "images"),),
    deep=True,
    find=_find,
)
