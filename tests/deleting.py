"""Homes with sessions to delete and rows that say who is live, for tests; deletes nothing itself."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from hermes_dbtools.home import Home
from hermes_dbtools.model import Deletion
from hermes_dbtools.sessions.api import delete_sessions
from tests.repairs import NOW, ROOT, SECOND, new_home
from tests.shapes.make import execute

LEASED = ("30", "31", "runtime", "media")
"""Shapes with turn leases."""

LEDGERS = ("runtime", "media")
"""Shapes with the runtime's ledger."""

TERMINAL = "gateway.terminal_"


def home_of(folder: Path, shape: str) -> Home:
    """A filled home, its rows made by the engine of the stores, with transcripts of two sessions."""
    home = new_home(folder, shape, engine="stdlib")
    home.sessions_dir.mkdir()
    for name in names_of(ROOT) + names_of(SECOND):
        (home.sessions_dir / name).write_text(f"of {name}", "utf-8")
    return home


def names_of(session_id: str) -> list[str]:
    return [
        f"{session_id}.json",
        f"{session_id}.jsonl",
        f"session_{session_id}.json",
        f"request_dump_{session_id}_20260528.json",
    ]


def delete(home: Home, *ids: str, **options: Any) -> Deletion:
    """Delete by the Python API at the tests' own time."""
    return delete_sessions(ids[0] if len(ids) == 1 else ids, home, now=NOW, **options)


def lease(home: Home, session_id: str, *, seconds: float = 60.0, holder: str = "pid=1:turn=t1") -> None:
    """A turn lease that runs out in so many seconds; process 1 is always there."""
    sql = "INSERT INTO session_turn_leases (conversation_id, holder, acquired_at, expires_at) VALUES (?, ?, ?, ?)"
    execute(home.database, sql, (session_id, holder, NOW - 10, NOW + seconds))


def lock(home: Home, session_id: str, *, seconds: float = 60.0) -> None:
    """A compression lock of process 1."""
    sql = "INSERT INTO compression_locks (session_id, holder, acquired_at, expires_at) VALUES (?, ?, ?, ?)"
    execute(home.database, sql, (session_id, "pid=1:tid=2:agent=a:nonce=0", NOW - 10, NOW + seconds))


def admission(
    home: Home, session_id: str, status: str = "terminal", *, number: str = "a1", payload: Any = None
) -> None:
    """A request of a client."""
    execute(
        home.database,
        "INSERT INTO session_admissions (admission_id, request_id, principal_id, target_session_id, lineage_json,"
        " payload_json, payload_digest, intent, status, owner_epoch, generation)"
        " VALUES (?, ?, 'api', ?, '[]', ?, 'digest', 'queue', ?, 1, 1)",
        (number, f"request {number}", session_id, json.dumps(payload or {"text": "secret words"}), status),
    )


def worker(home: Home, session_id: str, status: str = "terminal", *, number: str = "w1") -> None:
    """A worker with one receipt."""
    execute(
        home.database,
        "INSERT INTO worker_executions (execution_id, session_id, kind, owner_epoch, generation, status,"
        " adoption_digest, last_sequence) VALUES (?, ?, 'cron', 1, 1, ?, 'adopted', 1)",
        (number, session_id, status),
    )
    execute(
        home.database,
        "INSERT INTO worker_receipts (execution_id, sequence, payload_digest, result_json)"
        " VALUES (?, 1, 'digest', '{\"text\": \"secret words\"}')",
        (number,),
    )


def meta(home: Home, key: str, value: Any) -> None:
    """A stored value."""
    text = value if isinstance(value, str) else json.dumps(value)
    execute(home.database, "INSERT OR REPLACE INTO state_meta (key, value) VALUES (?, ?)", (key, text))


def keys(home: Home, beginning: str = "") -> set[str]:
    """Stored keys that begin so, marks of receipts apart."""
    rows = execute(home.database, "SELECT key FROM state_meta")
    return {key for (key,) in rows if key.startswith(beginning) and not key.startswith("hermes_dbtools.")}


def sessions(home: Home) -> set[str]:
    """The ids that have a row."""
    return {row[0] for row in execute(home.database, "SELECT id FROM sessions")}
