"""A store in memory with the rows that say who is live, and processes they name, for tests of the guard."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import apsw

from hermes_dbtools.guard import LiveSessions, live_sessions
from hermes_dbtools.home import Home
from hermes_dbtools.processes import Processes
from hermes_dbtools.shape import read_shape
from tests.shapes.make import script

NOW = 1_780_100_000.0


class Book:
    """One open store: rows go in by short words, `live` asks the guard."""

    def __init__(self, shape: str = "31", connection: apsw.Connection | None = None) -> None:
        self.connection = connection or apsw.Connection(":memory:")
        if connection is None:
            self.connection.execute(script(f"shape_{shape}"))
        self.connection.execute("PRAGMA foreign_keys = OFF")

    def session(
        self,
        session_id: Any,
        parent: Any = None,
        *,
        end: str | None = None,
        source: str = "cli",
        config: dict[str, Any] | str | None = None,
        **markers: str,
    ) -> Any:
        """Add a session, open without `end`; `markers` such as `branched_from` go into its config."""
        marked = {f"_{name}": value for name, value in markers.items()}
        text = config if isinstance(config, str) else json.dumps((config or {}) | marked)
        self.connection.execute(
            "INSERT INTO sessions"
            " (id, source, started_at, parent_session_id, ended_at, end_reason, model_config)"
            " VALUES (?, ?, ?, ?, ?, ?, ?)",
            (session_id, source, NOW - 5000, parent, NOW - 4000 if end else None, end, text),
        )
        return session_id

    def lease(self, session_id: Any, holder: Any = "pid=1:turn=t1", expires_at: Any = NOW + 60) -> None:
        self.connection.execute(
            "INSERT INTO session_turn_leases VALUES (?, ?, ?, ?)", (session_id, holder, NOW - 10, expires_at)
        )

    def lock(
        self, session_id: Any, holder: Any = "pid=1:tid=2:agent=a:nonce=0", expires_at: Any = NOW + 60
    ) -> None:
        self.connection.execute(
            "INSERT INTO compression_locks VALUES (?, ?, ?, ?)", (session_id, holder, NOW - 10, expires_at)
        )

    def admission(self, target: str, status: str, lineage: Any = ()) -> None:
        text = lineage if isinstance(lineage, str) else json.dumps(list(lineage))
        self.connection.execute(
            "INSERT INTO session_admissions (admission_id, request_id, principal_id, target_session_id,"
            " lineage_json, payload_json, payload_digest, intent, status, owner_epoch, generation) VALUES"
            " (hex(randomblob(16)), hex(randomblob(8)), 'p', ?, ?, '{}', 'd', 'queue', ?, 1, 1)",
            (target, text, status),
        )

    def worker(self, session_id: str, status: str) -> None:
        self.connection.execute(
            "INSERT INTO worker_executions"
            " (execution_id, session_id, kind, owner_epoch, generation, status, adoption_digest)"
            " VALUES (hex(randomblob(16)), ?, 'cron', 1, 1, ?, 'd')",
            (session_id, status),
        )

    def message(self, session_id: str, timestamp: Any) -> None:
        self.connection.execute(
            "INSERT INTO messages (session_id, role, content, timestamp) VALUES (?, 'user', 'x', ?)",
            (session_id, timestamp),
        )

    def heartbeat(self, host: str, age: float = 5.0) -> None:
        self.connection.execute(
            "INSERT INTO gateway_heartbeats VALUES (?, 1, ?, ?, 'default', ?)",
            (host, NOW - 9000, NOW - age, host),
        )

    def live(
        self,
        *,
        home: Home | None = None,
        held: bool = False,
        trust_indexes: bool = True,
        processes: Processes | None = None,
    ) -> LiveSessions:
        """What the guard says at NOW; PIDs are believed unless the test says otherwise."""
        return live_sessions(
            self.connection,
            read_shape(self.connection),
            home=home,
            now=NOW,
            held=held,
            trust_indexes=trust_indexes,
            processes=Processes() if processes is None else processes,
        )


def chain(book: Book, *ids: str, **last: Any) -> None:
    """Add sessions of which each but the first continues the one before after a compression."""
    for place, session_id in enumerate(ids):
        tip = place == len(ids) - 1
        parent = ids[place - 1] if place else None
        book.session(session_id, parent, end=None if tip else "compression", **(last if tip else {}))


def home_of(folder: Path, active_sessions: Any = None, profile: str = "default") -> Home:
    """A home in `folder`, with an `active_sessions.json` of these bytes, or of this document."""
    root = folder if profile == "default" else folder / "profiles" / profile
    if active_sessions is not None:
        write_active_sessions(root, active_sessions)
    return Home(root, root / "state.db", profile)


def write_active_sessions(root: Path, content: Any) -> None:
    (root / "runtime").mkdir(parents=True, exist_ok=True)
    data = content if isinstance(content, bytes) else json.dumps(content).encode()
    (root / "runtime" / "active_sessions.json").write_bytes(data)


def dead_pid() -> int:
    """The PID of a process that has ended and was waited for."""
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait()
    return child.pid


@contextmanager
def living_process() -> Iterator[int]:
    """The PID of a process that lives until the body ends: it waits for the end of its input."""
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        try:
            yield child.pid
        finally:
            child.communicate(b"\n")
