"""Fit text for a person to what a terminal shows: its width, its colours, its letters; never writes anything.

Tables come as their renderers make them, columns apart by two spaces or more; they are taken apart and put together
again with long cells on several lines. What is no table is broken between words, and commands are not broken at all.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Sequence

COLOURS = {"error": "31;1", "warning": "33", "note": "36", "accepted": "2"}
"""What the severities look like."""

PLAIN_LETTERS = {"·": "-", "│": "|", "µ": "u", **dict.fromkeys("█▉▊▋▌", "#"), **dict.fromkeys("▍▎▏", "-")}
"""Letters of this tool that not every terminal has, and others of the same width."""

OTHER_LETTERS = frozenset((*PLAIN_LETTERS, "…"))
"""All letters that may be written as others: a command to be copied holds none."""

NARROWEST = 8
"""Columns that a cell keeps."""

_SEVERITY = re.compile(r"\b(error|warning|note|accepted)(?=\s+HDB\d{3})")
_COMMAND = re.compile(r"^(next:|[ $])\s*(hermes-dbtools|stop .*, then) ")


def coloured(text: str) -> str:
    """The text with its severities in colour, where a code of a damage class follows."""
    return _SEVERITY.sub(lambda found: f"\x1b[{COLOURS[found[1]]}m{found[1]}\x1b[0m", text)


def plain_letter(text: str, place: int) -> str | bytes:
    """What to write for one letter of a text where the terminal may not have it: another letter, or what it is in UTF-8."""
    letter = text[place]
    if letter == "…":
        alone = not text[:place][-1:].strip() and not text[place + 1 :][:1].strip()
        return "..." if alone else "~"
    return PLAIN_LETTERS.get(letter) or letter.encode("utf-8", "backslashreplace")


def fitted(text: str, width: int) -> str:
    """The text in lines of at most `width` columns, where that can be; commands stay whole, to be copied."""
    lines: list[str] = []
    for block in _blocks(text.splitlines()):
        if max(map(len, block)) <= width:
            lines += block
        elif len(block) > 1 and (table := _table(block, width)) is not None:
            lines += table
        else:
            lines += [part for line in block for part in _broken(line, width)]
    return "\n".join(lines) + ("\n" if text.endswith("\n") else "")


def _blocks(lines: Sequence[str]) -> Iterator[list[str]]:
    """Neighbours that may be one table: lines of the same indent, without an empty one between."""
    block: list[str] = []
    for line in lines:
        if block and (not line.strip() or not block[-1].strip() or _indent(line) != _indent(block[-1])):
            yield block
            block = []
        block.append(line)
    if block:
        yield block


def _table(block: Sequence[str], width: int) -> list[str] | None:
    """The lines of a table that fits; None for what is no table, or where no table fits."""
    if any(_COMMAND.match(line) for line in block):
        return None
    starts, ends = _columns(block)
    if len(starts) < 2:
        return None
    indent = _indent(block[0])
    cells = [[line[a:b].rstrip() for a, b in zip(starts, ends, strict=True)] for line in block]
    widths = [max(len(line[place]) for line in cells) for place in range(len(starts))]
    room = width - indent - 2 * (len(widths) - 1)
    while sum(widths) > room:
        widest = widths.index(max(widths))
        widths[widest] -= 1
        if widths[widest] < NARROWEST:
            return None
    return [line for row in cells for line in _row(row, widths, indent)]


def _columns(block: Sequence[str]) -> tuple[list[int], list[int]]:
    """Where the columns begin and end: what all lines leave empty, two columns wide, is between them."""
    longest = max(map(len, block))
    used = "".join(
        "x" if any(line[place : place + 1].strip() for line in block) else " " for place in range(longest)
    )
    gaps = [found.span() for found in re.finditer(r"(?<=x) {2,}", used)]
    first = len(used) - len(used.lstrip(" "))
    return [first, *(end for _start, end in gaps)], [*(start for start, _end in gaps), longest]


def _row(cells: Sequence[str], widths: Sequence[int], indent: int) -> list[str]:
    """One row, its long cells on several lines."""
    parts = [
        [cell] if len(cell) <= size else wrapped(cell.strip(), size)
        for cell, size in zip(cells, widths, strict=True)
    ]
    return [
        (
            " " * indent
            + "  ".join(f"{_at(part, line):{size}}" for part, size in zip(parts, widths, strict=True))
        ).rstrip()
        for line in range(max(map(len, parts)))
    ]


def _at(lines: Sequence[str], place: int) -> str:
    return lines[place] if place < len(lines) else ""


def _broken(line: str, width: int) -> list[str]:
    """A line that is no table on several lines, those after the first one further to the right."""
    indent = _indent(line)
    if len(line) <= width or _COMMAND.match(line) or width <= indent + 2 * NARROWEST:
        return [line]
    hanging = " " * min(indent + 2, width - NARROWEST)
    return wrapped(line.strip(), width, " " * indent, hanging, break_words=False)


def wrapped(
    text: str, width: int, first: str = "", others: str = "", *, break_words: bool = True
) -> list[str]:
    """A text in lines of at most `width` columns that begin with `first` and `others`; at least one line."""
    lines = textwrap.wrap(
        text,
        width,
        initial_indent=first,
        subsequent_indent=others,
        break_on_hyphens=break_words,
        break_long_words=break_words,
    )
    return lines or [first.rstrip()]


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip(" "))
