"""Render what a fixture is as text; makes and opens none."""

from __future__ import annotations

from collections.abc import Sequence

from ..shown import one_line, shell_word
from ..sizes import size_text


def made_text(path: str, size: int, shape: str, damage: Sequence[tuple[str, int]]) -> str:
    """What was made; `damage` is slug and count, `size` bytes."""
    lines = [f"made {one_line(path)} · {size_text(size)} · shape {shape}"]
    lines += [f"  {slug} {count:,}" for slug, count in damage] or ["  healthy"]
    return "\n".join(lines) + "\n"


def made_next(path: str, later: Sequence[str], *, deep: bool) -> list[str]:
    """What to run next; `later` are the classes that are found only a day after."""
    lines = [f"hermes-dbtools scan {shell_word(path)}{' --deep' if deep else ''}   what it finds there"]
    return lines + [f"{slug} is found when its files have been there for a day" for slug in later]
