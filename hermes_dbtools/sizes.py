"""Sizes, counts, moments, ids and answers as people read them; computes nothing else."""

from __future__ import annotations

import os
import time
from pathlib import Path


def size_text(size: int) -> str:
    """Bytes as a short text in decimal units: 950 B, 12 KB, 3.1 MB."""
    value = float(size)
    for unit in ("B", "KB", "MB", "GB", "TB"):
        if abs(value) < 999.5 or unit == "TB":
            digits = 0 if unit == "B" or value >= 9.95 else 1
            return f"{value:,.{digits}f} {unit}"
        value /= 1000
    raise AssertionError


def path_text(path: Path | str | bytes) -> str:
    """A path as text; bytes of its name that are not UTF-8 are written as backslash escapes."""
    return os.fsencode(path).decode("utf-8", "backslashreplace")


def counted(count: int, one: str, several: str = "") -> str:
    """A number with its noun: 1 step, 2,000 steps. `several` where it is not `one` with an s."""
    return f"{count:,} {one if count == 1 else several or one + 's'}"


def search_text(layout: str) -> str:
    """What kind of search a file has."""
    return "no search index" if layout == "none" else f"{layout} search"


def moment_text(seconds: float) -> str:
    """Epoch seconds as UTC date and time."""
    return time.strftime("%Y-%m-%d %H:%M:%SZ", time.gmtime(seconds))


def short(text: str, width: int = 28) -> str:
    """A key for a table: long ones lose their middle."""
    if len(text) <= width:
        return text
    keep = width - 1
    return f"{text[: keep - keep // 3]}…{text[-(keep // 3) :]}"


def answers_text(answers: tuple[str, ...]) -> str:
    """The answers of a class, default first; where nothing is ever planned, who mends it."""
    return "by hand" if answers == ("report",) else " | ".join(answers)
