"""Render what takes room as text and JSON; computes nothing but shares and opens nothing.

A section looks like this, with a bar on a terminal:

    in the file                          572 MB
      messages                           308 MB   54 %  ██████████████▌
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

import msgspec

from ..shown import one_line, shell_word
from ..sizes import counted, search_text, short, size_text

if TYPE_CHECKING:
    from ..space_model import Gain, SessionSpace, Space, Tree

FORMAT_VERSION = 1
NAME_WIDTH = 44
EIGHTHS = " ▏▎▍▌▋▊▉"

Line = tuple[str, int, str]
"""A name, its bytes, and a remark."""


def space_document(space: Space, tool: Mapping[str, str]) -> dict[str, Any]:
    """The same as JSON; sizes are bytes."""
    return {
        "format": "hermes-dbtools/space",
        "format_version": FORMAT_VERSION,
        "tool": dict(tool),
        **msgspec.to_builtins(space),
    }


def space_text(space: Space, *, bars: int = 0, top: int = 10) -> str:
    """What takes room, section by section. `bars` is the width of a full bar in letters, 0 for none."""
    whole = space.file.bytes
    lines = [_headline(space)]
    lines += _section("in the file", whole, _inside(space), bars)
    lines += _section("search indexes", whole, _search(space), bars)
    lines += _section(
        "by source: bytes of values", _sum(one.bytes for one in space.sources), _sources(space), bars
    )
    lines += _section(f"largest of {space.session_total:,} sessions", whole, _sessions(space, top), bars)
    lines += _section("beside the file", _sum(g.bytes for g in space.beside), _beside(space), bars)
    lines += _section("images", whole, _images(space), bars)
    lines += _section("rows without a session", whole, _orphans(space), bars)
    lines += _section("what would free how much", whole, _gains(space), bars)
    lines += ["", f"not known: {one_line(space.gains_unknown)}"] if space.gains_unknown else []
    return "\n".join(lines) + "\n"


def space_next(space: Space) -> list[str]:
    """What to run to free the most."""
    path = shell_word(space.path)
    lines = []
    for gain in sorted(space.gains, key=lambda one: -(one.rows + one.files))[:1]:
        lossy = " --allow-lossy" if gain.safety == "lossy" else ""
        options = f" --select {gain.slug} --choose {gain.slug}={gain.answer}{lossy}"
        lines.append(f"hermes-dbtools repair {path}{options}   what would go (nothing is written)")
    return lines


def _headline(space: Space) -> str:
    name = one_line(PurePath(space.path).name)
    number = space.shape.schema_version
    schema = f"schema {'unknown' if number is None else number}, {search_text(space.shape.search_layout)}"
    return f"{name} · {size_text(space.file.bytes)} in {space.file.pages:,} pages · {schema}"


def _section(title: str, whole: int, lines: Sequence[Line], bars: int) -> list[str]:
    if not lines:
        return []
    found = ["", title]
    for name, size, remark in lines:
        share = size / whole if whole else 0.0
        text = f"  {short(one_line(name), NAME_WIDTH):{NAME_WIDTH}} {size_text(size):>8} {share:5.0%}"
        if remark:
            text += f"  {one_line(remark)}"
        if bars:
            text = f"{text[: NAME_WIDTH + 17]:{NAME_WIDTH + 17}} {_bar(share, bars)}{text[NAME_WIDTH + 17 :]}"
        found.append(text.rstrip())
    return found


def _bar(share: float, width: int) -> str:
    eighths = round(min(max(share, 0.0), 1.0) * width * 8)
    return ("█" * (eighths // 8) + EIGHTHS[eighths % 8].strip()).ljust(width)


def _inside(space: Space) -> list[Line]:
    """Tables with their indexes, the search indexes in all, SQLite's own, and free pages: together the file."""
    tables: dict[str, list[int]] = {}
    search = own = 0
    for tree in space.file.trees:
        if tree.kind == "search":
            search += tree.bytes
        elif tree.kind == "sqlite":
            own += tree.bytes
        else:
            tables.setdefault(tree.owner, [0, 0])[tree.kind == "index"] += tree.bytes
    lines = [(name, sum(both), _indexes(both[1])) for name, both in tables.items()]
    lines += [("search indexes", search, "")] if search else []
    lines.sort(key=lambda line: (-line[1], line[0]))
    file = space.file
    rest = [
        ("SQLite's own tables", own, ""),
        ("free pages", file.free, "reused by new rows"),
        ("pages that SQLite keeps free", file.reserved, ""),
        ("pages that belong to nothing", file.lost, "hermes-dbtools scan"),
    ]
    return [line for line in (*lines, *rest) if line[1]]


