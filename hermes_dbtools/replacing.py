"""Write a file whole or not at all: whoever reads it meanwhile sees the old content or the new; never a database."""

from __future__ import annotations

import os
import stat
from pathlib import Path


def replace_content(path: str, content: bytes) -> None:
    """Put this content at a path; a file that is there keeps its mode. Raises OSError.

    What is no plain file of this user alone (a device, a FIFO, a link, a file in a closed folder) is written to as it is.
    """
    target = Path(path)
    try:
        found = target.lstat()
    except FileNotFoundError:
        found = None
    if not os.access(target.parent, os.W_OK) or (found is not None and not _ours_alone(found)):
        target.write_bytes(content)
        return
    partial = target.with_name(f".{target.name}.{os.getpid()}.partial")
    descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
        if found is not None:
            partial.chmod(stat.S_IMODE(found.st_mode))
        partial.replace(target)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise


def _ours_alone(found: os.stat_result) -> bool:
    mine = not hasattr(os, "geteuid") or found.st_uid == os.geteuid()
    return stat.S_ISREG(found.st_mode) and found.st_nlink == 1 and mine
