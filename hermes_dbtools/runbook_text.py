"""Show the Markdown of a runbook on a terminal: headings, steps and tables in its width; never reads a file.

Only what runbooks use is known: headings, paragraphs, lists, tables, fences, spans of code, strong words and links.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from .terminal_text import fitted, wrapped

WIDEST = 100
"""Columns of a text that is comfortable to read."""

CODE = "    "
"""What stands before the lines of a block that is not part of a step."""

BOLD, PLAIN = "\x1b[1m", "\x1b[0m"

_FENCE = re.compile(r"^ *```")
_COMMENT = re.compile(r"^ *<!--.*-->\n\n?", re.MULTILINE)
_HEADING = re.compile(r"^#+ ")
_ITEM = re.compile(r"^( *)(?:[-*]|\d+\.) ")
_SPAN = re.compile(r"`([^`]+)`|\*\*([^*]+)\*\*")
_LINK = re.compile(r"\[([^]]+)\]\(([^)]+)\)")
_RULE = re.compile(r"^ *\|[ :|-]+\|$")


def without_comments(markdown: str) -> str:
    """The text without lines that are only for its tests."""
    return _COMMENT.sub("", markdown)


def for_terminal(markdown: str, width: int, *, colour: bool) -> str:
    """The text as a terminal of `width` columns shows it; with `colour` headings and spans of code stand out."""
    room = max(20, min(width, WIDEST))
    lines: list[str] = []
    for block in _blocks(without_comments(markdown).splitlines()):
        lines += _shown(block, room, width, colour=colour)
    return "\n".join(lines) + "\n"


def _shown(block: Sequence[str], room: int, width: int, *, colour: bool) -> list[str]:
    first = block[0]
    if _FENCE.match(first):
        inset = "" if first.startswith(" ") else CODE
        return [_command(f"{inset}{line}" if line else "", colour=colour) for line in block[1:-1]]
    if _HEADING.match(first):
        return (
            [f"{BOLD}{line}{PLAIN}" for line in wrapped(first.lstrip("# "), room)]
            if colour
            else wrapped(first, room)
        )
    if first.lstrip().startswith("|"):
        return _table(block, width)
    if not first.strip():
        return [""]
    return _spans("\n".join(_paragraph(block, room)), colour=colour).split("\n")


def _blocks(lines: Sequence[str]) -> Iterator[list[str]]:
    """Fences, headings, tables, empty lines, and paragraphs or items with the lines that go on with them."""
    block: list[str] = []
    fenced = False
    for line in lines:
        if block and not fenced and _begins(line, block):
            yield block
            block = []
        if _FENCE.match(line):
            fenced = not fenced
        block.append(line)
    if block:
        yield block


def _begins(line: str, block: Sequence[str]) -> bool:
    """Whether a line begins a block of its own after these."""
    last = block[-1]
    table = line.lstrip().startswith("|")
    return (
        not line.strip()
        or not last.strip()
        or bool(_HEADING.match(line) or _HEADING.match(last) or _ITEM.match(line) or _FENCE.match(line))
        or (bool(_FENCE.match(last)) and len(block) > 1)
        or table != last.lstrip().startswith("|")
    )


def _paragraph(block: Sequence[str], room: int) -> list[str]:
    item = _ITEM.match(block[0])
    first = item.group(0) if item else " " * (len(block[0]) - len(block[0].lstrip()))
    words = " ".join([block[0][len(first) :], *(line.strip() for line in block[1:])])
    return wrapped(_LINK.sub(r"\1 (\2)", words), room, first, " " * len(first), break_words=False)


def _table(block: Sequence[str], width: int) -> list[str]:
    indent = block[0][: len(block[0]) - len(block[0].lstrip())]
    rows = [
        [_cell(text) for text in re.split(r"(?<!\\)\|", line.strip()[1:-1])]
        for line in block
        if not _RULE.match(line)
    ]
    widths = [max(len(row[place]) for row in rows) for place in range(len(rows[0]))]
    lines = [
        (indent + "  ".join(f"{cell:{size}}" for cell, size in zip(row, widths, strict=True))).rstrip()
        for row in rows
    ]
    return fitted("\n".join(lines), width).split("\n")


def _cell(text: str) -> str:
    return _SPAN.sub(r"\1\2", _LINK.sub(r"\1 (\2)", text.strip())).replace("\\|", "|")


def _command(line: str, *, colour: bool) -> str:
    if colour and line.lstrip().startswith("$ "):
        return f"{BOLD}{line}{PLAIN}"
    return line


def _spans(text: str, *, colour: bool) -> str:
    if not colour:
        return text
    return _SPAN.sub(lambda found: f"{BOLD}{found[1] or found[2]}{PLAIN}", text)
