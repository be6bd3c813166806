"""Decode records of the SQLite file format; trusts no length that it did not check, and reads no file.

Facts: the file format description of SQLite, section 2.1 (varints, record format, serial types).
"""

from __future__ import annotations

import struct

from ..model import Value

_SIZES = (0, 1, 2, 3, 4, 6, 8, 8, 0, 0)
_LAST_ONE_BYTE = 127
_WRONG = 1 << 40
"""More bytes than any record has: what a serial type that no writer uses counts as."""

_ONE_BYTE_SIZES = bytes(
    _SIZES[serial] if serial < len(_SIZES) else 0 if serial < 12 else (serial - 12) >> 1
    for serial in range(_LAST_ONE_BYTE + 1)
) + bytes(_LAST_ONE_BYTE + 1)
_RESERVED = frozenset((10, 11))


class BrokenText(bytes):
    """Text that is not in the encoding of its file: kept as the bytes that were stored."""


def varint(data: bytes, at: int) -> tuple[int, int]:
    """The varint at a place and the place behind it. Raises IndexError at the end of the data."""
    value = data[at]
    if value < 0x80:
        return value, at + 1
    value &= 0x7F
    for place in range(at + 1, at + 8):
        byte = data[place]
        value = (value << 7) | (byte & 0x7F)
        if byte < 0x80:
            return value, place + 1
    return (value << 8) | data[at + 8], at + 9


def signed(value: int) -> int:
    """A varint as the 64-bit number with a sign that rowids are."""
    return value - (1 << 64) if value >= 1 << 63 else value


def body_size(head: bytes) -> int:
    """Bytes of the values that the serial types of a record header announce; huge where one is reserved."""
    if not head or max(head) <= _LAST_ONE_BYTE:
        return _WRONG if not _RESERVED.isdisjoint(head) else sum(head.translate(_ONE_BYTE_SIZES))
    total = value = 0
    for byte in head:
        if byte >= 0x80:
            value = (value << 7) | (byte & 0x7F)
        elif value:
            value = (value << 7) | byte
            total += (value - 12) >> 1 if value >= 12 else _WRONG
            value = 0
        else:
            total += _WRONG if byte in _RESERVED else _ONE_BYTE_SIZES[byte]
    return total + (_WRONG if value else 0)


def fits(payload: bytes, start: int, end: int, size: int) -> bool:
    """Whether the record that begins at `start` has values of exactly the bytes that its header leaves of `size`.

    `end` is where the bytes at hand end. A header that goes on behind them is judged when the whole record is decoded.
    """
    try:
        header, at = varint(payload, start)
    except IndexError:
        return False
    stop = start + header
    if stop > end:
        return at < end and end - start < size and header < size
    return at <= stop and header + body_size(payload[at:stop]) == size


def serial_types(payload: bytes) -> list[int]:
    """The serial types of a whole record. Raises ValueError where the header is none."""
    try:
        header, at = varint(payload, 0)
        types = []
        while at < header:
            serial, at = varint(payload, at)
            types.append(serial)
    except IndexError:
        raise ValueError("a record that ends inside its header") from None
    if at != header:
        raise ValueError("a record header of another length")
    return types


def decode(payload: bytes, codec: str = "utf-8") -> list[Value]:
    """The values of a whole record. Text that cannot be decoded is BrokenText. Raises ValueError for no record."""
    types = serial_types(payload)
    at = varint(payload, 0)[0]
    values: list[Value] = []
    for serial in types:
        value, at = _value(payload, serial, at, codec)
        values.append(value)
    if at != len(payload):
        raise ValueError("a record of another length")
    return values


def _value(payload: bytes, serial: int, at: int, codec: str) -> tuple[Value, int]:
    if serial >= 12:
        end = at + ((serial - 12) >> 1)
        content = payload[at:end]
        if not serial & 1:
            return content, end
        try:
            return content.decode(codec), end
        except UnicodeDecodeError:
            return BrokenText(content), end
    if serial in _RESERVED:
        raise ValueError("a serial type that no writer uses")
    if serial == 0:
        return None, at
    if serial >= 8:
        return serial - 8, at
    end = at + _SIZES[serial]
    if end > len(payload):
        raise ValueError("a record of another length")
    if serial == 7:
        (real,) = struct.unpack(">d", payload[at:end])
        return float(real), end
    return int.from_bytes(payload[at:end], "big", signed=True), end
