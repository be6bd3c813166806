"""A message is empty, or is a placeholder that the agent wrote for itself

What it means
-------------
Providers refuse a conversation with an empty message before its end, every time it is sent. A placeholder that stood
for an empty answer (`(empty)`, or the request to go on that follows it) is read by the model as if it had been said, and
it answers empty again.

Why it happens
--------------
The connection broke before the first character of an answer was there, or an older release stored the scaffolding of
its own retries. Public reports tell of conversations that were poisoned by such rows until they were taken out by hand.

Repair
------
Nothing is changed unless it is chosen. `set-aside` makes the messages inactive, as a rewind does: they are kept and no
longer sent.

Safety
------
Choice. Not reported: an empty message at the very end, which is legal and may be under way; one that calls tools,
has a reasoning, an image, items of its provider or text of its own for the provider; one that is shown and not sent; one
that is not active. Release 0.20 and newer put a text in the place of empty messages in what they send.
"""

from __future__ import annotations

import json
from array import array
from collections.abc import Iterator
from typing import Any

from ...model import Finding, Remedy, Safety, Severity, Value
from ...sizes import counted
from .._declare import ScanContext, declare, printable, whole
from ._rows import by_session, chunks, set_aside

EMPTY_ANSWER = b"(empty)"
GO_ON = b"You just executed tool calls but returned an empty response."
"""What upstream says to its model after an empty answer (`agent/conversation_loop.py`)."""


def _find(context: ScanContext) -> Iterator[Finding]:
    for session, ids in by_session(context, context.sweep.run(context).rows("sentinel")):
        empty, sentinels = _look(context, ids)
        if empty:
            end = next((whole(last) for (last,) in DAMAGE.rows(context, "end", {"session": session})), 0)
            empty = [message_id for message_id in empty if message_id != end]
        if empty or sentinels:
            yield _finding(context, session, empty, sentinels)


def _look(context: ScanContext, ids: array[int]) -> tuple[list[int], list[int]]:
    """The messages among these that are empty, and those that are placeholders."""
    empty: list[int] = []
    sentinels: list[int] = []
    for wanted in chunks(ids):
        for message_id, assistant, content, carries in DAMAGE.rows(context, "suspects", {"ids": wanted}):
            said = content if isinstance(content, bytes) else b""
            if said.strip() == EMPTY_ANSWER if assistant else said.startswith(GO_ON):
                sentinels.append(whole(message_id))
            elif not carries and not _says(said):
                empty.append(whole(message_id))
    return empty, sentinels


def _says(content: bytes) -> bool:
    """Whether a content says or shows anything."""
    if not content.startswith(b"\0json:"):
        return bool(content.strip())
    try:
        parsed = json.loads(content.removeprefix(b"\0json:").decode())
    except (ValueError, RecursionError):
        return True
    return any(map(_part_says, parsed)) if isinstance(parsed, list) else bool(parsed)


def _part_says(part: Any) -> bool:
    if isinstance(part, dict) and part.get("type") == "text":
        said = part.get("text")
        return isinstance(said, str) and bool(said.strip())
    return bool(part)


def _finding(context: ScanContext, session: Value, empty: list[int], sentinels: list[int]) -> Finding:
    ids = sorted((*empty, *sentinels))
    title = f"set aside {counted(len(ids), 'empty or placeholder message')} of {printable(session)}"
    remedy = set_aside(DAMAGE, context, session, ids, title)
    return DAMAGE.finding(
        table="messages",
        key=session,
        message=f"{_said(empty, sentinels)} sent to the model",
        evidence={
            "messages": len(ids),
            "empty": len(empty),
            "placeholders": len(sentinels),
            "first_id": ids[0],
            "last_id": ids[-1],
        },
        session_ids=(session,),
        remedies=(Remedy("report", Safety.CHOICE), remedy),
    )


def _said(empty: list[int], sentinels: list[int]) -> str:
    counts = [
        counted(len(ids), noun) for ids, noun in ((empty, "empty message"), (sentinels, "placeholder")) if ids
    ]
    return f"{' and '.join(counts)} {'is' if len(empty) + len(sentinels) == 1 else 'are'}"


DAMAGE = declare(
    __name__,
    __doc__,
    code="HDB606",
    severity=Severity.NOTE,
    safety=Safety.CHOICE,
    answers=("report", "set-aside"),
    needs=("messages.reasoning_content",),
    reads=("messages", "sessions"),
    noun=("session", "sessions"),
    sums=(("messages", "messages"),),
    find=_find,
)
