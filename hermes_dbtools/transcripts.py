"""Read the transcript files of a session as messages of the store; asks no database and changes no file.

Facts of upstream: `sessions/<id>.jsonl` is one message a line, appended (`gateway/session.py` of 0.13);
`sessions/session_<id>.json` is an object whose `messages` are the whole history, written anew each turn
(`run_agent.py`, always up to 0.13 and on request since); `sessions/<id>.json` is the older name of the
latter, or an export. A line that is cut off is passed over, as upstream's own reader does.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from .transcript_merge import merge
from .transcript_messages import Message, message_of, moment_of, with_tool_names

FILE_NAME = re.compile(r"[^/\\\0]{1,200}")
LARGEST = 256 * 1024 * 1024
"""Bytes of a transcript that is read; the newest release writes none of a fortieth of that."""

HEAD_BYTES = 16 * 1024
_HEAD_ID = re.compile(rb'^\s*\{\s*"(?:session_id|id)"\s*:\s*("(?:[^"\\]|\\.)*")')
_MESSAGES = re.compile(r'"messages"\s*:\s*\[')
_OBJECT = re.compile(r"[\s,]*")
_NOT_TRANSCRIPTS = ("request_dump_", "sessions.json")


@dataclass(frozen=True, slots=True)
class TranscriptFile:
    """One file that was read. `size` is bytes, `cut` says that its end is missing, `skipped` counts broken entries."""

    name: str
    size: int
    sha256: str
    written_at: float
    messages: int
    skipped: int = 0
    cut: bool = False


@dataclass(frozen=True, slots=True)
class Transcript:
    """All that the files of one session say, each message once. Times are epoch seconds."""

    messages: tuple[Message, ...]
    files: tuple[TranscriptFile, ...]
    source: str = ""
    started_at: float | None = None
    parent: str = ""
    ignored: tuple[str, ...] = ()

    @property
    def snapshot_only(self) -> bool:
        """Whether it is only the file that no delete of upstream removes."""
        return all(file.name.startswith("session_") for file in self.files)


@dataclass(frozen=True, slots=True)
class _Read:
    """One file as read: its messages and what its head says."""

    file: TranscriptFile
    messages: list[Message]
    head: Mapping[str, Any]


def candidates(folder: Path) -> dict[str, tuple[str, ...]]:
    """Session ids by the names of the files that may be theirs, in order of id. Raises OSError where it cannot be listed."""
    found: dict[str, list[str]] = {}
    try:
        names = sorted(path.name for path in folder.iterdir())
    except (FileNotFoundError, NotADirectoryError):
        return {}
    for name in names:
        stem, ending = os.path.splitext(name)  # noqa: PTH122 - a name, not a path
        if ending not in (".json", ".jsonl") or name.startswith(_NOT_TRANSCRIPTS) or not stem:
            continue
        session_id = _id_in_head(folder / name) if ending == ".json" else stem
        session_id = stem.removeprefix("session_") if session_id is None else session_id
        if _printable(session_id) and name in names_of(session_id):
            found.setdefault(session_id, []).append(name)
    return {session_id: tuple(found[session_id]) for session_id in sorted(found)}


def names_of(session_id: str) -> tuple[str, ...]:
    """The names that a transcript of this session may bear; none where the id cannot be part of a name."""
    if not FILE_NAME.fullmatch(session_id):
        return ()
    snapshot = f"session_{safe_component(session_id)}.json"
    return tuple(
        dict.fromkeys((f"{session_id}.jsonl", f"{session_id}.json", f"session_{session_id}.json", snapshot))
    )


def safe_component(session_id: str) -> str:
    """The part of a snapshot's name that stands for the id (`_safe_session_filename_component` of 0.18 and later)."""
    raw = session_id.strip()
    plain = re.sub(r"[^\w-]", "_", raw).strip("._")[:96] or "session"
    if raw and plain == raw:
        return plain
    return f"{plain}_{hashlib.sha256(raw.encode('utf-8', 'surrogatepass')).hexdigest()[:12]}"


