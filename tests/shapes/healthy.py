"""Healthy rows for an empty store of any shape; never touches a file and never uses chance or the clock."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

BASE = 1_780_000_000
"""Epoch seconds at which the first session starts."""

HOUR = 3600
PROMPT = "You are a careful assistant in a test."
TOOL_NAMES = '["read_file", "search_files"]'
CHAT = "agent:main:telegram:dm:1001"

Values = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Filled:
    """The session ids that `fill` made. The parent of branch and delegate is the first plain session."""

    plain: tuple[str, ...]
    branch: str
    delegate: str
    compressed: str
    continuation: str
    gateway: str

    @property
    def all(self) -> tuple[str, ...]:
        """Every session id, parents before children."""
        return (*self.plain, self.branch, self.delegate, self.compressed, self.continuation, self.gateway)


@dataclass(slots=True)
class Rows:
    """Rows in the order of insertion, cut to the columns the file has."""

    columns: Mapping[str, set[str]]
    filled: Filled
    rows: list[tuple[str, Values]] = field(default_factory=list)

    def add(self, table: str, **values: Any) -> None:
        """Add a row, unless the file has no such table; columns it lacks are left out."""
        known = self.columns.get(table)
        if known is not None:
            self.rows.append((table, {name: value for name, value in values.items() if name in known}))

    def has(self, table: str, column: str) -> bool:
        """Whether the file has the column."""
        return column in self.columns.get(table, ())

    def grouped(self) -> Iterator[tuple[str, tuple[str, ...], list[list[Any]]]]:
        """Tables with column names and values; neighbours of one table and the same columns together."""
        held: tuple[str, tuple[str, ...], list[list[Any]]] | None = None
        for table, values in self.rows:
            names = tuple(values)
            if held is not None and held[:2] == (table, names):
                held[2].append(list(values.values()))
                continue
            if held is not None:
                yield held
            held = (table, names, [list(values.values())])
        if held is not None:
            yield held


def session_id(number: int) -> str:
    """The id of the session that starts `number` hours after BASE."""
    started = datetime.fromtimestamp(BASE + number * HOUR, UTC)
    return f"{started:%Y%m%d_%H%M%S}_{hashlib.sha256(str(number).encode()).hexdigest()[:6]}"


def healthy(columns: Mapping[str, set[str]], sessions: int, messages: int) -> Rows:
    """All rows of a small healthy store with `sessions` plain sessions of `messages` messages each."""
    if sessions < 1:
        raise ValueError("a branch needs a session to leave from")
    ids = [session_id(number) for number in range(sessions + 5)]
    rows = Rows(columns, Filled(tuple(ids[:sessions]), *ids[sessions:]))
    for column, text in (("system_prompt_hash", PROMPT), ("tool_names", TOOL_NAMES)):
        if rows.has("sessions", column):
            rows.add("system_prompts", hash=_sha256(text), prompt=text)
    for number, name in enumerate(rows.filled.plain):
        _plain(rows, name, number, messages)
    _relatives(rows, sessions, messages)
    _gateway(rows, sessions + 4)
    _bystanders(rows)
    return rows


def _plain(rows: Rows, name: str, number: int, messages: int) -> None:
    said = _conversation(name, number, messages)
    if number == 0 and said:
        said[0]["content"] = "\0json:" + json.dumps([{"type": "text", "text": "What is on this picture?"}])
    closed: Values = {}
    if number == 0:
        closed = {"end_reason": "branched"}
    elif number % 2:
        closed = {"end_reason": "cli_close"}
    _session(rows, name, number, said, title=f"Plain session {number}", **closed)


def _relatives(rows: Rows, sessions: int, messages: int) -> None:
    filled, root = rows.filled, rows.filled.plain[0]
    # 0.13 wrote neither marker, 0.16 only that of branches
    branch = {"_branched_from": root} if rows.has("messages", "active") else {}
    delegate = {"_delegate_from": root} if rows.has("messages", "compacted") else {}
    told = _conversation(filled.branch, sessions, messages)
    _session(
        rows,
        filled.branch,
        sessions,
        told,
        parent_session_id=root,
        title="Branch",
        model_config=_json(branch),
    )
    told = _conversation(filled.delegate, sessions + 1, 2)
    child = {"source": "subagent", "parent_session_id": root, "model_config": _json(delegate)}
    _session(rows, filled.delegate, sessions + 1, told, end_reason="agent_close", **child)
    told = _conversation(filled.compressed, sessions + 2, messages)
    _session(rows, filled.compressed, sessions + 2, told, title="Long talk", end_reason="compression")
    told = _conversation(filled.continuation, sessions + 3, 3)
    told[0] |= {"content": "[CONTEXT COMPACTION] The talk so far.", "_compressed_summary": 1}
    _session(
        rows,
        filled.continuation,
        sessions + 3,
        told,
        title="Long talk #2",
        parent_session_id=filled.compressed,
    )


def _gateway(rows: Rows, number: int) -> None:
    name = rows.filled.gateway
    said = _conversation(name, number, 6)
    if rows.has("messages", "compacted"):
        said[0] |= {"active": 0, "compacted": 1}
        said[5] |= {"active": 0, "compacted": 1}
    peer = {
        "user_id": "1001",
        "chat_id": "1001",
        "chat_type": "dm",
        "session_key": CHAT,
        "display_name": "Test chat",
    }
    origin = {"platform": "telegram", "chat_id": "1001", "chat_type": "dm", "user_id": "1001"}
    ledger = {"runtime_revision": 1, "runtime_generation": 1}
    _session(rows, name, number, said, source="telegram", origin_json=_json(origin), **peer, **ledger)
    moment = datetime.fromtimestamp(BASE + number * HOUR, UTC).isoformat()
    entry: Values = {"session_key": CHAT, "session_id": name, "created_at": moment, "updated_at": moment}
    entry |= {"platform": "telegram", "chat_type": "dm", "suspended": False, "origin": origin}
    rows.add(
        "gateway_routing",
        scope="",
        session_key=CHAT,
        entry_json=_json(entry),
        updated_at=float(BASE + number * HOUR),
    )


def _session(rows: Rows, name: str, number: int, said: list[Values], **values: Any) -> None:
    started = float(BASE + number * HOUR)
    live = [message for message in said if message.get("active", 1)]
    calls = sum(len(json.loads(message["tool_calls"])) for message in live if message.get("tool_calls"))
    spoken = sum(message["role"] == "assistant" for message in said)
    spent = {"api_call_count": spoken, "input_tokens": 100 * spoken, "output_tokens": 10 * spoken}
    row: Values = {
        "id": name,
        "source": "cli",
        "model": "test-model",
        "model_config": "{}",
        "started_at": started,
    }
    row |= {
        "message_count": len(live),
        "tool_call_count": calls,
        "profile_name": "default",
        "created_source": "cli",
    }
    row |= {"last_activity_at": said[-1]["timestamp"] if said else started, "title_source": "derived"} | spent
    if rows.has("sessions", "system_prompt_hash"):
        row |= {"system_prompt_hash": _sha256(PROMPT), "tool_names": _sha256(TOOL_NAMES)}
    else:
        row["system_prompt"] = PROMPT
    if "end_reason" in values:
        row["ended_at"] = started + HOUR / 2
    rows.add("sessions", **(row | values))
    for place, message in enumerate(said):
        rows.add("messages", session_id=name, **_with_names(name, place, message))
    if spoken:
        _usage(rows, name, started, spent)


def _usage(rows: Rows, name: str, started: float, spent: Values) -> None:
    model = {"session_id": name, "model": "test-model", "first_seen": started, "last_seen": started + 600.0}
    rows.add("session_model_usage", **model, **spent)
    rows.add("session_model_usage", **model, task="title_generation", api_call_count=1, input_tokens=20)
    day = datetime.fromtimestamp(started, UTC).date().isoformat()
    rows.add("session_daily_usage", session_id=name, day=day, **spent)


def _conversation(name: str, number: int, messages: int) -> list[Values]:
    """Messages ten seconds apart: user, assistant that calls a tool, tool, assistant; no call stays open."""
    said: list[Values] = []
    for place in range(messages):
        row: Values = {"timestamp": BASE + number * HOUR + 10.0 * (place + 1)}
        turn, kind = divmod(place, 4)
        call = f"call_{hashlib.sha256(f'{name} {turn}'.encode()).hexdigest()[:12]}"
        if kind == 0:
            row |= {"role": "user", "content": f"Question {turn} of session {number}, please look it up."}
        elif kind == 1 and place + 1 < messages:
            function = {"name": "search_files", "arguments": _json({"pattern": f"answer {turn}"})}
            calls = [{"id": call, "type": "function", "function": function}]
            row |= {
                "role": "assistant",
                "content": "",
                "tool_calls": _json(calls),
                "finish_reason": "tool_calls",
            }
        elif kind == 2:
            row |= {
                "role": "tool",
                "content": f"Found {turn} lines.",
                "tool_call_id": call,
                "tool_name": "search_files",
            }
        else:
            row |= {"role": "assistant", "content": f"Answer {turn}: it is so.", "finish_reason": "stop"}
        said.append(row)
    return said


def _with_names(name: str, place: int, message: Values) -> Values:
    """The message with the names newer shapes give it; display_order is left to the file's own trigger."""
    parts = ("role", "content", "timestamp", "tool_call_id", "tool_calls", "tool_name")
    identity = hashlib.sha256(repr(tuple(message.get(part) for part in parts)).encode()).digest()
    named = message | {"display_identity": identity, "message_uid": _sha256(f"{name} {place}")[:32]}
    if "tool_calls" in message:
        named["tool_call_uids"] = _json(
            [_sha256(call["id"])[:32] for call in json.loads(message["tool_calls"])]
        )
    if "tool_call_id" in message:
        named["tool_call_uid"] = _sha256(message["tool_call_id"])[:32]
    return named


