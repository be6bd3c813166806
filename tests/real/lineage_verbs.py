"""Branch, delegate and compress as the agent of each release does it; only by the store's public calls."""

from __future__ import annotations

import json
import os
from typing import Any

from tests.real.released import Released

MARKED_BRANCHES = (0, 16)
"""The first release whose /branch writes `_branched_from`; before it only the parent's end reason tells."""
MARKED_DELEGATES = (0, 17)
"""The first release whose sub-agents have the source subagent and the marker `_delegate_from`."""


def branch(store: Released, parent: str, child: str, form: str = "cli", title: str | None = None) -> str:
    """Branch a session: form `cli` ends the parent as branched, form `tui` leaves it live; returns the title.

    A marked release writes `_branched_from` in both forms, an older one in neither.
    """
    history = _conversation(store, parent)
    name = title or _next_title(store, parent, "branch")
    if form == "cli":
        store.call("end_session", session_id=parent, end_reason="branched")
    marker = {"_branched_from": parent} if store.version >= MARKED_BRANCHES else {}
    config = {"max_iterations": 90, **marker} if form == "cli" else marker
    _child(store, parent, child, "cli" if form == "cli" else "tui", config)
    for message in history:
        kept = {"content": message.get("content")}
        if form == "cli":
            kept |= {
                key: message.get(key) for key in ("tool_name", "tool_calls", "tool_call_id", "reasoning")
            }
        store.call_known("append_message", session_id=child, role=message["role"], **kept)
    store.call("set_session_title", session_id=child, title=name)
    return name


def fork(store: Released, parent: str, child: str, title: str | None = None) -> str:
    """Fork a session as the API server does since 0.15: the parent ended as branched, the child unmarked."""
    store.call("end_session", session_id=parent, end_reason="branched")
    _child(store, parent, child, "api_server", {})
    store.call("replace_messages", session_id=child, messages=store.call("get_messages", session_id=parent))
    name = title or _next_title(store, parent, "fork")
    store.call("set_session_title", session_id=child, title=name)
    return name


def delegate(
    store: Released,
    parent: str,
    child: str,
    task: str = "look it up",
    answer: str = "found",
    end: bool = True,
) -> str:
    """Run a sub-agent: a child session with a task and an answer, ended as its agent closes it if `end`."""
    marked = store.version >= MARKED_DELEGATES
    source = "subagent" if marked else store.call("get_session", session_id=parent)["source"]
    _child(store, parent, child, source, {"_delegate_from": parent} if marked else {})
    store.call("append_message", session_id=child, role="user", content=task)
    store.call("append_message", session_id=child, role="assistant", content=answer)
    if end:
        store.call("end_session", session_id=child, end_reason="agent_close")
    return child


def compress(
    store: Released, session_id: str, child: str | None = None, summary: str = "so far", keep: int = 2
) -> dict[str, Any]:
    """Compress a session: in place without `child`, else by rotation to it; the last `keep` messages stay.

    Raises Unsupported for a compression in place before 0.18.
    """
    tail = _conversation(store, session_id)[-keep:] if keep else []
    compacted = [{"role": "user", "content": f"[CONTEXT COMPACTION - REFERENCE ONLY] {summary}"}, *tail]
    if child is None:
        return {"active": _in_place(store, session_id, compacted)}
    name = _next_title(store, session_id, None)
    if store.has("publish_compression_child"):
        _publish(store, session_id, child, compacted)
    else:
        _rotate(store, session_id, child, compacted)
    if name is not None:
        store.call("set_session_title", session_id=child, title=name)
    return {"child": child, "title": name}


def _in_place(store: Released, session_id: str, compacted: list[dict[str, Any]]) -> Any:
    holder = _holder()
    arguments: dict[str, Any] = {"session_id": session_id, "compacted_messages": compacted}
    store.call("try_acquire_compression_lock", session_id=session_id, holder=holder)
    if store.has("get_active_message_watermark"):
        arguments["watermark"] = store.call("get_active_message_watermark", session_id=session_id)
        arguments["lock_holder"] = holder
    active = store.call("archive_and_compact", **arguments)
    store.call("release_compression_lock", session_id=session_id, holder=holder)
    return active


def _rotate(store: Released, session_id: str, child: str, compacted: list[dict[str, Any]]) -> None:
    parent = store.call("get_session", session_id=session_id)
    store.call("end_session", session_id=session_id, end_reason="compression")
    _child(store, session_id, child, parent["source"], _inherited(parent))
    store.call("update_system_prompt", session_id=child, system_prompt="You are an agent.")
    for message in compacted:
        store.call_known("append_message", session_id=child, **{**message, "timestamp": None})


def _publish(store: Released, session_id: str, child: str, compacted: list[dict[str, Any]]) -> None:
    holder = _holder()
    parent = store.call("get_session", session_id=session_id)
    store.call("try_acquire_compression_lock", session_id=session_id, holder=holder)
    store.call(
        "publish_compression_child",
        parent_session_id=session_id,
        child_session_id=child,
        source=parent["source"],
        messages=compacted,
        model="small-model",
        model_config=_inherited(parent) or None,
        system_prompt="You are an agent.",
        compression_lock_holder=holder,
        watermark=store.call("get_active_message_watermark", session_id=session_id),
    )
    store.call("release_compression_lock", session_id=session_id, holder=holder)


def _inherited(parent: dict[str, Any]) -> dict[str, Any]:
    """Return what a continuation's agent was started with: the delegate marker outlives a rotation."""
    config = json.loads(parent["model_config"] or "{}")
    return {key: value for key, value in config.items() if key == "_delegate_from"}


def _child(store: Released, parent: str, child: str, source: str, config: dict[str, Any]) -> None:
    arguments = {"model": "small-model", "model_config": config or None, "parent_session_id": parent}
    store.call("create_session", session_id=child, source=source, **store.known("create_session", arguments))


def _conversation(store: Released, session_id: str) -> list[dict[str, Any]]:
    return list(store.call("get_messages_as_conversation", session_id=session_id))


def _next_title(store: Released, session_id: str, untitled: str | None) -> Any:
    base = store.call("get_session_title", session_id=session_id) or untitled
    return store.call("get_next_title_in_lineage", base_title=base) if base else None


def _holder() -> str:
    return f"pid={os.getpid()}:tid=1:agent=a1:nonce=0badc0de"
