"""Read `runtime/active_sessions.json`, where processes register the sessions they own; never locks or writes.

Upstream (`hermes_cli/active_sessions.py`) replaces the file as a whole, so a reader without its lock sees one
whole state: `{"entries": [...]}`, in older files the bare list. A backend that serves several profiles may
keep the entries of all of them in the file of the root home, so that one is read too.
"""

from __future__ import annotations

import json
import math
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from .home import DEFAULT_PROFILE, Home

LARGEST = 64 * 1024 * 1024
"""Bytes above which the file is not read: upstream's has some hundred bytes per open session."""


class UnreadableFile(Exception):
    """The file is there but does not say who is live; the text says why, without a word of its content."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A session and the process that owns it; unreadable are pid 0 and start time (epoch seconds) None."""

    session_id: str
    pid: int
    process_start_time: float | None


def read_entries(home: Home) -> tuple[Entry, ...]:
    """The entries for a profile: those of its own file, then those of the root home's.

    Raises UnreadableFile.
    """
    files = [home.active_sessions_file]
    if home.profile != DEFAULT_PROFILE:
        files.append(home.root.parent.parent / "runtime" / "active_sessions.json")
    return tuple(entry for file in files for entry in read_file(file))


def read_file(path: Path) -> tuple[Entry, ...]:
    """The entries of one file; none where there is no file. Raises UnreadableFile."""
    try:
        content = _content(path)
        document = json.loads(content.decode("utf-8-sig")) if content is not None else []
    except OSError as error:
        reason = (error.strerror or "input or output error").lower()
        raise UnreadableFile(f"{path.name} cannot be read: {reason}") from None
    except (ValueError, RecursionError):
        raise UnreadableFile(f"{path.name} is not a JSON document") from None
    entries = document.get("entries") if isinstance(document, dict) else document
    if not isinstance(entries, list):
        raise UnreadableFile(f"{path.name} has no list of entries")
    return tuple(_entries(entries, path))


def _content(path: Path) -> bytes | None:
    try:
        # Without O_NONBLOCK a FIFO at this place would hold us for ever.
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    except FileNotFoundError:
        return None
    with os.fdopen(descriptor, "rb") as file:
        found = os.fstat(file.fileno())
        if not stat.S_ISREG(found.st_mode) or found.st_size > LARGEST:
            raise UnreadableFile(f"{path.name} is no regular file of a sensible size")
        return file.read()


def _entries(entries: list[object], path: Path) -> Iterator[Entry]:
    for entry in entries:
        session_id = entry.get("session_id") if isinstance(entry, dict) else None
        if not isinstance(entry, dict) or not isinstance(session_id, str):
            raise UnreadableFile(f"{path.name} has an entry without a session id")
        if session_id.strip():  # a draft that has no stored session yet owns none
            yield Entry(session_id, _pid(entry.get("pid")), _moment(entry.get("process_start_time")))


def _pid(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int | str):
        return 0
    try:
        return max(0, int(value))
    except ValueError:
        return 0


def _moment(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        moment = float(value)
    except (ValueError, OverflowError):
        return None
    return moment if math.isfinite(moment) else None
