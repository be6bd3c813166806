"""Say counts in words; knows no damage."""

from __future__ import annotations


def counted(count: int, noun: str) -> str:
    """A count with its noun, in the plural where it is not one."""
    return f"{count:,} {noun}{'s' * (count != 1)}"
