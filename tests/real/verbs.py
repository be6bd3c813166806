"""The requests a store process answers: one table of names, and the verbs about sessions and their messages.

A verb takes the open store first and named arguments after it, and returns what JSON can hold. Arguments that
a release does not know (a working directory in 0.13.0, say) are left out; calls it lacks raise Unsupported.
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Callable
from typing import Any

from tests.real.gateway_verbs import bind, goal, handoff, lease, lock, route
from tests.real.lineage_verbs import branch, compress, delegate, fork
from tests.real.raw_verbs import integrity, journal_mode, sql, sql_close, sql_many
from tests.real.released import Released

EVERYTHING = 1_000_000
PNG = (
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGA"
    "WjR9awAAAABJRU5ErkJggg=="
)
"""The smallest picture: one pixel."""


def ping(store: Released) -> dict[str, Any]:
    """Who answers, and on what."""
    return {
        "release": store.release,
        "pid": os.getpid(),
        "sqlite": sqlite3.sqlite_version,
        "journal_mode": journal_mode(store),
        "now": time.time(),
        "methods": store.methods(),
    }


def clock(store: Released, offset: float = 0.0, at: float | None = None, step: float = 0.001) -> float:
    """Move the time the released code sees; see Clock.set."""
    store.clock.set(offset=offset, at=at, step=step)
    return time.time()


def call(store: Released, method: str, arguments: dict[str, Any] | None = None) -> Any:
    """Call any public method by its own name and arguments."""
    return store.call(method, **(arguments or {}))


def create(
    store: Released,
    session_id: str,
    source: str = "cli",
    parent: str | None = None,
    title: str | None = None,
    **more: Any,
) -> str:
    """Create a session; `more` is what the release's create_session takes, the rest is left out."""
    arguments = {"session_id": session_id, "source": source, "parent_session_id": parent, **more}
    store.call("create_session", session_id=session_id, source=source, **_rest(store, arguments))
    if title is not None:
        store.call("set_session_title", session_id=session_id, title=title)
    return session_id


def append(store: Released, session_id: str, role: str = "user", content: Any = None, **more: Any) -> Any:
    """Append one message; returns its id. A list as content is what the store keeps as NUL-`json:`."""
    return store.call_known("append_message", session_id=session_id, role=role, content=content, **more)


def image(store: Released, session_id: str, text: str, url: str = PNG) -> Any:
    """Append a user message of a text part and an inline image."""
    parts = [{"type": "text", "text": text}, {"type": "image_url", "image_url": {"url": url}}]
    return append(store, session_id, "user", parts)


def tool_turn(
    store: Released,
    session_id: str,
    call_ids: list[str],
    name: str = "terminal",
    arguments: str = '{"command": "true"}',
    result: str = "done",
) -> list[Any]:
    """Append an assistant row that makes the calls and one tool row for each; returns the ids."""
    calls = [
        {
            "id": call_id,
            "call_id": call_id,
            "type": "function",
            "function": {"name": name, "arguments": arguments},
        }
        for call_id in call_ids
    ]
    rows = [append(store, session_id, "assistant", "", tool_calls=calls, finish_reason="tool_calls")]
    for call_id in call_ids:
        rows.append(append(store, session_id, "tool", result, tool_name=name, tool_call_id=call_id))
    return rows


def append_until_told(
    store: Released, session_id: str, text: str = "beside", pause: float = 0.0, limit: int = EVERYTHING
) -> dict[str, Any]:
    """Append until another request line arrives, which is left for the loop; says how many and how slow."""
    appended, slowest, errors = 0, 0.0, []
    while appended < limit and not store.lines.waiting():
        began = time.perf_counter()
        try:
            append(store, session_id, "user", f"{text} {appended}")
            appended += 1
        except Exception as problem:  # noqa: BLE001 - counted and handed back, the test decides
            errors.append(f"{type(problem).__name__}: {problem}")
        slowest = max(slowest, time.perf_counter() - began)
        time.sleep(pause)
    return {"appended": appended, "slowest": slowest, "errors": errors}


def rewind(store: Released, session_id: str, message_id: int) -> Any:
    """Take back a user message and all after it."""
    return store.call("rewind_to_message", session_id=session_id, target_message_id=message_id)


def restore(store: Released, session_id: str, message_id: int) -> Any:
    """Make every inactive message from an id on active again."""
    return store.call("restore_rewound", session_id=session_id, since_message_id=message_id)


def listed(store: Released, **how: Any) -> list[Any]:
    """Every row list_sessions_rich shows, in its order."""
    return list(store.call("list_sessions_rich", **{"limit": EVERYTHING, **how}))


def messages(store: Released, session_id: str, include_inactive: bool = False) -> Any:
    """The rows get_messages gives."""
    more = {"include_inactive": include_inactive or None}
    return store.call_known("get_messages", session_id=session_id, **more)


def resume(store: Released, session_id: str) -> dict[str, Any]:
    """What resuming a session ends up with: the id followed to its tip, and that tip's conversation."""
    tip = store.call("resolve_resume_session_id", session_id=session_id)
    return {"session_id": tip, "messages": store.call("get_messages_as_conversation", session_id=tip)}


def search(store: Released, query: str, limit: int = 200) -> Any:
    """The rows search_messages finds."""
    return store.call("search_messages", query=query, limit=limit)


def close(store: Released) -> None:
    """Close the store; the process and its raw connections stay usable."""
    store.close()


def reopen_store(store: Released, journal_mode: str | None = None) -> None:
    """Close the store where it is open, and open it again."""
    store.close()
    store.open(journal_mode=journal_mode)


def _rest(store: Released, arguments: dict[str, Any]) -> dict[str, Any]:
    known = store.known("create_session", arguments)
    return {name: value for name, value in known.items() if name not in ("session_id", "source")}


def _passed(method: str) -> Callable[..., Any]:
    """A verb that is one public method under a shorter name."""

    def verb(store: Released, **arguments: Any) -> Any:
        return store.call(method, **arguments)

    return verb


VERBS: dict[str, Callable[..., Any]] = {
    verb.__name__: verb
    for verb in (
        *(
            append,
            append_until_told,
            bind,
            branch,
            call,
            clock,
            close,
            compress,
            create,
            delegate,
            fork,
            goal,
        ),
        *(
            handoff,
            image,
            integrity,
            journal_mode,
            lease,
            listed,
            lock,
            messages,
            ping,
            reopen_store,
            restore,
        ),
        *(resume, rewind, route, search, sql, sql_close, sql_many, tool_turn),
    )
} | {
    "archive": _passed("set_session_archived"),
    "auxiliary_usage": _passed("record_auxiliary_usage"),
    "clear": _passed("clear_messages"),
    "conversation": _passed("get_messages_as_conversation"),
    "delete": _passed("delete_session"),
    "delete_empty": _passed("delete_empty_sessions"),
    "delete_many": _passed("delete_sessions"),
    "end": _passed("end_session"),
    "export": _passed("export_session"),
    "finalize_compressions": _passed("finalize_orphaned_compression_sessions"),
    "import_sessions": _passed("import_sessions"),
    "prune": _passed("prune_sessions"),
    "prune_ghosts": _passed("prune_empty_ghost_sessions"),
    "reopen": _passed("reopen_session"),
    "replace": _passed("replace_messages"),
    "session": _passed("get_session"),
    "title": _passed("set_session_title"),
    "unlock": _passed("release_compression_lock"),
    "usage": _passed("update_token_counts"),
}
