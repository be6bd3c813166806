"""Damage a closed database file at chosen bytes; every maker changes what it says it does, or raises.

Where the pages of a file are is asked of SQLite (`dbstat`); which rows lie on one is read from the page here, by a reader of
a few lines that shares nothing with the product.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import apsw

DBSTAT = "SELECT name, pageno, pagetype, path FROM dbstat ORDER BY path"


@dataclass(frozen=True, slots=True)
class Place:
    """A page: whose it is, `internal`, `leaf` or `overflow`, its number, and where `dbstat` puts it in its tree."""

    name: str
    kind: str
    number: int
    path: str


def flip(path: Path, offset: int, length: int = 1) -> None:
    """Flip every bit of a range of bytes."""
    with path.open("r+b") as file:
        file.seek(offset)
        before = file.read(length)
        if len(before) != length:
            raise ValueError(f"{path} has no {length} bytes at {offset}")
        file.seek(offset)
        file.write(bytes(byte ^ 0xFF for byte in before))


def zero(path: Path, offset: int, length: int) -> None:
    """Overwrite a range of bytes with zeroes; one of them must have been another."""
    with path.open("r+b") as file:
        file.seek(offset)
        if not any(file.read(length)):
            raise ValueError(f"{path} is zero there already")
        file.seek(offset)
        file.write(bytes(length))


def cut(path: Path, size: int) -> None:
    """Cut the file off; it must have been longer."""
    if path.stat().st_size <= size:
        raise ValueError(f"{path} is not longer than {size}")
    with path.open("r+b") as file:
        file.truncate(size)


def flip_page(path: Path, number: int) -> None:
    """Flip every bit of a page."""
    size = page_size(path)
    flip(path, (number - 1) * size, size)


def zero_page(path: Path, number: int) -> None:
    """Overwrite a page with zeroes."""
    size = page_size(path)
    zero(path, (number - 1) * size, size)


def swap_pages(path: Path, one: int, other: int) -> None:
    """Write each of two pages to the place of the other; they must differ."""
    size = page_size(path)
    first, second = (_bytes(path, (number - 1) * size, size) for number in (one, other))
    if first == second:
        raise ValueError(f"pages {one} and {other} of {path} are the same")
    with path.open("r+b") as file:
        for number, content in ((one, second), (other, first)):
            file.seek((number - 1) * size)
            file.write(content)


def page_size(path: Path) -> int:
    """The page size that the header of a healthy file says, in bytes."""
    told = int.from_bytes(_bytes(path, 16, 2), "big")
    return 65536 if told == 1 else told


def places(path: Path) -> dict[tuple[str, str], list[Place]]:
    """The pages of every tree, by name of the table or index and kind of the page, in the order of the tree."""
    found: dict[tuple[str, str], list[Place]] = defaultdict(list)
    with closing(apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)) as connection:
        for name, number, kind, where in connection.execute(DBSTAT):
            found[str(name), str(kind)].append(Place(str(name), str(kind), int(number), str(where)))  # type: ignore[arg-type]
    return dict(found)


def free_pages(path: Path) -> list[int]:
    """The trunk pages of the list of free pages."""
    size = page_size(path)
    found = []
    number = int.from_bytes(_bytes(path, 32, 4), "big")
    while number:
        found.append(number)
        number = int.from_bytes(_bytes(path, (number - 1) * size, 4), "big")
    return found


def rows_on(path: Path, place: Place) -> set[int]:
    """The rowids of the rows that a page of a table holds, or whose overflow it holds."""
    if place.kind == "leaf":
        return set(_rowids(path, place.number))
    if place.kind == "overflow":
        leaf, _, rest = place.path.rpartition("/")
        owner = next(one for one in places(path)[place.name, "leaf"] if one.path.rstrip("/") == leaf)
        return {list(_rowids(path, owner.number))[int(rest.partition("+")[0], 16)]}
    return set()


def _rowids(path: Path, number: int) -> Iterator[int]:
    size = page_size(path)
    page = _bytes(path, (number - 1) * size, size)
    start = 100 if number == 1 else 0
    for place in range(int.from_bytes(page[start + 3 : start + 5], "big")):
        at = int.from_bytes(page[start + 8 + 2 * place : start + 10 + 2 * place], "big")
        while page[at] & 0x80:  # the size of the payload, at most four bytes here
            at += 1
        rowid = 0
        for byte in page[at + 1 : at + 10]:
            rowid = rowid << 7 | byte & 0x7F
            if not byte & 0x80:
                break
        yield rowid


def _bytes(path: Path, offset: int, length: int) -> bytes:
    with path.open("rb") as file:
        file.seek(offset)
        return file.read(length)
