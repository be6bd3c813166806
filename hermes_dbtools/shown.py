"""Write paths and names so that they fit into one printable line; never decides what is printed."""

from __future__ import annotations

import os
from pathlib import Path


def shown(name: Path | str) -> str:
    """A path or name with its control characters and bytes that are not UTF-8 written as escapes."""
    text = os.fsencode(name).decode("utf-8", "backslashreplace")
    return "".join(
        letter if letter.isprintable() else letter.encode("unicode_escape").decode("ascii") for letter in text
    )
