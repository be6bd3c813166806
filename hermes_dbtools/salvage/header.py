"""Read the header of a database copy, or derive what it must have said; mends it in the copy so that SQLite opens it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from ..file_state import HEADER_SIZE, MAGIC, page_size

SIZES = (512, 1024, 2048, 4096, 8192, 16384, 32768, 65536)
SAMPLED_PAGES = 2_000
ENOUGH = 0.7
"""Share of the best fit that a smaller page size needs."""

_FRACTIONS = b"\x40\x20\x20"
_KINDS = frozenset((2, 5, 10, 13))
_LEAVES = frozenset((10, 13))


@dataclass(frozen=True, slots=True)
class Header:
    """What the header of a file says. Sizes are bytes; `derived` says that the header itself was not readable.

    `encoding` is 1 for UTF-8, 2 and 3 for UTF-16. `free_trunk` and `free_count` describe the list of free pages; where the
    header is lost nobody knows them.
    """

    page_size: int
    reserved: int
    wal_mode: bool
    encoding: int
    user_version: int
    application_id: int
    auto_vacuum: int
    free_trunk: int
    free_count: int
    derived: bool

    @property
    def codec(self) -> str:
        """How Python calls the encoding."""
        return {2: "utf-16-le", 3: "utf-16-be"}.get(self.encoding, "utf-8")


def read_header(path: Path, told: int = 0) -> Header | None:
    """The header of a copy; `told` is the page size that a log says. None where no page size fits the file."""
    with path.open("rb") as file:
        head = file.read(HEADER_SIZE)
    size = page_size(head) if len(head) == HEADER_SIZE else 0
    if (
        size
        and head[21:24] == _FRACTIONS
        and head[18] in (1, 2)
        and told in (0, size)
        and size - head[20] >= 480
    ):
        encoding = _number(head, 56) if _number(head, 56) in (1, 2, 3) else 1
        reserved = head[20] if _kept_free(path, size, head[20]) else 0
        return Header(
            size, reserved, head[18] == 2, encoding, _signed(_number(head, 60)), _signed(_number(head, 68)),
            _auto_vacuum(path, size, head), _number(head, 32), _number(head, 36),
            derived=not head.startswith(MAGIC),
        )  # fmt: skip
    size = told or _derived_size(path)
    return Header(size, 0, True, 1, 0, 0, 0, 0, -1, derived=True) if size else None


def mend(path: Path, header: Header) -> None:
    """Give a copy whole pages and a header that SQLite accepts; the b-tree on its first page stays as it is."""
    with path.open("r+b") as file:
        head = bytearray(file.read(HEADER_SIZE).ljust(HEADER_SIZE, b"\0"))
        file.seek(0, 2)
        pages = -(-file.tell() // header.page_size)
        if header.derived:
            head[40:48] = (1).to_bytes(4, "big") + (4).to_bytes(4, "big")
            head[48:92] = bytes(44)
        if not header.auto_vacuum:
            head[52:56] = bytes(4)
        head[56:60] = header.encoding.to_bytes(4, "big")
        head[:16] = MAGIC
        head[16:18] = (1 if header.page_size == 65536 else header.page_size).to_bytes(2, "big")
        # Not the mode of a log: the log is applied, and a copy needs none.
        head[18:24] = bytes((1, 1, header.reserved)) + _FRACTIONS
        head[24:28] = head[92:96] = (1).to_bytes(4, "big")
        head[28:32] = pages.to_bytes(4, "big")
        file.seek(0)
        file.write(head)
        file.truncate(pages * header.page_size)


def _derived_size(path: Path) -> int:
    """The page size at whose multiples the most pages begin as b-tree pages do; the smallest that explains them."""
    votes: Counter[int] = Counter()
    length = path.stat().st_size
    with path.open("rb") as file:
        for size in SIZES:
            step = max(length // size // SAMPLED_PAGES, 1) * size
            found = asked = 0
            for at in range(size, length - size + 1, step):
                file.seek(at)
                asked += 1
                found += _like_page(file.read(12), size)
            votes[size] = round(1000 * found / asked) if asked else 0
    best = max(votes.values())
    if not best:
        return 0
    # Every multiple of the size fits as well as it does, and half of it at most half as well.
    return next(size for size in SIZES if votes[size] >= ENOUGH * best)


def _auto_vacuum(path: Path, size: int, head: bytes) -> int:
    """The vacuum mode (0 to 2). Where there is one, page 2 is a map of pointers and no page of a b-tree (file format, 1.8)."""
    if not _number(head, 52):
        return 0
    with path.open("rb") as file:
        file.seek(size)
        second = file.read(12)
    return 0 if _like_page(second, size) else 2 if _number(head, 64) else 1


def _kept_free(path: Path, size: int, reserved: int) -> bool:
    """Whether no page has a cell that begins in the bytes at its end that the header says hold no data."""
    if not reserved:
        return True
    length = path.stat().st_size
    with path.open("rb") as file:
        for at in range(size, length - size + 1, max(length // size // SAMPLED_PAGES, 1) * size):
            file.seek(at)
            page = file.read(size)
            if _like_page(page[:12], size):
                first = 8 if page[0] in _LEAVES else 12
                cells = int.from_bytes(page[3:5], "big")
                pointers = (
                    int.from_bytes(page[place : place + 2], "big")
                    for place in range(first, first + 2 * cells, 2)
                )
                if any(size - reserved <= pointer < size for pointer in pointers):
                    return False
    return True


def _like_page(head: bytes, size: int) -> bool:
    """Whether bytes can be the header of a b-tree page with at least one cell."""
    if len(head) < 12 or head[0] not in _KINDS:
        return False
    cells = int.from_bytes(head[3:5], "big")
    content = int.from_bytes(head[5:7], "big") or 65536
    pointers = (8 if head[0] in _LEAVES else 12) + 2 * cells
    return cells > 0 and pointers <= content <= size and head[7] <= 60


def _number(head: bytes, at: int) -> int:
    return int.from_bytes(head[at : at + 4], "big")


def _signed(value: int) -> int:
    return value - (1 << 32) if value >= 1 << 31 else value
