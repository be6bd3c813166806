"""What a finding is known by from run to run and from checkout to checkout; looks at no disk.

A finding is the same as long as its database (by name), damage class, table, key and kind are. Changing any of this would
make every saved baseline and every alert of a code-scanning service forget what it knows.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import PurePath
from typing import NamedTuple


class Identity(NamedTuple):
    """The five words; `database` is a name as `relative_name` makes it."""

    database: str
    code: str
    table: str
    key: str
    kind: str


def relative_name(path: str, folder: str) -> str:
    """A path as seen from a folder, with forward slashes; on another drive, or where there is no path, it stays as it is."""
    if not path:
        return path
    try:
        return PurePath(os.path.relpath(path, folder)).as_posix()
    except ValueError:
        return PurePath(path).as_posix()


def name_below(path: str, folder: str) -> str:
    """As `relative_name` where the path lies in the folder, else the path as it is."""
    name = relative_name(path, folder)
    return PurePath(path).as_posix() if name.startswith("../") else name


def fingerprint(identity: Identity) -> str:
    """A digest of an identity, for services that compare findings of different runs."""
    return hashlib.sha256("\0".join(identity).encode("utf-8", "backslashreplace")).hexdigest()
