"""Say on which mounted file system a path lies; opens nothing there."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import psutil


@dataclass(frozen=True, slots=True)
class Mount:
    """A mounted file system: where, and of which kind as the kernel names it."""

    point: str
    kind: str


def mounts() -> tuple[Mount, ...]:
    """Every mounted file system, in the order of the system's own list; none where that cannot be read."""
    try:
        return tuple(Mount(part.mountpoint, part.fstype) for part in psutil.disk_partitions(all=True))
    except (psutil.Error, OSError):
        return ()


def mount_of(path: Path, among: Iterable[Mount]) -> Mount | None:
    """The mount that a path lies on; of several at one place the last one counts."""
    real = os.path.normcase(os.path.realpath(path))
    best: Mount | None = None
    for mount in among:
        folder = os.path.normcase(mount.point)
        inside = real == folder or real.startswith(folder.rstrip("/\\") + os.sep)
        if inside and (best is None or len(mount.point) >= len(best.point)):
            best = mount
    return best
