"""The ground that the file lies on is unsafe

What it means
-------------
Nothing is damaged yet. But a WAL on a file system that several kernels share loses its locks and its shared memory, a full
disk ends writes in the middle, a file that other users may write or its owner may not write fails or leaks, and processes with
a SQLite that has the WAL-reset fault can lose pages when they share one WAL.

Why it happens
--------------
A home on a network, virtual machine or FUSE mount; a store that grew, backups beside it; a repair or a container that ran as
root; an umask or a copy that gave permissions away; a Python with its own, older SQLite.

Repair
------
By hand: the runbook says for each kind what to do. For a shared file system that is a local disk, or the rollback journal
(`database.journal_mode: delete` in Hermes' configuration, converted while nothing runs).

Safety
------
Manual. What the system says of mounts, room, permissions and loaded libraries is read; the file is not. A rollback journal on
a shared file system is a choice and no damage, nor is `9p` in gVisor, where one kernel has every lock. A file that others may
read is a note, for releases up to 0.19.0 make it so, and none where no folder above lets them in.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ...file_state import FileState
from ...model import Finding, Safety, Severity
from ...place import OwnedFile, Place, place_of
from ...sizes import size_text
from .._declare import ScanContext, declare

SHARED = frozenset(
    (
        *(
            "9p",
            "afs",
            "afpfs",
            "ceph",
            "cifs",
            "fakeowner",
            "glusterfs",
            "lustre",
            "ncpfs",
            "nfs",
            "nfs4",
            "ocfs2",
        ),
        *(
            "prl_fs",
            "smb2",
            "smb3",
            "smbfs",
            "vboxsf",
            "virtiofs",
            "vmhgfs",
            "webdav",
            "drvfs",
            "osxfs",
            "grpcfuse",
        ),
    )
)
"""Kinds of file system of which another kernel has files and locks, as Linux and macOS name them."""

FULL = 100 * 1024 * 1024
"""Bytes: with less than that free, a busy hour may fill the disk."""

SLACK = 16 * 1024 * 1024
"""Bytes that a repair needs beside its backup."""

OTHERS_WRITE = 0o002
OTHERS_READ = 0o004
MORE_THAN_OWNER = 0o022


def _find(context: ScanContext) -> Iterator[Finding]:
    if not context.file.problem:
        yield from judged(context.file, place_of(context.file))


def judged(state: FileState, place: Place) -> Iterator[Finding]:
    """The findings on one file at one place."""
    yield from _file_system(state, place)
    yield from _room(state, place)
    yield from _permissions(state, place)
    yield from _engines(state, place)


def _file_system(state: FileState, place: Place) -> Iterator[Finding]:
    kind = place.kind.casefold()
    shared = kind in SHARED or kind.startswith("fuse.")
    if state.wal_mode and shared and not (kind == "9p" and place.one_kernel):
        yield DAMAGE.finding(
            table="",
            key="file system",
            kind="shared-file-system",
            message=f"a WAL on {place.kind}: its locks and shared memory do not hold there",
            evidence={"file_system": place.kind, "journal_mode": "wal"},
        )


def _room(state: FileState, place: Place) -> Iterator[Finding]:
    needed = state.size + (state.wal_size or 0) + SLACK
    if place.free is None or place.free >= max(needed, FULL):
        return
    full = place.free < FULL
    yield DAMAGE.finding(
        table="",
        key="room",
        kind="disk-full" if full else "no-room-for-backup",
        severity=Severity.WARNING if full else Severity.NOTE,
        message=f"{size_text(place.free)} free"
        + (": writes will fail soon" if full else f": a repair needs {size_text(needed)} for its backup"),
        evidence={"free_bytes": place.free, "needed_bytes": needed},
    )


def _permissions(state: FileState, place: Place) -> Iterator[Finding]:
    exposed = [file for file in place.files if place.reachable and file.mode & (OTHERS_WRITE | OTHERS_READ)]
    if exposed:
        write = any(file.mode & OTHERS_WRITE for file in exposed)
        yield DAMAGE.finding(
            table="",
            key="permissions",
            kind="open-to-others",
            severity=Severity.WARNING if write else Severity.NOTE,
            message=f"every user of this machine may {'write' if write else 'read'} {_named(exposed)}",
            evidence={"modes": {file.name: f"{file.mode:04o}" for file in exposed}},
        )
    strange = [f for f in place.files if state.uid and f.uid != state.uid and not f.mode & MORE_THAN_OWNER]
    if strange:
        yield DAMAGE.finding(
            table="",
            key="owner",
            kind="other-owner",
            message=f"{_named(strange)} may not be written by user {state.uid}, whose database it is",
            evidence={"database_uid": state.uid, "uids": {file.name: file.uid for file in strange}},
        )


def _named(files: Iterable[OwnedFile]) -> str:
    return ", ".join(file.name for file in files)


def _engines(state: FileState, place: Place) -> Iterator[Finding]:
    faulty = [engine for engine in place.engines if engine.faulty]
    if not state.wal_mode or len(place.engines) < 2 or not faulty:
        return
    named = ", ".join(f"{engine.name} (pid {engine.pid}, SQLite {engine.version})" for engine in faulty)
    yield DAMAGE.finding(
        table="",
        key="sqlite versions",
        kind="wal-reset-fault",
        severity=Severity.NOTE,
        message=f"{len(place.engines)} processes share the WAL, with the WAL-reset fault: {named}",
        evidence={
            "processes": [
                {"pid": engine.pid, "sqlite": engine.version, "faulty": engine.faulty}
                for engine in place.engines
            ]
        },
    )


DAMAGE = declare(
    __name__,
    __doc__,
    code="HDB004",
    severity=Severity.WARNING,
    safety=Safety.MANUAL,
    stage="file",
    noun=("danger", "dangers"),
    find=_find,
)
