"""Write sessions into a file, whole lineages, and delete them only when the file is proved to hold them.

The file appears under its name when it is complete, readable by its owner only; another file is never overwritten
unasked. Before a delete it is read back inside the delete's own transaction and compared with the rows of that moment.
"""

from __future__ import annotations

import contextlib
import math
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from .. import partials, repairing
from ..apply import ApplyOptions, apply_plan
from ..damage._declare import Planner, ScanContext
from ..home import Home
from ..model import Finding, Receipt, Refused, RolledBack, UsageError
from ..shown import reason, shown
from . import deleting, looking
from ._operation import Operation
from .export_form import Format, message_total, ordered, pieces
from .reading import look, named
from .targets import read_lineages

BLOCK = 1 << 20
"""Bytes written or compared at once."""

STDOUT = "-"

Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Exported:
    """What was written: the sessions in order, how many messages, the file and its bytes."""

    path: str
    form: Format
    asked: tuple[str, ...]
    sessions: tuple[str, ...]
    messages: int
    size: int


@dataclass(frozen=True, slots=True)
class ExportOptions:
    """How to export. `force` replaces a file that is there; `now` is epoch seconds."""

    form: Format = "jsonl"
    force: bool = False
    now: float = field(default_factory=time.time)


def export(
    home: Home,
    words: Iterable[str],
    output: str,
    options: ExportOptions | None = None,
    progress: Progress = lambda _how_far: None,
) -> Exported:
    """Write the lineages of the sessions that words mean into a file, or to stdout for `-`.

    Raises UsageError for a word that means no session and for a file that may not be written, CouldNotLook.
    """
    options = options or ExportOptions()
    wanted = tuple(dict.fromkeys(words))

    def write(context: ScanContext, file: BinaryIO) -> Exported:
        return _write(context, wanted, output, options, file, progress)

    if output == STDOUT:
        with tempfile.TemporaryFile() as scratch:
            done = look(home, options.now, lambda context: write(context, scratch))
            scratch.seek(0)
            if sys.stdout is not None:
                shutil.copyfileobj(scratch, sys.stdout.buffer, BLOCK)
                sys.stdout.buffer.flush()
        return done
    target = Path(output)
    _refuse_target(home, target, force=options.force)
    partial = partials.partial_of(target)
    try:
        partials.remove_abandoned(target)
        with _private(partial) as file:
            done = look(home, options.now, lambda context: write(context, file))
            file.flush()
            os.fsync(file.fileno())
            _into_place(partial, target, force=options.force)
    except OSError as error:  # also of the close, which writes what a failed write has left
        raise UsageError(f"{shown(target)}: {reason(error)}") from None
    finally:
        partial.unlink(missing_ok=True)
    return done


def delete_verified(home: Home, done: Exported, now: float | None = None) -> Receipt:
    """Delete what was exported, if the file holds exactly the rows of the moment of the delete.

    Raises deleting.SessionActive for a live session, RolledBack where file and store differ, Refused. The file stays.
    """
    if done.form == "md" or done.path == STDOUT:
        raise UsageError("only a file of format json or jsonl can be compared with the store")
    repairing.finish_pending(home)
    seen = looking.look(home, done.asked, whole_chain=True, now=now)
    if seen.active:
        raise deleting.SessionActive(seen.active[0])
    if seen.refused:
        raise Refused(
            f"{seen.refused[0].key}: {seen.refused[0].reason}; nothing was changed; the export stays"
        )
    if seen.missing or set(seen.going) != set(done.sessions):
        raise RolledBack(_differs(done, "the sessions that belong together are others now"))
    if seen.held and seen.lock_seconds > deleting.LONGEST_SECONDS:
        raise Refused(
            f"a delete would keep the write lock for about {seen.lock_seconds:.1f} s beside other processes; "
            "nothing was changed; stop them first; the export stays"
        )
    options = ApplyOptions(
        online=True,
        backup=False,
        now=time.time() if now is None else now,
        lock_limit=math.inf,
        planners={code: _verified(planner, done) for code, planner in seen.planners.items()},
    )
    return apply_plan(home, seen.plan, options)