def _bystanders(rows: Rows) -> None:
    filled, moment = rows.filled, float(BASE)
    goal = {
        "goal": "Read the notes",
        "status": "active",
        "turns_used": 1,
        "max_turns": 20,
        "created_at": moment,
    }
    rows.add("state_meta", key=f"goal:{filled.plain[0]}", value=_json(goal))
    times = {
        "dispatched_at": moment,
        "completed_at": moment + 60,
        "updated_at": moment + 60,
        "delivered_at": moment + 61,
    }
    task = {"delegation_id": "deleg_0000abcd", "origin_session": "", "parent_session_id": filled.plain[0]}
    task |= {"origin_session_id": filled.plain[0], "state": "completed", "delivery_state": "delivered"}
    rows.add("async_delegations", **task, **times)
    rows.add("gateway_hygiene_state", session_key=CHAT, failure_streak=0)
    rows.add("conversation_generations", source="telegram", session_key=CHAT, generation=1)
    owner = {"owner_epoch": 1, "generation": 1, "status": "terminal"}
    admission: Values = {
        "admission_id": _sha256("admission")[:32],
        "request_id": "request-1",
        "principal_id": "test",
    }
    admission |= {
        "target_session_id": filled.gateway,
        "lineage_json": _json([filled.gateway]),
        "intent": "queue",
    }
    admission |= {"payload_json": "{}", "payload_digest": _sha256("{}"), "outcome": "completed"}
    rows.add("session_admissions", **admission, **owner)
    worker: Values = {
        "execution_id": "worker-1",
        "session_id": filled.gateway,
        "kind": "child",
        "last_sequence": 2,
    }
    rows.add("worker_executions", **worker, adoption_digest=_sha256("worker"), **owner)
    for sequence in (1, 2):
        receipt = {"sequence": sequence, "payload_digest": _sha256(str(sequence)), "result_json": "{}"}
        rows.add("worker_receipts", execution_id="worker-1", **receipt)


def _json(value: Any) -> str:
    return json.dumps(value)


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
