"""Say which sessions are live, and why, so that nothing touches them; deletes no lease and writes no table.

Live by itself is a session with a turn lease, a compression lock, a ledger entry that is not terminal or an
entry of `runtime/active_sessions.json`; where a shape has no turn leases, one written to lately while the
file is held. What such a session reaches is live with it (`closure`). A heartbeat alone, or a session that
was never ended, is no sign of life (upstream: `_write_guards_reject`, `retire_prunable`, `require_idle`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import apsw

from . import queries
from .active_sessions import UnreadableFile, read_entries
from .closure import reach
from .home import Home
from .model import LiveSession, Value
from .processes import Processes, holder_pid, processes_of
from .shape import Shape
from .utf8 import text

RECENT = 900.0
"""Seconds after its newest message for which an open session is live where there are no turn leases."""

HEARTBEAT = 86400.0
"""Seconds for which a gateway's host is remembered; upstream sweeps leases that ran out longer ago."""

AHEAD = 86400.0
"""Seconds by which a message's time may lie ahead of the clock and still be taken for a time."""


@dataclass(frozen=True)
class LiveSessions(Mapping[Value, LiveSession]):
    """Every session that nothing may touch, by id (str, or bytes where it is not UTF-8), in order of bytes.

    Where `all_reason` is set, who is live could not be read: then every id is live, and none is listed.
    """

    sessions: Mapping[Value, LiveSession] = field(default_factory=dict)
    all_reason: str = ""

    def __getitem__(self, session_id: Value) -> LiveSession:
        """Why the session is live. Raises KeyError where it is not."""
        known = self.sessions.get(session_id)
        if known is not None:
            return known
        if self.all_reason:
            return LiveSession(session_id, self.all_reason)
        raise KeyError(session_id)

    def __iter__(self) -> Iterator[Value]:
        """The ids that are known to be live."""
        return iter(self.sessions)

    def __len__(self) -> int:
        """How many ids are known to be live."""
        return len(self.sessions)

    def __bool__(self) -> bool:
        """Whether any session is live, known or not."""
        return bool(self.sessions) or bool(self.all_reason)


@dataclass(frozen=True, slots=True)
class _Reader:
    """One look at one file: what every question about seeds needs."""

    connection: apsw.Connection
    shape: Shape
    now: float
    trust_indexes: bool

    def rows(self, name: str, bindings: Mapping[str, float]) -> list[tuple[Value, ...]]:
        query = queries.choose("guard/seeds", name, self.has)
        return list(self.connection.execute(query.sql, dict(bindings))) if query else []

    def rows_of(self, table: str, name: str, bindings: Mapping[str, float]) -> list[tuple[Value, ...]]:
        """Rows of a block that every file with this table must be able to answer."""
        if self.shape.has(table) and queries.choose("guard/seeds", name, self.has) is None:
            raise _Unreadable(f"{table} lacks a column that says who is live")
        return self.rows(name, bindings)

    def has(self, need: str) -> bool:
        return (self.trust_indexes or not need.startswith("index:")) and self.shape.has(need)


class _Unreadable(Exception):
    """Who is live cannot be read; the text says why."""


def live_sessions(
    connection: apsw.Connection,
    shape: Shape,
    *,
    home: Home | None,
    now: float,
    held: bool,
    trust_indexes: bool = True,
    processes: Processes | None = None,
) -> LiveSessions:
    """Every session that nothing may touch at `now` (epoch seconds): the live ones and all that they reach.

    `held` says that another process has the file open. Uses one temporary table, on a read-only connection or
    inside the caller's transaction. Damaged pages make every session live; other apsw errors pass through.
    """
    reader = _Reader(connection, shape, now, trust_indexes)
    try:
        if processes is None:
            processes = _processes(reader, home)
        seeds = _first_of_each(_seeds(reader, processes, home, held=held))
        return LiveSessions(reach(connection, reader.has, seeds))
    except (_Unreadable, UnreadableFile) as error:
        return LiveSessions(all_reason=f"who is live cannot be read: {error}")
    except apsw.CorruptError:
        return LiveSessions(all_reason="who is live cannot be read: the tables that say so are damaged")


