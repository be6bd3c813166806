"""Set rows in columns for a person; changes no value and opens nothing."""

from __future__ import annotations

from collections.abc import Sequence

from tabulate import tabulate


def columns(
    rows: Sequence[Sequence[str]], heads: Sequence[str], *, indent: str = "", numbers: bool = False
) -> str:
    """Rows under their heads, cells as they are written; with `numbers` all columns but the first end at the right."""
    align = ["left", *["right"] * (len(heads) - 1)] if numbers and rows else None
    text = tabulate(rows, heads, tablefmt="plain", disable_numparse=True, colalign=align)
    return "\n".join(f"{indent}{line}".rstrip() for line in text.splitlines())
