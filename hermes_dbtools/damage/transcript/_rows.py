"""Look again at suspects of the content pass, session by session; holds ids, and the calls of one session at a time."""

from __future__ import annotations

import json
from array import array
from collections.abc import Iterable, Iterator, Mapping

from ...model import Remedy, Safety, Statement, Value
from .._declare import Damage, ScanContext, printable, text, whole

CHUNK = 500
"""Messages asked for at once; their number never enters the SQL."""

ROWS = "transcript/rows"


def chunks(ids: array[int]) -> Iterator[str]:
    """The ids in pieces, each as a JSON array."""
    for first in range(0, len(ids), CHUNK):
        yield json.dumps(ids[first : first + CHUNK].tolist())


def by_session(context: ScanContext, ids: array[int]) -> list[tuple[Value, array[int]]]:
    """The messages of each session, in order; those of sessions that have no row are left to HDB201."""
    groups: dict[Value, array[int]] = {}
    for wanted in chunks(array("q", sorted(set(ids)))):
        for message_id, session in context.rows(ROWS, "sessions-of", {"ids": wanted}):
            groups.setdefault(text(session), array("q")).append(whole(message_id))
    return sorted(groups.items(), key=lambda item: printable(item[0]))


def texts(context: ScanContext, ids: array[int]) -> Iterator[tuple[int, bytes | None, bytes | None]]:
    """Id, calls and answered call of each message."""
    for wanted in chunks(ids):
        for message_id, calls, answered in context.rows(ROWS, "texts-of", {"ids": wanted}):
            yield whole(message_id), _bytes(calls), _bytes(answered)


def lineage(context: ScanContext, session: Value) -> list[Value]:
    """The sessions that this one came from and those that came from it, without itself."""
    return [text(other) for (other,) in context.rows(ROWS, "lineage", {"session": session})]


def last_spoken(context: ScanContext, session: Value) -> int:
    """The id of the last active message that is not a result; 0 where there is none."""
    return next((whole(found) for (found,) in context.rows(ROWS, "last-spoken", {"session": session})), 0)


def set_aside(damage: Damage, context: ScanContext, session: Value, ids: Iterable[int], title: str) -> Remedy:
    """The answer that takes messages out of the live context and counts the session again, where the file can."""
    if not context.has("messages.active"):
        return Remedy("set-aside", Safety.CHOICE, refused="messages of this release cannot be set aside")
    listed = sorted(ids)
    bindings: Mapping[str, Value] = {"session": session, "ids": json.dumps(listed)}
    statements = (
        Statement("set-aside", bindings, len(listed), "messages", "update"),
        Statement("recount", {"session": session}, 1, "sessions", "update"),
    )
    step = damage.step(
        key=printable(session), answer="set-aside", title=title, statements=statements, session_ids=(session,)
    )
    return Remedy("set-aside", Safety.CHOICE, step)


def _bytes(value: Value) -> bytes | None:
    return value if isinstance(value, bytes) else None
