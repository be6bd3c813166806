"""Say whether the bytes of an image decode: structure, lengths and check sums; keeps no pixel and writes nothing.

PNG is checked down to its compressed rows, JPEG, GIF and WebP down to their segments. Where Pillow is installed (the extra
`images`), what passes is decoded by it as well. Formats that neither knows are not judged.
"""

from __future__ import annotations

import io
import struct
import warnings
import zlib
from collections.abc import Callable
from importlib import import_module
from typing import Any

MOST_PIXELS = 100_000_000
"""Larger images are not decoded; their structure is checked all the same."""

CUT_OFF = "it is cut off"
_PNG = b"\x89PNG\r\n\x1a\n"
_CHANNELS = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}
_ADAM7 = ((0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2))
_OTHERS = (b"BM", b"II*\0", b"MM\0*", b"\0\0\1\0", b"<svg", b"<?xml", b"\xff\x0a")
_TEXT = frozenset(range(32, 127)) | {9, 10, 13}


def flaw(data: bytes, media_type: str = "") -> str:
    """Why these bytes are no image that decodes, or ''."""
    if not data:
        return "it is empty"
    check = _known(data)
    if check is None:
        return "" if _may_be_another(data, media_type) else "its bytes are no image"
    try:
        found = check(data)
    except (struct.error, IndexError):
        return CUT_OFF
    return found or _decoded(data)


def dimensions(data: bytes) -> tuple[int, int]:
    """Width and height in pixels as the first bytes say; zeroes where they do not."""
    try:
        if data.startswith(_PNG):
            width, height = struct.unpack_from(">II", data, 16)
            return int(width), int(height)
        if data.startswith((b"GIF87a", b"GIF89a")):
            width, height = struct.unpack_from("<HH", data, 6)
            return int(width), int(height)
        if data.startswith(b"\xff\xd8"):
            return _jpeg_dimensions(data)
    except (struct.error, IndexError):
        return 0, 0
    return 0, 0


def _known(data: bytes) -> Callable[[bytes], str] | None:
    if data.startswith(_PNG):
        return _png
    if data.startswith(b"\xff\xd8\xff"):
        return _jpeg
    if data.startswith((b"GIF87a", b"GIF89a")):
        return _gif
    if data.startswith(b"RIFF") and data[8:12] == b"WEBP":
        return _webp
    return None


def _may_be_another(data: bytes, media_type: str) -> bool:
    """Whether these may be bytes of a format that is not judged here."""
    if data.startswith(_OTHERS) or data[4:8] == b"ftyp":
        return True
    if media_type in ("image/png", "image/jpeg", "image/jpg", "image/gif", "image/webp"):
        return False
    return not _TEXT.issuperset(data[:256])


def _png(data: bytes) -> str:
    place = len(_PNG)
    rows = _Rows()
    while True:
        length, kind = struct.unpack_from(">I4s", data, place)
        body = data[place + 8 : place + 8 + length]
        (recorded,) = struct.unpack_from(">I", data, place + 8 + length)
        critical = not kind[0] & 0x20
        if critical and zlib.crc32(kind + body) != recorded:
            return "a check sum of it is wrong"
        if kind == b"IHDR":
            rows.begin(body)
        elif kind == b"IDAT" and not rows.add(body):
            return "its compressed rows are broken"
        elif kind == b"IEND":
            return "" if rows.complete else "rows of it are missing"
        place += 12 + length


class _Rows:
    """The compressed rows of a PNG, counted and thrown away. State: how many bytes came and how many must."""

    def __init__(self) -> None:
        self._stream = zlib.decompressobj()
        self._came = 0
        self._must = 1

    def begin(self, header: bytes) -> None:
        """The header is read: how many bytes the rows must have."""
        width, height, depth, colour, _compression, _filter, interlace = struct.unpack(">IIBBBBB", header)
        bits = depth * _CHANNELS.get(colour, 1)
        passes = _ADAM7 if interlace else ((0, 0, 1, 1),)
        self._must = 0
        for left, top, across, down in passes:
            columns, lines = -(-(width - left) // across), -(-(height - top) // down)
            if columns > 0 and lines > 0:
                self._must += lines * (1 + (columns * bits + 7) // 8)

    def add(self, compressed: bytes) -> bool:
        """Take in compressed bytes; False where they are none."""
        try:
            while compressed and not self.complete:
                self._came += len(self._stream.decompress(compressed, 1 << 20))
                compressed = self._stream.unconsumed_tail
        except zlib.error:
            return False
        return True

    @property
    def complete(self) -> bool:
        """Whether all rows came."""
        return self._came >= self._must


def _jpeg(data: bytes) -> str:
    if _jpeg_dimensions(data) == (0, 0):
        return CUT_OFF
    scan = data.find(b"\xff\xda")
    return "" if scan >= 0 and data.rfind(b"\xff\xd9") > scan else CUT_OFF


def _jpeg_dimensions(data: bytes) -> tuple[int, int]:
    place = 2
    while True:
        if data[place] != 0xFF:
            return 0, 0
        marker = data[place + 1]
        if marker == 0xFF:
            place += 1
            continue
        if marker == 0x01 or 0xD0 <= marker <= 0xD7:
            place += 2
            continue
        (length,) = struct.unpack_from(">H", data, place + 2)
        if 0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC):
            height, width = struct.unpack_from(">HH", data, place + 5)
            return int(width), int(height)
        if marker in (0xDA, 0xD9) or length < 2:
            return 0, 0
        place += 2 + length


def _gif(data: bytes) -> str:
    flags = data[10]
    place = 13 + (3 << ((flags & 7) + 1) if flags & 0x80 else 0)
    images = 0
    while place < len(data) and data[place] in (0x21, 0x2C):
        if data[place] == 0x21:
            place += 2
        else:
            local = data[place + 9]
            place += 11 + (3 << ((local & 7) + 1) if local & 0x80 else 0)
            images += 1
        while data[place]:
            place += 1 + data[place]
        place += 1
    return "" if images else CUT_OFF


def _webp(data: bytes) -> str:
    (size,) = struct.unpack_from("<I", data, 4)
    if size + 8 > len(data) + 1:
        return CUT_OFF
    return "" if data[12:16] in (b"VP8 ", b"VP8L", b"VP8X") else "its bytes are no image"


def _pillow() -> Any:
    try:
        return import_module("PIL.Image")
    except ImportError:
        return None


def _decoded(data: bytes) -> str:
    """Why Pillow cannot decode what has a sound structure, or ''; always '' where it is not installed."""
    pillow = _pillow()
    if pillow is None:
        return ""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            with pillow.open(io.BytesIO(data)) as image:
                if image.width * image.height <= MOST_PIXELS:
                    image.load()
        except pillow.DecompressionBombError:
            return ""
        except (OSError, SyntaxError, ValueError, EOFError, struct.error):
            return "its pixels do not decode"
    return ""
