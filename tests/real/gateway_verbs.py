"""Keep routes, bindings, goals, hand-offs, locks and leases as agents do; only by public calls."""

from __future__ import annotations

import json
import os
import time
from typing import Any

from tests.real.released import Released


def route(store: Released, session_key: str, session_id: str, scope: str = "") -> Any:
    """Save the routing entry of a chat as the gateway's index does."""
    entry = {"session_key": session_key, "session_id": session_id, "platform": "telegram", "chat_type": "dm"}
    return store.call(
        "save_gateway_routing_entry", session_key=session_key, entry_json=json.dumps(entry), scope=scope
    )


def bind(
    store: Released, session_id: str, chat_id: str, thread_id: str, session_key: str, user_id: str = "7"
) -> Any:
    """Bind a Telegram topic to a session, its topic mode switched on first."""
    store.call("enable_telegram_topic_mode", chat_id=chat_id, user_id=user_id)
    names = {"chat_id": chat_id, "thread_id": thread_id, "user_id": user_id, "session_key": session_key}
    return store.call("bind_telegram_topic", session_id=session_id, **names)


def goal(store: Released, session_id: str, status: str = "active") -> Any:
    """Keep a goal for a session, as the goal command does."""
    value = {"goal": "finish", "status": status, "turns_used": 1, "max_turns": 20, "created_at": time.time()}
    return store.call("set_meta", key=f"goal:{session_id}", value=json.dumps(value))


def lock(store: Released, session_id: str, holder: str | None = None, ttl: float = 300.0) -> Any:
    """Take the compression lock; the default holder is this process, in the released format."""
    name = holder or f"pid={os.getpid()}:tid=1:agent=a1:nonce=0badc0de"
    return store.call("try_acquire_compression_lock", session_id=session_id, holder=name, ttl_seconds=ttl)


def lease(store: Released, session_id: str, holder: str | None = None, ttl: float = 300.0) -> Any:
    """Take the turn lease of the conversation a session belongs to."""
    name = holder or f"pid={os.getpid()}:turn=t1"
    return store.call("try_acquire_session_turn_lease", session_id=session_id, holder=name, ttl_seconds=ttl)


def handoff(store: Released, session_id: str, platform: str = "telegram", outcome: str = "completed") -> Any:
    """Take a hand-off as far as pending, running, completed or failed."""
    result = store.call("request_handoff", session_id=session_id, platform=platform)
    if outcome != "pending":
        store.call("claim_handoff", session_id=session_id)
    if outcome == "completed":
        store.call("complete_handoff", session_id=session_id)
    if outcome == "failed":
        store.call("fail_handoff", session_id=session_id, error="no route")
    return result
