"""Read the tool calls of messages and pair them with their results; keeps ids, never arguments or results.

The id of a call is its `call_id`, else its `id` (upstream: `coalesce_tool_call_id`); a result may name either.
"""

from __future__ import annotations

import json
from array import array
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import msgspec

MOST_OPEN = 100_000
"""So many calls may wait for their result at once; when there are more, all of them become suspects."""


class Function(msgspec.Struct, gc=False):
    """What a call asks for, as it is stored; damage may have put anything there."""

    name: Any = None
    arguments: Any = None


class Call(msgspec.Struct, gc=False):
    """One tool call as it is stored."""

    id: Any = None
    call_id: Any = None
    function: Function | None = None

    @property
    def ids(self) -> tuple[str, ...]:
        """What a result may name the call by, the likeliest first."""
        return tuple(dict.fromkeys(one for one in (self.call_id, self.id) if isinstance(one, str) and one))

    @property
    def name(self) -> str:
        """The tool it calls, or ''."""
        name = self.function.name if self.function else None
        return name if isinstance(name, str) else ""

    @property
    def arguments_broken(self) -> bool:
        """Whether its arguments are given and are not a JSON object; upstream takes empty ones for none."""
        arguments = self.function.arguments if self.function else None
        if isinstance(arguments, str):
            return bool(arguments.strip()) and not _is_object(arguments)
        return arguments is not None and not isinstance(arguments, dict)


@dataclass(frozen=True, slots=True)
class Calls:
    """The calls of one message; `count` is what upstream counts them as (1 where the list is no list).

    `sent` says that upstream sends them: it leaves out a list that was encoded twice.
    """

    count: int
    calls: list[Call]
    sent: bool = True


def read_calls(encoded: bytes) -> Calls | None:
    """The calls of one message; None where they are not JSON. A list that was encoded twice is legal in old rows."""
    try:
        calls = _LIST.decode(encoded)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return _read_slowly(encoded)
    return Calls(len(calls), calls)


@dataclass(slots=True)
class Pairing:
    """Calls and results of active rows in order of id. What does not pair is a suspect, for a closer look.

    `unanswered` are ids of messages with calls, `strays` ids of results; `broken` are ids of messages with a call
    whose arguments are no object.
    """

    unanswered: array[int] = field(default_factory=lambda: array("q"))
    strays: array[int] = field(default_factory=lambda: array("q"))
    broken: array[int] = field(default_factory=lambda: array("q"))
    _open: dict[tuple[bytes, str], int] = field(default_factory=dict)

    def calls(self, session: bytes, message_id: int, calls: list[Call]) -> None:
        """A message makes calls."""
        waiting = self._open
        broken = False
        for call in calls:
            name = call.call_id or call.id
            if isinstance(name, str) and name:
                earlier = waiting.get((session, name))
                if earlier is not None and earlier != message_id:
                    self.unanswered.append(earlier)
                waiting[session, name] = message_id
            broken = broken or call.arguments_broken
        if broken:
            self.broken.append(message_id)
        if len(waiting) > MOST_OPEN:
            self.close()

    def result(self, session: bytes, message_id: int, name: bytes) -> None:
        """A message holds the result of a call."""
        if self._open.pop((session, name.decode("utf-8", "replace")), None) is None:
            self.strays.append(message_id)

    def close(self) -> None:
        """What still waits becomes a suspect."""
        self.unanswered.extend(sorted(set(self._open.values())))
        self._open.clear()


def _read_slowly(encoded: bytes) -> Calls | None:
    try:
        parsed = json.loads(encoded.decode())
        inner = json.loads(parsed) if isinstance(parsed, str) else parsed
    except (ValueError, RecursionError):
        return None
    count = len(parsed) if isinstance(parsed, list) else 1
    calls = list(_lenient(inner)) if isinstance(inner, list) else []
    return Calls(count, calls, sent=isinstance(parsed, list))


def _lenient(calls: list[Any]) -> Iterator[Call]:
    for call in calls:
        if isinstance(call, dict):
            function = call.get("function")
            asked = (
                Function(function.get("name"), function.get("arguments"))
                if isinstance(function, dict)
                else None
            )
            yield Call(call.get("id"), call.get("call_id"), asked)


def _is_object(arguments: str) -> bool:
    try:
        _OBJECT.decode(arguments)
    except (msgspec.MsgspecError, UnicodeEncodeError, RecursionError):
        try:
            return isinstance(json.loads(arguments), dict)
        except (ValueError, RecursionError):
            return False
    return True


_LIST = msgspec.json.Decoder(list[Call])
_OBJECT = msgspec.json.Decoder(dict[str, Any])