def read_transcript(folder: Path, session_id: str) -> Transcript | None:
    """What the files of one session hold, merged; None where no file of it holds a message.

    A file that says it is of another session is named in `ignored`, as is one that is too large, no regular
    file or may not be read.
    """
    read: list[_Read] = []
    ignored: list[str] = []
    for name in names_of(session_id):
        try:
            one = _read(folder / name)
        except (OSError, ValueError) as error:
            ignored.append(f"{name}: {getattr(error, 'strerror', None) or error}")
            continue
        if one is None or not one.messages:
            continue
        told = one.head.get("session_id", one.head.get("id", session_id))
        if told != session_id:
            ignored.append(f"{name}: of another session")
            continue
        read.append(one)
    if not read:
        return None
    read.sort(key=lambda one: (-len(one.messages), one.file.name))
    messages: list[Message] = read[0].messages
    for one in read[1:]:
        both = (messages, one.messages)
        messages = [both[side][place] for side, place in merge(messages, one.messages)]
    heads = [one.head for one in read]
    return Transcript(
        tuple(with_tool_names(messages)),
        tuple(one.file for one in read),
        _first_word(heads, ("platform", "source")),
        next((t for h in heads for k in ("session_start", "started_at") if (t := moment_of(h.get(k)))), None),
        next((p for h in heads if isinstance(p := h.get("parent_session_id"), str)), ""),
        tuple(ignored),
    )


def _read(path: Path) -> _Read | None:
    """One transcript file, None where there is none. Raises OSError or ValueError where it cannot be read."""
    try:
        with _regular(path) as file:
            info = os.fstat(file.fileno())
            if info.st_size > LARGEST:
                raise ValueError(f"larger than {LARGEST:,} bytes")
            data = file.read()
    except FileNotFoundError:
        return None
    lines = path.name.endswith(".jsonl")
    messages, head, skipped, cut = _from_lines(data) if lines else _from_object(data)
    digest = hashlib.sha256(data).hexdigest()
    told = TranscriptFile(path.name, len(data), digest, info.st_mtime, len(messages), skipped, cut)
    return _Read(told, messages, head)


def _from_lines(data: bytes) -> tuple[list[Message], dict[str, Any], int, bool]:
    messages: list[Message] = []
    head: dict[str, Any] = {}
    skipped = 0
    lines = [line for line in data.split(b"\n") if line.strip()]
    broken = False
    for line in lines:
        entry = _parsed(line.decode("utf-8", "replace"))
        broken = not isinstance(entry, dict)
        if not isinstance(entry, dict):
            skipped += 1
        elif entry.get("role") == "session_meta":
            head = head or {key: entry.get(key) for key in ("platform",)}
        elif (message := message_of(entry)) is not None:
            messages.append(message)
    return messages, head, skipped, broken and not data.endswith(b"\n")


def _from_object(data: bytes) -> tuple[list[Message], dict[str, Any], int, bool]:
    text = data.decode("utf-8", "replace")
    whole = _parsed(text)
    if isinstance(whole, dict):
        entries, cut = whole.pop("messages", None), False
        head = whole
    else:
        entries, cut = list(_entries_of_cut(text)), True
        head = _head_of_cut(text)
    listed = entries if isinstance(entries, list) else []
    messages = [m for entry in listed if isinstance(entry, dict) and (m := message_of(entry)) is not None]
    return messages, head, sum(not isinstance(entry, dict) for entry in listed), cut and bool(messages)


def _entries_of_cut(text: str) -> Iterator[Any]:
    """The whole entries of a list of messages whose end is missing."""
    begin = _MESSAGES.search(text)
    decoder = json.JSONDecoder()
    place = begin.end() if begin else len(text)
    while True:
        gap = _OBJECT.match(text, place)
        place = gap.end() if gap else place
        try:
            entry, place = decoder.raw_decode(text, place)
        except (ValueError, RecursionError):
            return
        yield entry


def _head_of_cut(text: str) -> dict[str, Any]:
    """What stands before the messages of an object whose end is missing."""
    begin = _MESSAGES.search(text)
    if begin is None:
        return {}
    head = _parsed(text[: begin.start()].rstrip().rstrip(",") + "}")
    return head if isinstance(head, dict) else {}


def _id_in_head(path: Path) -> str | None:
    """The id that a file begins with, None where it does not begin with one."""
    try:
        with _regular(path) as file:
            found = _HEAD_ID.match(file.read(HEAD_BYTES))
    except (OSError, ValueError):
        return None
    told = _parsed(found.group(1).decode("utf-8", "replace")) if found else None
    return told if isinstance(told, str) else None


@contextmanager
def _regular(path: Path) -> Iterator[BinaryIO]:
    """A regular file open for reading; waits for no pipe. Raises OSError or ValueError where it is none."""
    handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise ValueError("not a regular file")
    with os.fdopen(handle, "rb") as file:
        yield file


def _first_word(heads: list[Mapping[str, Any]], keys: tuple[str, ...]) -> str:
    return next(
        (word for head in heads for key in keys if isinstance(word := head.get(key), str) and word), ""
    )


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _printable(session_id: str) -> bool:
    """Whether the id is text that a store can hold: a file name may be no UTF-8."""
    try:
        session_id.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return bool(session_id)
