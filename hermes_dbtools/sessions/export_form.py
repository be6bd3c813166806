"""Turn sessions into the bytes of an export, piece by piece with flat memory; writes no file.

The same rows give the same bytes, so an export can be compared with the store it came from. A line of `jsonl` is
what upstream's own export writes and its import reads: the session's columns with `messages` in it, content and
tool calls as JSON where the store keeps JSON (`export_session`, `get_messages`).
"""

from __future__ import annotations

import json
from array import array
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal

import apsw
import msgspec

from .. import queries
from ..damage._declare import ScanContext, moment, text, whole
from ..documents import plain
from ..sizes import moment_text
from ..transcript_messages import NUL_JSON
from .listing import words

FILE = "sessions/export"
FORMAT = "hermes-dbtools/export"
AT_ONCE = 200
"""Messages that are in memory at the same time."""

USAGE = {"model_usage": "session_model_usage", "daily_usage": "session_daily_usage"}

PROMPTS = {"system_prompt_hash": "system_prompt", "tool_names": "tool_names_text"}
"""Columns that name a stored text by its hash, and where an export says the text."""

Format = Literal["jsonl", "json", "md"]
FORMATS: tuple[Format, ...] = ("jsonl", "json", "md")

_PLAIN = (str, int, type(None))
_encode = msgspec.json.Encoder().encode


def ordered(context: ScanContext, ids: Iterable[str]) -> tuple[str, ...]:
    """The sessions that have a row, in the order of an export: the oldest first."""
    rows = context.rows(FILE, "starts", {"ids": json.dumps(list(ids))})
    return tuple(str(text(row[0])) for row in rows)


def message_total(context: ScanContext, ids: Iterable[str]) -> int:
    """How many messages these sessions have."""
    return sum(whole(row[0]) for row in context.rows(FILE, "message-total", {"ids": json.dumps(list(ids))}))


def pieces(context: ScanContext, ids: Iterable[str], form: Format) -> Iterator[tuple[bytes, bool]]:
    """The bytes of an export in order, each piece with whether it is a message."""
    sessions = ordered(context, ids)
    if form == "md":
        for session_id in sessions:
            yield from _markdown(context, session_id)
        return
    if form == "json":
        yield b'{"format":' + _encode(FORMAT) + b',"format_version":1,"sessions":[', False
    for place, session_id in enumerate(sessions):
        if form == "json":
            yield b",\n" if place else b"\n", False
        yield from _object(context, session_id)
        if form == "jsonl":
            yield b"\n", False
    if form == "json":
        yield b"\n]}\n", False


def _object(context: ScanContext, session_id: str) -> Iterator[tuple[bytes, bool]]:
    row = _session(context, session_id)
    for name, table in USAGE.items():
        if context.shape.has(f"{table}.session_id"):
            row[name] = list(_usage(context, table, session_id))
    _add_prompts(context, row)
    head = _encode(row)
    yield head[:-1] + b',"messages":[', False
    comma = b""
    for message in _messages(context, session_id):
        yield comma + _encode(message), True
        comma = b","
    yield b"]}", False


def _markdown(context: ScanContext, session_id: str) -> Iterator[tuple[bytes, bool]]:
    row = _session(context, session_id)
    title = words(row.get("title")) or session_id
    began = moment(row.get("started_at"))
    facts = [f"session {session_id}", f"source {words(row.get('source'))}"]
    facts += [f"started {moment_text(began)}"] if began is not None else []
    facts += [f"parent {words(row['parent_session_id'])}"] if row.get("parent_session_id") else []
    lines = [f"# {_heading(title)}", "", " · ".join(_heading(fact) for fact in facts), "", ""]
    yield "\n".join(lines).encode("utf-8", "replace"), False
    for message in _messages(context, session_id):
        at = moment(message.get("timestamp"))
        who = words(message.get("role")) + (
            f" ({words(message['tool_name'])})" if message.get("tool_name") else ""
        )
        told = [f"## {_heading(who)}" + (f" · {moment_text(at)}" if at is not None else ""), ""]
        if message.get("active") == 0:
            told += ["*not in the live context*", ""]
        told += [*_texts(message.get("content")), *_called(message.get("tool_calls"))]
        yield ("\n".join(told) + "\n\n").encode("utf-8", "replace"), True