def _processes(reader: _Reader, home: Home | None) -> Processes:
    hosts = [_words(host) for (host,) in reader.rows("other-hosts", {"since": reader.now - HEARTBEAT})]
    database = home.database if home is not None else Path(reader.connection.db_filename("main") or "/")
    return processes_of(database, hosts)


def _seeds(
    reader: _Reader, processes: Processes, home: Home | None, *, held: bool
) -> Iterator[tuple[bytes, LiveSession]]:
    """The sessions that are live by themselves, with the strongest reason of each first."""
    for table, name, reason in (
        ("session_turn_leases", "turn-leases", "turn lease"),
        ("compression_locks", "compression-locks", "compression lock"),
    ):
        yield from _leases(reader.rows_of(table, name, {"now": reader.now}), reason, processes)
    yield from _ledger(reader.rows_of("session_admissions", "admissions", {}), "admission")
    yield from _ledger(reader.rows_of("worker_executions", "workers", {}), "worker")
    if home is not None:
        for entry in read_entries(home):
            if not processes.owner_gone(entry.pid, entry.process_start_time):
                reason = f"active_sessions.json{_doubt(processes, entry.pid)}"
                yield _seed(entry.session_id, reason, _process(entry.pid))
    if held and not reader.shape.has("session_turn_leases"):
        window = {"since": reader.now - RECENT, "until": reader.now + AHEAD}
        yield from _recent(reader.rows("recent", window), reader.now)


def _leases(
    rows: list[tuple[Value, ...]], reason: str, processes: Processes
) -> Iterator[tuple[bytes, LiveSession]]:
    for session_id, holder, expires_at in rows:
        if processes.holder_gone(holder):
            continue
        pid = holder_pid(holder)
        unread = "" if isinstance(expires_at, int | float) else " whose expiry cannot be read"
        ends = float(expires_at) if isinstance(expires_at, int | float) else math.inf
        expiry = ends if math.isfinite(ends) else None
        yield _seed(session_id, f"{reason}{unread}{_doubt(processes, pid)}", _process(pid), expiry)


def _ledger(rows: list[tuple[Value, ...]], kind: str) -> Iterator[tuple[bytes, LiveSession]]:
    for session_id, status in rows:
        word = _words(status)
        if word == "unknown":
            reason = f"unknown execution: {kind} whose owner is gone, nobody knows whether it still runs"
        elif word in ("queued", "started", "registered", "running"):
            reason = f"busy: {kind} {word}"
        else:
            reason = f"busy: {kind} whose status cannot be read"
        yield _seed(session_id, reason)


def _recent(rows: list[tuple[Value, ...]], now: float) -> Iterator[tuple[bytes, LiveSession]]:
    for session_id, written_at, rowless in rows:
        minutes = max(0, int((now - float(written_at or 0)) // 60))
        ago = "just now" if minutes == 0 else f"{minutes} minute{'s' if minutes > 1 else ''} ago"
        reason = f"written to {ago} without a session row, its agent may heal it" if rowless else ""
        yield _seed(session_id, reason or f"open and written to {ago}")


def _seed(
    session_id: Value, reason: str, holder: str = "", expires_at: float | None = None
) -> tuple[bytes, LiveSession]:
    key = session_id if isinstance(session_id, bytes) else str(session_id).encode("utf-8", "surrogatepass")
    return key, LiveSession(text(key), reason, holder, expires_at)


def _first_of_each(seeds: Iterator[tuple[bytes, LiveSession]]) -> dict[bytes, LiveSession]:
    first: dict[bytes, LiveSession] = {}
    for key, live in seeds:
        first.setdefault(key, live)
    return first


def _doubt(processes: Processes, pid: int) -> str:
    doubt = processes.unseen(pid)
    return f" (its process is not seen here, but {doubt})" if doubt else ""


def _process(pid: int) -> str:
    return f"pid {pid}" if pid > 0 else ""


def _words(value: Value) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value or "")
