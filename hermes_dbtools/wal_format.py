"""How a write-ahead log is laid out, and its checksum; opens no file.

Facts: the file format description, section 4.
"""

from __future__ import annotations

import struct

HEADER, FRAME = 32, 24
"""Bytes before the first frame of a log, and of a frame before its page."""

SALTS, FRAME_SALTS = slice(16, 24), slice(8, 16)
"""Where the header of a log and of a frame have the salts, which are others once the log started anew."""

ORDERS = {0x377F0682: "<", 0x377F0683: ">"}
"""The order of the bytes that are summed, by the number at the beginning of a log."""

_MASK = 0xFFFFFFFF

Sum = tuple[int, int]


def checksum(data: bytes, order: str, before: Sum = (0, 0)) -> Sum:
    """The checksum of a log over whole pairs of 32-bit words, `order` being `<` or `>`."""
    one, two = before
    words = iter(struct.unpack(f"{order}{len(data) // 4}I", data))
    for first, second in zip(words, words, strict=True):
        one = (one + first + two) & _MASK
        two = (two + second + one) & _MASK
    return one, two
