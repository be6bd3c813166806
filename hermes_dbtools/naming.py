"""Give a complete file its name; never takes one from another file."""

from __future__ import annotations

import errno
import os
from pathlib import Path

from .private_files import NO_LINKS
from .receipts import sync_folder


def give_name(partial: Path, target: Path) -> None:
    """Give a complete file its name, durable, without taking it from another one. Raises OSError; then it has no name."""
    try:
        os.link(partial, target)
    except OSError as error:
        if error.errno not in NO_LINKS:
            raise
        if os.path.lexists(target):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), os.fspath(target)) from None
        partial.rename(target)
    try:
        sync_folder(target.parent)
    except OSError:
        target.unlink()
        raise
