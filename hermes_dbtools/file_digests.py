"""Take the SHA-256 of a file as it lies there; follows no link unless told to, and changes nothing."""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

BLOCK = 1 << 22
"""Bytes read at once."""

_NO_SUCH_FILE = {errno.ENOENT, errno.ENOTDIR, errno.ELOOP}


def file_digest(
    path: Path | str,
    *,
    folder: int | None = None,
    follow_links: bool = False,
    progress: Callable[[str], None] = lambda _how_far: None,
) -> str:
    """SHA-256 of a regular file, hexadecimal; '' where nothing, a link or something else has that name.

    With `folder`, the descriptor of an open folder, `path` is a name in it. `progress` is told how much has been read.
    Raises OSError where a file cannot be read.
    Never of a database that this process has open with locks: closing it would give them up.
    """
    flags = os.O_RDONLY | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NONBLOCK", 0)
    if not follow_links:
        flags |= getattr(os, "O_NOFOLLOW", 0)
    try:
        handle = os.open(path, flags, dir_fd=folder)
    except OSError as error:
        if error.errno in _NO_SUCH_FILE:
            return ""
        raise
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        return ""
    with os.fdopen(handle, "rb") as file:
        return _digest(file, os.fstat(handle).st_size, progress)


def _digest(file: BinaryIO, size: int, progress: Callable[[str], None]) -> str:
    digest, done = hashlib.sha256(), 0
    while block := file.read(BLOCK):
        digest.update(block)
        done += len(block)
        if size > BLOCK:
            progress(f"comparing digests: {min(99, 100 * done // size)} %")
    return digest.hexdigest()