def _texts(content: Any) -> list[str]:
    if isinstance(content, list):
        parts = [part.get("text") if isinstance(part, dict) else part for part in content]
        return [part if isinstance(part, str) else "*[no text]*" for part in parts]
    if content is None or content == "":
        return []
    return [content if isinstance(content, str) else json.dumps(content)]


def _called(calls: Any) -> list[str]:
    told = []
    for call in calls if isinstance(calls, list) else []:
        function = call.get("function") if isinstance(call, dict) else None
        if isinstance(function, dict):
            told.append(f"- calls `{function.get('name')}` with `{function.get('arguments')}`")
    return told


def _session(context: ScanContext, session_id: str) -> dict[str, Any]:
    columns = tuple(context.shape.tables["sessions"].columns)
    sql = queries.statement(FILE, "session").replace("{values}", _as_bytes(context, "sessions"))
    for row in context.connection.execute(sql, {"id": session_id}):
        return {name: plain(text(value)) for name, value in zip(columns, row, strict=True)}
    return {"id": session_id}


def _add_prompts(context: ScanContext, row: dict[str, Any]) -> None:
    """The texts that newer stores keep once for many sessions: a delete may remove them with the last of these."""
    for column, place in PROMPTS.items():
        named = row.get(column)
        if isinstance(named, str) and named and not row.get(place):
            for (prompt,) in context.rows(FILE, "prompt", {"hash": named}):
                row[place] = plain(text(prompt))


def _usage(context: ScanContext, table: str, session_id: str) -> Iterator[dict[str, Any]]:
    found = context.shape.tables[table]
    sql = queries.statement(FILE, "usage").replace("{values}", _as_bytes(context, table))
    sql = queries.fill(sql, table=table, order=found.primary_key or tuple(found.columns))
    for row in context.connection.execute(sql, {"id": session_id}):
        yield {name: plain(text(value)) for name, value in zip(found.columns, row, strict=True)}


def _messages(context: ScanContext, session_id: str) -> Iterator[dict[str, Any]]:
    """Every message of a session as a line of an export has it."""
    ids = array("q", (whole(key) for (key,) in context.rows(FILE, "message-ids", {"id": session_id})))
    columns = tuple(context.shape.tables["messages"].columns)
    for first in range(0, len(ids), AT_ONCE):
        for row in _rows(context, ids[first : first + AT_ONCE]):
            yield _decoded(dict(zip(columns, row, strict=True)))


def _rows(context: ScanContext, ids: array[int]) -> list[tuple[Any, ...]]:
    template = queries.statement(FILE, "messages")
    try:
        sql = template.replace("{values}", _as_they_are(context, "messages"))
        return context.connection.execute(sql, {"ids": apsw.carray(ids)}).fetchall()
    except UnicodeDecodeError:  # a text of one of them is no UTF-8: as bytes, which costs more
        sql = template.replace("{values}", _as_bytes(context, "messages"))
        found = context.connection.execute(sql, {"ids": apsw.carray(ids)}).fetchall()
        return [tuple(text(value) for value in row) for row in found]


def _decoded(message: dict[str, Any]) -> dict[str, Any]:
    for name, value in message.items():
        if value.__class__ not in _PLAIN:
            message[name] = plain(value)
    content = message.get("content")
    if isinstance(content, str) and content.startswith(NUL_JSON):
        message["content"] = _json(content.removeprefix(NUL_JSON), content)
    calls = message.get("tool_calls")
    if isinstance(calls, str):
        message["tool_calls"] = _json(calls, calls)
    return message


def _json(encoded: str, otherwise: str) -> Any:
    try:
        return msgspec.json.decode(encoded)
    except (msgspec.DecodeError, RecursionError, UnicodeEncodeError):
        return otherwise


def _as_they_are(context: ScanContext, table: str) -> str:
    return ", ".join(queries.quote(name) for name in context.shape.tables[table].columns)


def _as_bytes(context: ScanContext, table: str) -> str:
    found: Mapping[str, object] = context.shape.tables[table].columns
    quoted = (queries.quote(name) for name in found)
    return ", ".join(f"CASE typeof({c}) WHEN 'text' THEN CAST({c} AS BLOB) ELSE {c} END" for c in quoted)


def _heading(line: str) -> str:
    return " ".join(line.split())