def compare(context: ScanContext, done: Exported) -> None:
    """Read an export back and compare it, row by row, with what the store holds. Raises RolledBack where they differ."""
    messages = 0
    try:
        with Path(done.path).open("rb") as file:
            for piece, message in pieces(context, done.sessions, done.form):
                messages += message
                if file.read(len(piece)) != piece:
                    raise RolledBack(
                        _differs(done, f"message {messages:,} is another" if message else "a row is another")
                    )
            if file.read(1):
                raise RolledBack(_differs(done, "it holds more than the store"))
    except OSError as error:
        raise RolledBack(f"{done.path}: {error.strerror}; nothing was deleted") from None
    if messages != done.messages:
        raise RolledBack(_differs(done, f"{messages:,} messages, not {done.messages:,}"))


def _verified(planner: Planner, done: Exported) -> Operation:
    """The same delete, which compares the export before it finds anything to delete."""

    def find(context: ScanContext) -> Iterator[Finding]:
        if ordered(context, done.sessions):
            compare(context, done)
        yield from planner.find(context)

    return Operation(planner.code, planner.slug, planner.sql, find)


def _differs(done: Exported, how: str) -> str:
    return f"{done.path} is not what the store holds now: {how}; nothing was deleted; the export stays; export again"


def _write(
    context: ScanContext,
    words: tuple[str, ...],
    output: str,
    options: ExportOptions,
    file: BinaryIO,
    progress: Progress,
) -> Exported:
    """Write from the beginning: the store may have moved under an earlier attempt."""
    file.seek(0)
    file.truncate()
    asked = tuple(dict.fromkeys(named(context, word) for word in words))
    lineages = read_lineages(context)
    going = {one for root in asked for one in lineages.going_with(root, whole_chain=True)}
    if strange := [one for one in going if not isinstance(one, str)]:
        raise UsageError(
            f"{len(strange)} sessions of the lineage have an id that is not text; hermes-dbtools scan"
        )
    sessions = ordered(context, sorted(str(one) for one in going))
    messages = size = 0
    total = message_total(context, sessions)
    waiting = bytearray()
    for piece, message in pieces(context, sessions, options.form):
        waiting += piece
        messages += message
        size += len(piece)
        if len(waiting) >= BLOCK:
            file.write(waiting)
            waiting.clear()
            progress(f"messages: {messages:,} of {total:,}")
    file.write(waiting)
    return Exported(output, options.form, asked, sessions, messages, size)


def _refuse_target(home: Home, target: Path, *, force: bool) -> None:
    if not os.path.lexists(target):
        return
    if target.is_dir():
        raise UsageError(f"{shown(target)} is a folder")
    if not force:
        raise UsageError(f"{shown(target)} is there already; choose another name, or --force replaces it")
    for ending in ("", "-wal", "-shm", "-journal"):
        beside = home.database.with_name(home.database.name + ending)
        if beside.exists() and target.exists() and target.samefile(beside):
            raise UsageError(f"{shown(target)} is part of the database")


@contextlib.contextmanager
def _private(path: Path) -> Iterator[BinaryIO]:
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        handle = os.open(path, flags, 0o600)
    except OSError as error:
        raise UsageError(f"{shown(path.parent)}: {reason(error)}") from None
    with os.fdopen(handle, "w+b") as file:
        yield file


def _into_place(partial: Path, target: Path, *, force: bool) -> None:
    """Give the complete file its name; without `force` never in the place of another."""
    if force:
        partial.replace(target)
        return
    try:
        target.hardlink_to(partial)
    except FileExistsError:
        raise UsageError(
            f"{shown(target)} is there already; choose another name, or --force replaces it"
        ) from None
    except OSError:  # a file system without hard links
        if os.path.lexists(target):
            raise UsageError(f"{shown(target)} is there already; --force replaces it") from None
        partial.replace(target)
