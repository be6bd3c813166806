"""Read pages of a private copy by their number, and say which of them are free; writes nothing."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Self

BLOCK = 1 << 20
"""Bytes read at once where all pages are looked at."""

HEADER = 100
"""Bytes before the b-tree of page 1."""

FREE, TAKEN = 1, 2


class Pages:
    """The pages of one file. `size` and `usable` are bytes of a page, `count` is how many whole pages there are.

    `state` has a byte for each page: 0 while nobody has claimed it, FREE, or TAKEN by some tree or chain.
    """

    def __init__(self, path: Path, size: int, reserved: int) -> None:
        """Open the file; `reserved` are the bytes at the end of each page that hold no data."""
        self.size = size
        self.usable = size - reserved
        self._file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        self.count = os.fstat(self._file).st_size // size
        self.state = bytearray(self.count + 1)

    def __enter__(self) -> Self:
        """Nothing is read yet."""
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        """Close the file."""
        os.close(self._file)

    def page(self, number: int) -> bytes:
        """The bytes of a page. Raises ValueError for a number that the file does not have."""
        if not 1 <= number <= self.count:
            raise ValueError(f"there is no page {number}")
        return os.pread(self._file, self.size, (number - 1) * self.size)

    def exists(self, number: int) -> bool:
        """Whether the file has such a page."""
        return 1 <= number <= self.count

    def claim(self, number: int) -> bool:
        """Take a page for a tree or chain; False where there is none, or it is taken or free already."""
        if not self.exists(number) or self.state[number]:
            return False
        self.state[number] = TAKEN
        return True

    def unclaimed(self) -> Iterator[tuple[int, bytes]]:
        """Every page that nobody has claimed, in the order of the file."""
        step = max(BLOCK // self.size, 1)
        for first in range(1, self.count + 1, step):
            if not any(mark == 0 for mark in self.state[first : first + step]):
                continue
            block = os.pread(self._file, step * self.size, (first - 1) * self.size)
            for number in range(first, min(first + step, self.count + 1)):
                if not self.state[number]:
                    at = (number - first) * self.size
                    yield number, block[at : at + self.size]

    def claim_free_list(self, trunk: int, count: int) -> bool:
        """Mark the pages of the free list, whose rows were deleted. False where the list is not whole."""
        found = 0
        while trunk:
            if not self.exists(trunk) or self.state[trunk]:
                return False
            self.state[trunk] = FREE
            page = self.page(trunk)
            leaves = int.from_bytes(page[4:8], "big")
            if leaves > self.usable // 4 - 2:
                return False
            numbers = [int.from_bytes(page[8 + 4 * i : 12 + 4 * i], "big") for i in range(leaves)]
            if not all(self.exists(number) and not self.state[number] for number in numbers):
                return False
            for number in numbers:
                self.state[number] = FREE
            found += 1 + leaves
            trunk = int.from_bytes(page[:4], "big")
        return found == count
