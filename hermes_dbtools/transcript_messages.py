"""Turn one entry of a transcript into a message as the store keeps it, and say when two are the same; reads no file.

Facts of upstream: content that is no text is kept as a NUL byte, `json:` and JSON (`_encode_content`); the
columns of an assistant's thoughts are empty for all others (`append_message`, `_insert_message_rows`).
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

EARLIEST, LATEST = 0.0, 4.2e9
"""Epoch seconds between which a number can be the time of a message."""

NUL_JSON = "\0json:"
ROLES = frozenset(("user", "assistant", "tool", "system"))

_TAGS = (("<REASONING_SCRATCHPAD>", "<think>"), ("</REASONING_SCRATCHPAD>", "</think>"))


@dataclass(frozen=True, slots=True)
class Message:
    """One message by the columns that every store has; `identity` is the same for the same message elsewhere."""

    role: str
    content: str | None
    tool_call_id: str | None = None
    tool_calls: str | None = None
    tool_name: str | None = None
    timestamp: float | None = None
    finish_reason: str | None = None
    reasoning: str | None = None
    reasoning_content: str | None = None
    reasoning_details: str | None = None
    codex_reasoning_items: str | None = None
    codex_message_items: str | None = None
    active: int = 1
    compacted: int = 0
    identity: bytes = field(default=b"", compare=False)

    @property
    def calls(self) -> int:
        """How many tools it calls, as the store counts them."""
        calls = _loaded(self.tool_calls)
        return len(calls) if isinstance(calls, list) else int(bool(calls))


def message_of(entry: Mapping[str, Any]) -> Message | None:
    """The message of a transcript entry; None for what is no message of a conversation."""
    role = entry.get("role")
    if not isinstance(role, str) or role not in ROLES:
        return None
    content = _content(entry.get("content"))
    own = entry if role == "assistant" else {}
    calls = _calls(entry.get("tool_calls"))
    call_id = _text(entry.get("tool_call_id"))
    return Message(
        role=role,
        content=content,
        tool_call_id=call_id,
        tool_calls=calls,
        tool_name=_text(entry.get("tool_name", entry.get("name") if role == "tool" else None)),
        timestamp=moment_of(entry.get("timestamp")),
        finish_reason=_text(entry.get("finish_reason")),
        reasoning=_text(own.get("reasoning")),
        reasoning_content=_text(own.get("reasoning_content")),
        reasoning_details=_json(own.get("reasoning_details")),
        codex_reasoning_items=_json(own.get("codex_reasoning_items")),
        codex_message_items=_json(own.get("codex_message_items")),
        active=0 if entry.get("active") in (0, False) and "active" in entry else 1,
        compacted=1 if entry.get("compacted") in (1, True) else 0,
        identity=identity(role, content, call_id, calls),
    )


def with_tool_names(messages: Iterable[Message]) -> Iterator[Message]:
    """The same messages; an answer of a tool that does not name it gets the name that its call has."""
    names: dict[str, str] = {}
    for message in messages:
        for call_id, name, _arguments in _named_calls(message.tool_calls):
            if isinstance(call_id, str) and isinstance(name, str):
                names[call_id] = name
        if message.role == "tool" and message.tool_name is None and message.tool_call_id in names:
            message = replace(message, tool_name=names[message.tool_call_id])
        yield message


def identity(role: str, content: str | None, tool_call_id: str | None, tool_calls: str | None) -> bytes:
    """What is the same for one message in a transcript, a snapshot and the store: who said what and called what."""
    said: object = content or ""
    if isinstance(said, str) and said.startswith(NUL_JSON):
        said = _loaded(said.removeprefix(NUL_JSON))
    elif isinstance(said, str):
        for written, snapshot in _TAGS:
            said = said.replace(written, snapshot)
        said = said.strip()
    parts = [role, said, tool_call_id or "", _named_calls(tool_calls)]
    told = json.dumps(parts, sort_keys=True, default=str)
    return hashlib.sha256(told.encode()).digest()[:16]


def moment_of(value: object) -> float | None:
    """Epoch seconds of a number or of an ISO date and time; one without a zone is of this machine, as upstream writes it."""
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value).timestamp()
        except (ValueError, OverflowError, OSError):
            return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    return float(value) if EARLIEST < value < LATEST else None


def _content(value: object) -> str | None:
    if value is None or isinstance(value, str):
        return _text(value)
    if isinstance(value, list | dict):
        return NUL_JSON + json.dumps(value)
    return str(value)


def _calls(value: object) -> str | None:
    """Calls as JSON; a text that is JSON already stays one."""
    if isinstance(value, str) and isinstance(loaded := _loaded(value), list):
        value = loaded
    return _json(value)


def _named_calls(tool_calls: str | None) -> list[tuple[object, object, object]]:
    """Id, name and arguments of each call."""
    calls = _loaded(tool_calls)
    if isinstance(calls, str):
        calls = _loaded(calls)
    named: list[tuple[object, object, object]] = []
    for call in calls if isinstance(calls, list) else []:
        function = call.get("function") if isinstance(call, dict) else None
        made = function if isinstance(function, dict) else {}
        told = call if isinstance(call, dict) else {}
        named.append((told.get("id", call), made.get("name"), made.get("arguments")))
    return named


def _json(value: object) -> str | None:
    return json.dumps(value) if value else None


def _text(value: object) -> str | None:
    """A text that UTF-8 has words for: the halves of broken surrogate pairs become U+FFFD."""
    if not isinstance(value, str):
        return None
    if value.isascii():
        return value
    return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _loaded(value: str | None) -> object:
    try:
        return json.loads(value) if value else None
    except (ValueError, RecursionError):
        return value