def _indexes(size: int) -> str:
    return f"of it indexes {size_text(size)}" if size else ""


def _search(space: Space) -> list[Line]:
    groups: dict[str, list[Tree]] = {}
    for tree in space.file.trees:
        if tree.kind == "search":
            groups.setdefault(tree.owner, []).append(tree)
    lines = []
    for owner, trees in groups.items():
        parts = ", ".join(
            f"{tree.name.removeprefix(owner + '_')} {size_text(tree.bytes)}"
            for tree in sorted(trees, key=lambda tree: -tree.bytes)[:3]
        )
        lines.append((owner, _sum(tree.bytes for tree in trees), parts))
    return sorted(lines, key=lambda line: (-line[1], line[0]))


def _sources(space: Space) -> list[Line]:
    return [
        (one.source, one.bytes, f"{counted(one.sessions, 'session')}, {counted(one.messages, 'message')}")
        for one in space.sources
    ]


def _sessions(space: Space, top: int) -> list[Line]:
    return [(one.session, one.bytes, _remark(one)) for one in space.sessions[:top]]


def _remark(one: SessionSpace) -> str:
    return f"{one.source if one.row else 'no row'}, {counted(one.messages, 'message')}"


def _beside(space: Space) -> list[Line]:
    lines = []
    for group in space.beside:
        unread = f", {group.unread:,} could not be looked at" if group.unread else ""
        name = group.name if group.group != "sidecars" else PurePath(space.path).name + group.name
        lines.append((f"{group.group}: {name}", group.bytes, f"{counted(group.files, 'file')}{unread}"))
    return lines


def _images(space: Space) -> list[Line]:
    images = space.images
    lines: list[Line] = []
    named = images.on_disk if images.referenced is None else images.referenced
    if named:
        words = "on disk" if images.referenced is None else "on disk, named by rows or younger than a day"
        lines.append((words, named, ""))
    if images.unreferenced:
        lines.append(
            ("on disk, named by nothing", images.unreferenced, "hermes-dbtools runbook unreferenced-images")
        )
    if images.cached:
        lines.append(("in caches", images.cached, "emptied by age"))
    if images.inline:
        lines.append(
            ("inside messages, as base64", images.inline, counted(images.inline_count or 0, "image"))
        )
    return lines


def _orphans(space: Space) -> list[Line]:
    return [(one.table, one.bytes, counted(one.rows, "row")) for one in space.orphans]


def _gains(space: Space) -> list[Line]:
    lines = [_gain(gain) for gain in space.gains]
    packed = space.file.bytes - space.file.packed
    if packed > 0:
        lines.append(("VACUUM INTO another file", packed, "an estimate; before any repair"))
    return lines


def _gain(gain: Gain) -> Line:
    remarks = [gain.safety]
    if gain.files:
        remarks.append(f"of it files {size_text(gain.files)}")
    if gain.refused:
        remarks.append(f"{gain.refused:,} refused")
    return f"{gain.slug}: {gain.answer}", gain.rows + gain.files, ", ".join(remarks)


def _sum(sizes: Iterable[int]) -> int:
    return sum(sizes)
