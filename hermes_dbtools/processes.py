"""Tell whether the process that signed a lease is provably gone; never signals, stops or waits for one.

A PID means something only on the host and in the PID namespace of the process that wrote it. It is believed
where nothing speaks against that: the file lies on a filesystem of this host, no gateway of another host has
served it, the holder's text names no other host, and, in a container, the file was not mounted into it from
outside. The PIDs that processes of nested containers have there count too. Whatever is doubtful is alive, as
upstream has it (`_compression_lock_holder_process_is_dead` in its `hermes_state.py`); a PID in use again
reads as alive as well.
"""

from __future__ import annotations

import math
import os
import re
import socket
import sys
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import psutil

from .model import Value
from .mounts import mount_of, mounts

HOLDER_PID = re.compile(r"(?:^|:)pid=([0-9]{1,10})(?=:|$)")
HOLDER_HOST = re.compile(r"(?:^|:)host=([^:]+)")

INITIAL_PID_NAMESPACE = "pid:[4026531836]"
"""What Linux calls the namespace that sees every process (PROC_PID_INIT_INO in include/linux/proc_ns.h)."""

START_TOLERANCE = 2.0
"""Seconds by which two readings of one start time may differ: the boot time behind them is rounded."""

LOCAL_FILESYSTEMS = frozenset(
    (
        *("apfs", "aufs", "bcachefs", "btrfs", "ecryptfs", "exfat", "ext2", "ext3", "ext4", "f2fs", "ffs"),
        *("fuseblk", "hfs", "jfs", "msdos", "ntfs", "ntfs3", "overlay", "ramfs", "reiserfs", "tmpfs", "ufs"),
        *("vfat", "xfs", "zfs"),
    )
)
"""Kinds of filesystem that no other host can have mounted at the same time."""


@dataclass(frozen=True)
class Processes:
    """The processes of this host. `doubt` says why one not seen here may still run, '' for no doubt."""

    doubt: str = ""
    host: str = field(default_factory=socket.gethostname)
    proc: Path = Path("/proc")

    def gone(self, pid: int) -> bool:
        """Whether the process provably does not exist; never true of this process."""
        if self.doubt or pid <= 0 or pid == os.getpid():
            return False
        return not _exists(pid) and not self._in_nested_namespace(pid)

    def holder_gone(self, holder: Value) -> bool:
        """Whether the holder of a lease or lock names, as `pid=<digits>`, a process that is gone."""
        text = holder_text(holder)
        host = HOLDER_HOST.search(text)
        if host is not None and host[1].casefold() != self.host.casefold():
            return False
        return self.gone(holder_pid(text))

    def owner_gone(self, pid: int, started_at: float | None) -> bool:
        """Whether a process is gone: there is none, or one that began after `started_at` (epoch seconds)."""
        if self.gone(pid):
            return True
        if self.doubt or pid <= 0 or pid == os.getpid():
            return False
        if started_at is None or not math.isfinite(started_at):
            return False
        began = _start_time(pid)
        # Only a later start proves another process; an earlier one means that the clock was set.
        later = began is not None and began > started_at + START_TOLERANCE
        return later and not self._in_nested_namespace(pid)

    def unseen(self, pid: int) -> str:
        """Why a process that is not seen here is not taken for gone, or ''."""
        return self.doubt if self.doubt and pid > 0 and not _exists(pid) else ""

    def _in_nested_namespace(self, pid: int) -> bool:
        return self._nested_pids is None or pid in self._nested_pids

    @cached_property
    def _nested_pids(self) -> frozenset[int] | None:
        """The PIDs that processes of nested namespaces have there; None where that cannot be read."""
        if not self.proc.is_dir():
            return frozenset()
        try:
            return frozenset(_nested_pids(self.proc))
        except OSError:
            return None


def processes_of(database: Path, hosts: Iterable[str]) -> Processes:
    """How far the PIDs in this file are believed; `hosts` are those whose gateways served it lately."""
    host = socket.gethostname()
    if any(other.casefold() != host.casefold() for other in hosts):
        return Processes("a gateway of another host served this file within the last day", host)
    return Processes(_doubt_of_place(database), host)


def holder_text(holder: Value) -> str:
    """The holder as text; bytes that are not UTF-8 are replaced, for only its ASCII tokens are read."""
    return holder.decode("utf-8", "replace") if isinstance(holder, bytes) else str(holder or "")


def holder_pid(holder: Value) -> int:
    """The PID that a holder names, or 0."""
    found = HOLDER_PID.search(holder_text(holder))
    return int(found[1]) if found else 0


def _exists(pid: int) -> bool:
    if os.name == "nt":
        return psutil.pid_exists(pid)
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        return True
    return True


def _start_time(pid: int) -> float | None:
    try:
        return float(psutil.Process(pid).create_time())
    except (psutil.Error, OSError, ValueError):
        return None


def _doubt_of_place(database: Path) -> str:
    mounted = mounts()
    place = mount_of(database, mounted)
    if place is None:
        return "it is unknown on which filesystem the file lies"
    if place.kind.casefold() not in LOCAL_FILESYSTEMS:
        return f"the file lies on a filesystem that other hosts may share ({place.kind})"
    outermost = mount_of(Path("/"), mounted)
    if _in_container() and outermost is not None and place.point != outermost.point:
        return "the file is mounted into this container, from where processes outside are not seen"
    return ""


def _in_container() -> bool:
    try:
        return sys.platform == "linux" and str(Path("/proc/self/ns/pid").readlink()) != INITIAL_PID_NAMESPACE
    except OSError:
        return True


def _nested_pids(proc: Path) -> Iterable[int]:
    """What `NSpid` says of the inner namespaces of every process (proc(5), Linux 4.1 and later)."""
    for folder in proc.iterdir():
        if folder.name.isascii() and folder.name.isdigit():
            try:
                status = (folder / "status").read_bytes()
            except OSError:
                continue
            found = re.search(rb"^NSpid:((?:[ \t]+\d+)+)$", status, re.MULTILINE)
            yield from (int(pid) for pid in (found[1].split()[1:] if found else ()))
