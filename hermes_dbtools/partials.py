"""Name a file that is being written until it gets its own name, and find what killed commands left so; opens no database.

`.<name>.<pid>.partial` lies beside `<name>`, with the sidecars that SQLite gives it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

from .model import Refused
from .processes import Processes, processes_of
from .shown import shown

_NAME = re.compile(
    r"\.(?P<target>.+)\.(?P<pid>[1-9]\d{0,9})(?:-\d+)?\.partial(?:-wal|-shm|-journal)?", re.DOTALL
)


def partial_of(target: Path) -> Path:
    """A name beside a file to be written, of this process. Raises Refused where none is free."""
    for attempt in range(1000):
        number = f"-{attempt}" if attempt else ""
        path = target.with_name(f".{target.name}.{os.getpid()}{number}.partial")
        if not os.path.lexists(path):
            return path
    raise Refused(
        f"{shown(target.parent)}: too many unfinished files of {shown(target.name)}; move them away"
    )


def abandoned(folder: Path, processes: Processes, target: str = "") -> Iterator[Path]:
    """Unfinished files of a folder (of one name in it), in order of name, whose process is provably gone.

    Raises OSError where the folder cannot be listed.
    """
    for path in sorted(folder.iterdir()):
        found = _NAME.fullmatch(path.name)
        if found and target in ("", found["target"]) and processes.gone(int(found["pid"])) and _regular(path):
            yield path


def remove_abandoned(target: Path) -> None:
    """Remove what killed processes left that wrote the same file. Raises OSError."""
    for path in tuple(abandoned(target.parent, processes_of(target.parent, ()), target.name)):
        path.unlink(missing_ok=True)


def _regular(path: Path) -> bool:
    return path.is_file() and not path.is_symlink()
