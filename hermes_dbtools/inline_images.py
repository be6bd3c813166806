"""Read the images that messages hold in base64; never decodes one, looks at a disk or changes a message.

Facts of upstream: content of several parts is stored as JSON behind a NUL byte and `json:`; parts with bytes of their own
are `image_url` (an object or a text), `input_image` and `image` with a `base64` source.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

MARK = b"\0json:"

_DATA = re.compile(r"data:(image/[A-Za-z0-9.+-]+)(?:;[^;,]*)*;base64,")
_IN_TEXT = re.compile(rb"data:image/[A-Za-z0-9.+-]+;base64,([A-Za-z0-9+/]{64,}={0,2})")
_SPACE = re.compile(r"\s+")
_KEY = re.compile(r"[A-Za-z_]\w*")


@dataclass(frozen=True, slots=True)
class InlineImage:
    """One image in a message. `place` is the JSON path of its part, `encoded` its base64."""

    place: str
    media_type: str
    encoded: str

    def decoded(self) -> bytes | None:
        """Its bytes; None where the base64 is none."""
        for encoded in (self.encoded, _SPACE.sub("", self.encoded)):
            try:
                return base64.b64decode(encoded, validate=True)
            except (binascii.Error, ValueError):
                continue
        return None

    def head(self) -> bytes:
        """Its first bytes, enough for the size of most images; empty where the base64 is none."""
        try:
            return base64.b64decode(self.encoded[: 4 * 16384], validate=True)
        except (binascii.Error, ValueError):
            return b""


def parts_of(content: bytes) -> Iterator[InlineImage]:
    """The images of a content of several parts; none where the content is text or is not JSON."""
    if content.startswith(MARK):
        try:
            parsed = json.loads(content.removeprefix(MARK).decode("utf-8", "surrogateescape"))
        except (ValueError, RecursionError):
            return
        yield from _walk(parsed, "$")


def in_text(content: bytes) -> Iterator[int]:
    """The sizes, in bytes of base64, of images that a plain text quotes."""
    if not content.startswith(MARK):
        for found in _IN_TEXT.finditer(content):
            yield found.end(1) - found.start(1)


def _walk(root: Any, place: str) -> Iterator[InlineImage]:
    waiting = [(root, place)]
    while waiting:
        value, where = waiting.pop()
        if isinstance(value, list):
            waiting.extend((item, f"{where}[{index}]") for index, item in reversed(list(enumerate(value))))
        elif isinstance(value, dict):
            if (image := _image(value, where)) is not None:
                yield image
                continue
            waiting.extend((item, f"{where}.{key}") for key, item in value.items() if _KEY.fullmatch(key))


def _image(part: dict[str, Any], place: str) -> InlineImage | None:
    if part.get("type") not in ("image_url", "input_image", "image"):
        return None
    url = part.get("image_url")
    url = url.get("url") if isinstance(url, dict) else url
    if isinstance(url, str) and (found := _DATA.match(url)):
        return InlineImage(place, found.group(1), url[found.end() :])
    source = part.get("source")
    if isinstance(source, dict) and source.get("type") == "base64" and isinstance(source.get("data"), str):
        return InlineImage(place, str(source.get("media_type") or "image"), source["data"])
    return None
