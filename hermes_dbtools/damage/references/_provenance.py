"""Find out from routing entries and transcripts where lost sessions came from; never keeps what they hold.

Facts of upstream (0.13.0 to 0.20.4): routing entries, in `gateway_routing` or in `sessions/sessions.json`,
carry the platform whose word is also the session's source (`gateway/session.py`);
`sessions/session_<id>.json` begins with the lines session_id, model, base_url, platform, written with an
indent of two (`run_agent.py`). A request dump names none.
"""

from __future__ import annotations

import json
import os
import re
import stat
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ...model import Value
from .._declare import text

RECOVERED = "recovered"
"""Upstream's own word for a session that was recreated for its messages."""

MACHINE_SOURCES = frozenset(("tool", "kanban", "oneshot", "subagent", "cron", "unknown"))
"""Sources that upstream's lists or sweeps treat as no conversation: never given to a recreated session."""

_WORD = re.compile(r"[a-z][a-z_]{0,31}")
_FILE_NAME = re.compile(r"[^/\\\0]{1,200}")
_HEAD_LINE = re.compile(rb'^  "(session_id|platform)": ("(?:[^"\\]|\\.)*"),?\r?$', re.MULTILINE)
_HEAD_BYTES = 16 * 1024
_INDEX_BYTES = 16 * 1024 * 1024


@dataclass(slots=True)
class Provenance:
    """Platforms by session id, as far as they were proved."""

    platforms: dict[str, set[str]] = field(default_factory=dict)

    def add(self, session_id: Value, *platforms: Value) -> None:
        """Note that a session is said to be of a platform; what is not a lower-case word proves nothing."""
        for platform in platforms:
            if isinstance(session_id, str) and isinstance(platform, str) and _WORD.fullmatch(platform):
                self.platforms.setdefault(session_id, set()).add(platform)

    def source(self, session_id: str) -> str:
        """The one platform that is proved, else `recovered`."""
        proved = self.platforms.get(session_id, set()) - MACHINE_SOURCES
        return proved.pop() if len(proved) == 1 else RECOVERED


def provenance(routed: Iterable[tuple[Value, ...]], folder: Path | None, ids: Iterable[str]) -> Provenance:
    """What routing rows (id, platform, platform of the origin) and the sessions folder prove of these ids."""
    found = Provenance()
    for session_id, platform, origin in routed:
        found.add(text(session_id), text(platform), text(origin))
    if folder is None:
        return found
    for entry in _index_entries(folder / "sessions.json"):
        origin = entry.get("origin")
        found.add(
            entry.get("session_id"),
            entry.get("platform"),
            origin.get("platform") if isinstance(origin, Mapping) else None,
        )
    for session_id in ids:
        if _FILE_NAME.fullmatch(session_id):
            head = _head(folder / f"session_{session_id}.json")
            found.add(
                head.get("session_id") if head.get("session_id") == session_id else None, head.get("platform")
            )
    return found


def has_transcript(folder: Path | None, session_id: Value) -> bool | str:
    """Whether a transcript of the session lies in the folder; says so in words where that cannot be seen."""
    if folder is None or not isinstance(session_id, str) or not _FILE_NAME.fullmatch(session_id):
        return False
    for name in (f"{session_id}.jsonl", f"{session_id}.json", f"session_{session_id}.json"):
        try:
            if stat.S_ISREG((folder / name).lstat().st_mode):
                return True
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError:
            return "could not look"
    return False


def _index_entries(path: Path) -> Iterator[Mapping[str, Value]]:
    """Entries of the routing index; none where it is missing, too large or not what upstream writes."""
    raw = _read(path, _INDEX_BYTES + 1)
    if len(raw) > _INDEX_BYTES:
        return
    try:
        index = json.loads(raw)
    except (ValueError, RecursionError):
        return
    for entry in index.values() if isinstance(index, dict) else ():
        if isinstance(entry, dict):
            yield entry


def _head(path: Path) -> dict[str, str]:
    """The id and the platform that a transcript snapshot begins with."""
    found: dict[str, str] = {}
    for name, value in _HEAD_LINE.findall(_read(path, _HEAD_BYTES)):
        try:
            found.setdefault(name.decode(), json.loads(value))
        except ValueError:
            return {}
    return found


def _read(path: Path, limit: int) -> bytes:
    """The first bytes of a regular file, b'' where there is none that can be read; waits for no pipe."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except (OSError, ValueError):
        return b""
    with os.fdopen(handle, "rb") as file:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            return b""
        try:
            return file.read(limit)
        except OSError:
            return b""
