"""The statements that add very many healthy sessions and messages; both engines run them alike."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tests.shapes.engines import Step
from tests.shapes.healthy import BASE

TEXT = " ".join(
    f"{('read', 'write', 'note', 'plan', 'test')[n % 5]}{n * 7919 % 9973} item{n * 31 % 997}"
    for n in range(4000)
)
"""What contents are cut from, about 56,000 letters; bulk contents start at different places of it."""

SESSION_COLUMNS = {
    "id": "strftime('%Y%m%d_%H%M%S', :base + n.i, 'unixepoch') || printf('_%06x', n.i)",
    "source": "'cli'",
    "started_at": "CAST(:base + n.i AS REAL)",
    "message_count": ":messages",
    "tool_call_count": "(:messages + 1) / 4",
    "last_activity_at": "CAST(:base + n.i + :messages AS REAL)",
    "profile_name": "'default'",
}

CONTENT = "substr(:text, 1 + n.i * 37 % max(1, length(:text) - :bytes), :bytes)"

MESSAGE_COLUMNS = {
    "id": ":after + 1 + n.i",
    "session_id": (
        "strftime('%Y%m%d_%H%M%S', :base + n.i / :messages, 'unixepoch') || printf('_%06x', n.i / :messages)"
    ),
    "role": "CASE n.i % :messages % 4 WHEN 0 THEN 'user' WHEN 2 THEN 'tool' ELSE 'assistant' END",
    "content": (
        f"CASE WHEN :nul > 0 AND n.i % max(1, :nul) = 0 THEN char(0) || 'json:' || "
        f"json_array(json_object('type', 'text', 'text', {CONTENT})) ELSE {CONTENT} END"
    ),
    "timestamp": "CAST(:base + n.i / :messages + n.i % :messages AS REAL)",
    "tool_calls": (
        "CASE WHEN n.i % :messages % 4 = 1 AND n.i % :messages + 1 < :messages THEN json_array(json_object("
        "'id', 'call_' || n.i, 'type', 'function', "
        "'function', json_object('name', 'read_file', 'arguments', '{}'))) END"
    ),
    "tool_call_id": "CASE WHEN n.i % :messages % 4 = 2 THEN 'call_' || (n.i - 1) END",
    "tool_name": "CASE WHEN n.i % :messages % 4 = 2 THEN 'read_file' END",
    "display_identity": "CAST(printf('%032d', n.i) AS BLOB)",
    "display_order": ":after + 1 + n.i",
    "message_uid": "printf('%032x', n.i)",
}

INDEXES = ("messages_fts", "messages_fts_trigram")

INDEX_BUFFER = 16 * 1024 * 1024
"""Bytes of new index entries held in memory before they are written."""


@dataclass(frozen=True, slots=True)
class Bulk:
    """How much to add: `messages` to each session, numbered after `after`; each `nul_every`th has parts."""

    sessions: int
    messages: int
    content_bytes: int
    nul_every: int
    after: int


def bulk_steps(columns: Mapping[str, set[str]], bulk: Bulk) -> list[Step]:
    """The steps for many sessions that start one second apart, far from those of `fill`.

    The file's own triggers feed the search indexes, for the time through a larger buffer than usual.
    """
    if not 0 < bulk.content_bytes <= len(TEXT):
        raise ValueError(f"content_bytes is 1 to {len(TEXT)}")
    common = {"base": BASE + 50_000_000, "messages": bulk.messages}
    told = common | {"text": TEXT, "bytes": bulk.content_bytes, "nul": bulk.nul_every, "after": bulk.after}
    steps = [Step("PRAGMA cache_size = -65536", [()])]
    steps += [
        Step(f"INSERT INTO {name} ({name}, rank) VALUES ('hashsize', {INDEX_BUFFER})", [()])
        for name in INDEXES
    ]
    steps += [
        Step("BEGIN", [()]),
        Step(_insert("sessions", SESSION_COLUMNS, columns["sessions"]), [common | {"count": bulk.sessions}]),
        Step(
            _insert("messages", MESSAGE_COLUMNS, columns["messages"]),
            [told | {"count": bulk.sessions * bulk.messages}],
        ),
        Step("COMMIT", [()]),
    ]
    return steps + [Step(f"DELETE FROM {name}_config WHERE k = 'hashsize'", [()]) for name in INDEXES]


def _insert(table: str, values: Mapping[str, str], known: set[str]) -> str:
    kept = {name: text for name, text in values.items() if name in known}
    count = "n (i) AS (SELECT 0 UNION ALL SELECT n.i + 1 FROM n WHERE n.i + 1 < :count)"
    names, texts = ", ".join(kept), ", ".join(kept.values())
    return f"WITH RECURSIVE {count} INSERT INTO {table} ({names}) SELECT {texts} FROM n"
