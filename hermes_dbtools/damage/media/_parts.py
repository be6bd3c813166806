"""Contents with images of their own, and statements that put a line of text in the place of one; keeps no content."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ...inline_images import InlineImage
from ...model import Statement, Value
from .._declare import ScanContext, text, whole

CHUNK = 200
"""Messages fetched at once; their number never enters the SQL."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where an image stands in a content, its digest, and the line that would stand for it."""

    path: str
    sha256: str
    line: str


def placeholder(image: InlineImage) -> Place:
    """What would stand for an image: its type, its size, its digest."""
    kind = image.media_type if image.media_type.isascii() and image.media_type.isprintable() else "image"
    decoded = image.decoded()
    if decoded is None:
        digest = hashlib.sha256(image.encoded.encode("utf-8", "surrogateescape")).hexdigest()
        said = f"{kind}, {len(image.encoded):,} letters that are no base64"
    else:
        digest = hashlib.sha256(decoded).hexdigest()
        said = f"{kind}, {len(decoded):,} bytes, SHA-256 {digest}"
    return Place(image.place, digest, f"[Image removed by hermes-dbtools: {said}]")


def contents(context: ScanContext) -> Iterator[tuple[int, Value, bytes]]:
    """Id, session and content of each message that the content pass marks for base64, one at a time."""
    ids = context.sweep.run(context).rows("inline")
    for first in range(0, len(ids), CHUNK):
        wanted = json.dumps(ids[first : first + CHUNK].tolist())
        for message_id, session, content in context.rows("media/parts", "contents", {"ids": wanted}):
            if isinstance(content, bytes):
                yield whole(message_id), text(session), content


def put_placeholders(session: Value, messages: Mapping[int, list[Place]]) -> tuple[Statement, ...]:
    """One statement for each message; the places are given by path."""
    return tuple(_put(session, message_id, places) for message_id, places in sorted(messages.items()))


def _put(session: Value, message_id: int, places: list[Place]) -> Statement:
    edits = [[place.path, {"type": "text", "text": place.line}] for place in places]
    bindings: Mapping[str, Value] = {
        "session": session,
        "edits": json.dumps(edits),
        "first": message_id,
        "last": message_id,
    }
    return Statement("placeholder", bindings, 1, "messages", "update", split="placeholder-rows")
