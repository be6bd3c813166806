"""Tell whether a `-wal` was written for the database it lies beside; opens nothing with SQLite and writes nothing.

A `-wal` names no database. Three facts prove that it is of another one: another page size, another application id in its last
committed first page, or an older schema there than in the database itself, for its number only grows and no checkpoint can
run ahead of the log. Whether the page is really committed is checked by SQLite's checksums, but only where something looks wrong.
"""

from __future__ import annotations

import os
import struct
from dataclasses import dataclass
from typing import Literal

from .wal_format import FRAME, FRAME_SALTS, HEADER, ORDERS, SALTS
from .wal_format import checksum as checksum_of

Origin = Literal["", "page-size", "application-id", "schema"]
"""By what a `-wal` is not of its database; '' where nothing proves that."""

_HEAD = 100
"""Bytes at the start of a first page that are compared."""


@dataclass(frozen=True, slots=True)
class _Log:
    descriptor: int
    order: str
    page_size: int
    salts: bytes
    checksum: tuple[int, int]

    def place(self, frame: int) -> int:
        """Where a frame begins, in bytes; frames count from 0."""
        return HEADER + frame * (FRAME + self.page_size)


def foreign(path: str, database_header: bytes, page_size: int) -> Origin:
    """By what the `-wal` at `path` is proved to be of another database; '' where it is not, or is none.

    `database_header` are the first 100 bytes of the database, read before. Raises OSError where the file cannot be read.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | getattr(os, "O_NOFOLLOW", 0))
    except FileNotFoundError:
        return ""
    try:
        log = _open_log(descriptor)
        return "" if log is None else _judge(log, database_header, page_size)
    finally:
        os.close(descriptor)


def _open_log(descriptor: int) -> _Log | None:
    head = os.pread(descriptor, HEADER, 0)
    if len(head) < HEADER:
        return None
    magic, _version, size = struct.unpack(">III", head[:12])
    order = ORDERS.get(magic)
    if order is None:
        return None
    checksum = checksum_of(head[:24], order)
    if checksum != struct.unpack(">II", head[24:]):
        return None
    return _Log(descriptor, order, size, head[SALTS], checksum)


def _judge(log: _Log, header: bytes, page_size: int) -> Origin:
    committed, first_page = _committed(log)
    if committed is None:
        return ""
    origin: Origin = ""
    if page_size and log.page_size != page_size:
        origin = "page-size"
    elif first_page is not None:
        there, here = os.pread(log.descriptor, _HEAD, log.place(first_page) + FRAME), header
        if any(here[68:72]) and there[68:72] != here[68:72]:
            origin = "application-id"
        elif _number(there, 40) < _number(here, 40):
            origin = "schema"
    return origin if origin and _valid_to(log, committed) else ""


def _committed(log: _Log) -> tuple[int | None, int | None]:
    """The last frame that ends a transaction, and the last one of the first page up to it; by their marks alone."""
    frame, committed = 0, None
    page, first = None, None
    while (
        len(head := os.pread(log.descriptor, FRAME, log.place(frame))) == FRAME
        and head[FRAME_SALTS] == log.salts
    ):
        if _number(head, 0) == 1:
            page = frame
        if _number(head, 4):
            committed, first = frame, page
        frame += 1
    return committed, first


def _valid_to(log: _Log, last: int) -> bool:
    """Whether SQLite would take every frame up to this one for written."""
    checksum = log.checksum
    for frame in range(last + 1):
        content = os.pread(log.descriptor, FRAME + log.page_size, log.place(frame))
        if len(content) < FRAME + log.page_size:
            return False
        checksum = checksum_of(content[:8] + content[FRAME:], log.order, checksum)
        if checksum != struct.unpack(">II", content[16:24]):
            return False
    return True


def _number(content: bytes, place: int) -> int:
    return int.from_bytes(content[place : place + 4], "big")
