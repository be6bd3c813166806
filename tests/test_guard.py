"""The guard: which rows make a session live, how far that reaches, and that looking changes nothing."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import apsw
import psutil
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hermes_dbtools import queries
from hermes_dbtools.guard import LiveSessions, live_sessions
from hermes_dbtools.home import Home
from hermes_dbtools.model import LiveSession
from hermes_dbtools.processes import Processes
from hermes_dbtools.shape import Shape, read_shape
from tests.guarded import NOW, Book, chain, dead_pid, home_of, living_process, write_active_sessions
from tests.shapes.make import SHAPES, execute, fill, make, script

WITHOUT_LEASES = ("11", "14", "19", "22")


@pytest.fixture
def book() -> Book:
    return Book("runtime")


@pytest.mark.parametrize("shape", SHAPES)
def test_nothing_is_live_in_a_healthy_store_at_rest(tmp_path: Path, shape: str) -> None:
    fill(make(tmp_path / "state.db", shape))
    connection = apsw.Connection(str(tmp_path / "state.db"), flags=apsw.SQLITE_OPEN_READONLY)
    live = live_sessions(connection, read_shape(connection), home=home_of(tmp_path), now=NOW, held=True)
    assert not live
    assert dict(live) == {}
    assert live.get("any") is None
    connection.close()


# Leases and locks


def test_a_lease_says_who_holds_it_and_until_when(book: Book) -> None:
    holder = f"pid {os.getpid()}"
    book.lease("a", f"pid={os.getpid()}:turn=t1", NOW + 30)
    book.lock("b", f"pid={os.getpid()}:tid=1:agent=a:nonce=0", NOW + 40)
    assert dict(book.live()) == {
        "a": LiveSession("a", "turn lease", holder, NOW + 30),
        "b": LiveSession("b", "compression lock", holder, NOW + 40),
    }


def test_a_reason_says_why_a_process_that_is_not_seen_is_not_gone(book: Book) -> None:
    pid = dead_pid()
    book.lease("a", f"pid={pid}:turn=t1")
    live = book.live(processes=Processes("this is another host"))
    assert live["a"].reason == "turn lease (its process is not seen here, but this is another host)"
    assert live["a"].holder == f"pid {pid}"


@pytest.mark.parametrize("table", ["lease", "lock"])
@pytest.mark.parametrize(
    ("expires_at", "live"),
    [
        (NOW + 0.001, True),
        (NOW, False),
        (NOW - 1, False),
        (0, False),
        (-1e308, False),
        (float("-inf"), False),
        (float("inf"), True),
        (1e300, True),
        (2**62, True),
        ("soon", True),
        ("", True),
        (b"\x00\xff", True),
        (str(NOW + 9), True),
        (str(NOW - 9), False),
    ],
)
def test_a_lease_is_live_before_its_expiry_or_where_that_cannot_be_read(
    book: Book, table: str, expires_at: Any, live: bool
) -> None:
    getattr(book, table)("a", expires_at=expires_at)
    assert ("a" in book.live()) is live


def test_a_lease_that_never_ends_says_no_end(book: Book) -> None:
    book.lease("a", expires_at=float("inf"))
    assert book.live()["a"] == LiveSession("a", "turn lease", "pid 1", None)


@pytest.mark.parametrize("expires_at", [None, float("nan")])
def test_a_lease_without_expiry_is_live(expires_at: Any) -> None:
    book = Book()
    book.connection.execute("DROP TABLE session_turn_leases")
    book.connection.execute(
        "CREATE TABLE session_turn_leases (conversation_id, holder, acquired_at, expires_at)"
    )
    book.lease("a", expires_at=expires_at)
    assert book.live()["a"] == LiveSession("a", "turn lease whose expiry cannot be read", "pid 1", None)


def test_a_lease_of_no_conversation_names_no_session(book: Book) -> None:
    book.lease(None)
    assert not book.live()


def test_a_lease_of_a_process_that_ended_is_not_live(book: Book) -> None:
    pid = dead_pid()
    book.lease("a", f"pid={pid}:turn=t1")
    book.lock("b", f"tid=3:pid={pid}")
    book.lease("c", f"pid={pid}:turn=t1", "no time")
    assert not book.live()


def test_a_lease_of_a_process_that_runs_is_live(book: Book) -> None:
    with living_process() as pid:
        book.lease("a", f"pid={pid}:turn=t1")
        assert book.live()["a"].holder == f"pid {pid}"
    assert not book.live()


@pytest.mark.parametrize(
    "holder",
    [
        "",
        "unknown",
        "pid=",
        "pid=0:turn=t1",
        "pid=-5",
        "pid=12x:turn=t1",
        "xpid={dead}",
        "ppid={dead}:x",
        "PID={dead}",
        "pid={dead} ",
        "pid=99999999999999999999",
        "host=elsewhere.example:pid={dead}:turn=t1",
        "pid={dead}:host=elsewhere.example",
        "pid={own}:turn=t1",
        b"\xff\xfe",
        None,
    ],
)
def test_a_holder_that_is_not_provably_gone_is_live(holder: Any) -> None:
    book = Book()
    book.connection.execute("DROP TABLE session_turn_leases")
    book.connection.execute(
        "CREATE TABLE session_turn_leases (conversation_id, holder, acquired_at, expires_at)"
    )
    if isinstance(holder, str):
        holder = holder.format(dead=dead_pid(), own=os.getpid())
    book.lease("a", holder)
    assert "a" in book.live()


def test_a_holder_that_names_this_host_is_believed(book: Book) -> None:
    pid = dead_pid()
    book.lease("a", f"host=Here:pid={pid}:turn=t1")
    assert not book.live(processes=Processes(host="here"))
    assert "a" in book.live(processes=Processes(host="there"))


def test_a_gateway_of_another_host_makes_every_pid_doubtful(book: Book) -> None:
    book.lease("a", f"pid={dead_pid()}:turn=t1")
    book.heartbeat("elsewhere.example")
    shape = read_shape(book.connection)
    live = live_sessions(book.connection, shape, home=None, now=NOW, held=False)
    assert "a gateway of another host served this file within the last day" in live["a"].reason
    book.connection.execute("UPDATE gateway_heartbeats SET last_heartbeat = 'never'")
    assert "a" in live_sessions(book.connection, shape, home=None, now=NOW, held=False)


def test_a_heartbeat_alone_makes_no_session_live(book: Book) -> None:
    book.session("open")
    book.message("open", NOW - 1)
    book.heartbeat("here")
    assert not book.live(held=True)


# How far a live session reaches


def test_a_lease_on_the_root_guards_every_segment(book: Book) -> None:
    chain(book, "root", "middle", "tip")
    book.session("other")
    book.lease("root", f"pid={os.getpid()}")
    live = book.live()
    assert list(live) == ["middle", "root", "tip"]
    assert live["tip"].reason == "compression chain of root: turn lease"
    assert live["tip"].holder == f"pid {os.getpid()}"
    assert live["tip"].expires_at == NOW + 60


def test_a_lock_on_the_tip_guards_its_ancestors_and_all_sibling_continuations(book: Book) -> None:
    chain(book, "root", "middle", "tip")
    book.session("sibling", "root")
    book.session("its-tool", "root", source="tool")
    book.lock("tip")
    assert list(book.live()) == ["middle", "root", "sibling", "tip"]


def test_a_delegates_lease_guards_the_chain_of_who_delegated_it(book: Book) -> None:
    chain(book, "root", "tip")
    book.session("child", "tip", source="subagent", delegate_from="tip")
    book.session("grandchild", "child", source="subagent", delegate_from="child")
    book.session("twin", "tip", source="subagent", delegate_from="tip")
    book.lease("grandchild")
    live = book.live()
    assert list(live) == ["child", "grandchild", "root", "tip"]
    assert live["root"].reason == "delegate grandchild below it: turn lease"
    assert live["child"].reason == "delegate grandchild below it: turn lease"


def test_a_delegate_guards_the_parent_and_the_one_its_marker_names(book: Book) -> None:
    book.session("asker")
    book.session("parent")
    book.session("child", "parent", source="subagent", delegate_from="asker")
    book.lease("child")
    assert list(book.live()) == ["asker", "child", "parent"]


def test_a_delegate_of_a_missing_session_guards_that_id(book: Book) -> None:
    book.session("child", "gone", source="subagent", delegate_from="gone")
    book.session("upgraded", None, delegate_from="__orphaned__")
    book.lease("child")
    book.lease("upgraded")
    assert list(book.live()) == ["child", "gone", "upgraded"]


def test_an_ended_session_with_a_live_lease_is_live(book: Book) -> None:
    book.session("a", end="user_exit")
    book.lease("a")
    assert "a" in book.live()


def test_a_chain_that_compression_closed_is_not_live_by_itself(book: Book) -> None:
    chain(book, "root", "tip")
    assert not book.live(held=True)


def test_a_branch_does_not_guard_its_root(book: Book) -> None:
    book.session("root", end="branched")
    book.session("branch", "root", branched_from="root")
    book.session("compressed", end="compression")
    book.session("fork", "compressed", branched_from="compressed")
    book.session("reset", "compressed", reset_from="compressed")
    for session_id in ("branch", "fork", "reset"):
        book.lease(session_id)
    assert list(book.live()) == ["branch", "fork", "reset"]


def test_an_inherited_marker_is_no_fork(book: Book) -> None:
    book.session("root")
    book.session("branch", "root", end="compression", branched_from="root")
    book.session("tip", "branch", branched_from="root")
    book.lease("tip")
    assert list(book.live()) == ["branch", "tip"]


def test_children_of_a_missing_parent_may_be_its_continuations(book: Book) -> None:
    book.session("tip", "gone")
    book.session("branch", "gone", branched_from="gone")
    book.lease("gone")
    assert list(book.live()) == ["gone", "tip"]
    book.connection.execute("UPDATE session_turn_leases SET conversation_id = 'tip'")
    assert list(book.live()) == ["gone", "tip"]


@pytest.mark.parametrize("trust_indexes", [True, False])
def test_cycles_come_to_an_end(book: Book, trust_indexes: bool) -> None:
    book.session("self", "self", end="compression")
    book.session("one", "two", end="compression")
    book.session("two", "one", end="compression")
    book.session("x", "y", delegate_from="y")
    book.session("y", "x", delegate_from="x")
    for session_id in ("self", "two", "x"):
        book.lease(session_id)
    assert list(book.live(trust_indexes=trust_indexes)) == ["one", "self", "two", "x", "y"]


def test_a_long_chain_is_followed_to_its_end(book: Book) -> None:
    ids = [f"s{n:05}" for n in range(2000)]
    chain(book, *ids)
    book.lease(ids[0])
    assert list(book.live()) == ids


@pytest.mark.parametrize(
    "config",
    ["", "{", "null", "[1]", "7", '"_branched_from"', "{'_delegate_from': 'root'}", "\x00", "[" * 3000],
)
def test_a_config_that_is_no_object_marks_nothing(book: Book, config: str) -> None:
    book.session("root", end="compression", config=config)
    book.session("tip", "root", config=config)
    book.lease("tip")
    assert list(book.live()) == ["root", "tip"]


def test_ids_that_are_not_utf8_are_guarded_as_their_bytes(book: Book) -> None:
    for session_id, parent, end in ((b"\xff", None, "compression"), (b"tip\xfe", b"\xff", None)):
        book.connection.execute(
            "INSERT INTO sessions (id, source, started_at, parent_session_id, end_reason)"
            " VALUES (CAST(? AS TEXT), 'cli', 1, CAST(? AS TEXT), ?)",
            (session_id, parent, end),
        )
    book.connection.execute(
        "INSERT INTO session_turn_leases VALUES (CAST(? AS TEXT), 'x', 1, ?)", (b"\xff", NOW + 9)
    )
    live = book.live()
    assert list(live) == [b"tip\xfe", b"\xff"]
    assert live[b"tip\xfe"].reason == "compression chain of hex:ff: turn lease"


def test_an_id_stored_as_bytes_is_guarded_like_its_text(book: Book) -> None:
    book.session(b"root", end="compression")
    book.session("tip", b"root")
    book.lease("root")
    assert list(book.live()) == ["root", "tip"]


def test_the_nearest_seed_is_named(book: Book) -> None:
    chain(book, "a", "b", "c", "d", "e")
    book.lease("a", "x")
    book.lock("e", "x")
    live = book.live()
    assert live["b"].reason == "compression chain of a: turn lease"
    assert live["d"].reason == "compression chain of e: compression lock"
    assert live["c"].reason == "compression chain of a: turn lease"


def test_a_seed_keeps_its_strongest_reason(book: Book) -> None:
    book.session("a")
    book.lock("a", "x", NOW + 5)
    book.worker("a", "running")
    book.lease("a", "x", NOW + 9)
    assert book.live()["a"] == LiveSession("a", "turn lease", "", NOW + 9)


# The runtime ledger


@pytest.mark.parametrize(
    ("status", "reason"),
    [
        ("queued", "busy: admission queued"),
        ("started", "busy: admission started"),
        ("unknown", "unknown execution: admission whose owner is gone, nobody knows whether it still runs"),
        ("terminal", None),
    ],
)
@pytest.mark.parametrize("trust_indexes", [True, False])
def test_an_admission_that_is_not_terminal_is_live(
    book: Book, status: str, reason: str | None, trust_indexes: bool
) -> None:
    book.admission("target", status, ["target", "older", "transcript"])
    live = book.live(trust_indexes=trust_indexes)
    assert {session_id: one.reason for session_id, one in live.items()} == (
        dict.fromkeys(("older", "target", "transcript"), reason) if reason else {}
    )


@pytest.mark.parametrize("lineage", ["", "{", "null", "7", '[1, null, {"a": "b"}, ["c"]]'])
def test_a_lineage_that_cannot_be_read_leaves_the_target(book: Book, lineage: str) -> None:
    book.admission("target", "started", lineage)
    assert list(book.live()) == ["target"]


@pytest.mark.parametrize(
    ("status", "reason"),
    [
        ("registered", "busy: worker registered"),
        ("running", "busy: worker running"),
        ("unknown", "unknown execution: worker whose owner is gone, nobody knows whether it still runs"),
        ("terminal", None),
    ],
)
def test_a_worker_that_is_not_terminal_is_live(book: Book, status: str, reason: str | None) -> None:
    book.worker("a", status)
    live = book.live().get("a")
    assert (live.reason if live else None) == reason


def test_a_status_that_is_none_of_the_known_is_live(book: Book) -> None:
    book.connection.execute("PRAGMA ignore_check_constraints = ON")
    book.admission("a", "paused")
    book.worker("b", "")
    live = book.live()
    assert live["a"].reason == "busy: admission whose status cannot be read"
    assert live["b"].reason == "busy: worker whose status cannot be read"


# active_sessions.json


def entry(session_id: Any, pid: Any, **more: Any) -> dict[str, Any]:
    return {"lease_id": "1f", "session_id": session_id, "surface": "tui", "pid": pid, "metadata": {}} | more


def test_no_file_is_no_one(book: Book, tmp_path: Path) -> None:
    assert not book.live(home=home_of(tmp_path))


def test_an_entry_of_a_process_that_runs_is_live_with_its_chain(book: Book, tmp_path: Path) -> None:
    chain(book, "root", "tip")
    with living_process() as pid:
        began = psutil.Process(pid).create_time()
        home = home_of(tmp_path, {"entries": [entry("tip", pid, process_start_time=began)]})
        live = book.live(home=home)
        assert live["tip"] == LiveSession("tip", "active_sessions.json", f"pid {pid}")
        assert live["root"].reason == "compression chain of tip: active_sessions.json"
    assert not book.live(home=home)


def test_a_pid_in_use_again_is_another_process(book: Book, tmp_path: Path) -> None:
    with living_process() as pid:
        began = psutil.Process(pid).create_time()
        for recorded, live in ((began - 60, False), (began, True), (began - 1, True), (began + 60, True)):
            home = home_of(tmp_path, [entry("a", pid, process_start_time=recorded)])
            assert ("a" in book.live(home=home)) is live


@pytest.mark.parametrize(
    ("pid", "started"),
    [
        (None, None),
        (True, None),
        (0, None),
        (-3, None),
        ("soon", None),
        (1.5, None),
        (10**30, None),
        ("9" * 5000, None),
        (os.getpid(), 1.0),
        (str(os.getpid()), None),
        (os.getppid(), "yesterday"),
        (os.getppid(), float("nan")),
        (os.getppid(), True),
    ],
    ids=lambda value: "pid" if str(value) in (str(os.getpid()), str(os.getppid())) else None,
)
def test_an_entry_whose_process_cannot_be_disproved_is_live(
    book: Book, tmp_path: Path, pid: Any, started: Any
) -> None:
    home = home_of(tmp_path, [entry("a", pid, process_start_time=started)])
    live = book.live(home=home)
    assert "a" in live
    assert not live.all_reason


def test_a_draft_without_a_stored_session_owns_none(book: Book, tmp_path: Path) -> None:
    assert not book.live(home=home_of(tmp_path, [entry("", os.getpid())]))


def unreadable(folder: Path, kind: str) -> Home:
    file = folder / "runtime" / "active_sessions.json"
    home = home_of(folder, b"[]")
    contents = {
        "empty": b"",
        "cut": b'{"entries": [{"session_id": "a"',
        "text": b"\xff\xfe\x00",
        "object": b"{}",
        "number": b"7",
        "null": b"null",
        "entries": b'{"entries": {"a": 1}}',
        "entry": b'{"entries": ["a"]}',
        "no id": b'[{"pid": 1}]',
        "wrong id": b'[{"pid": 1, "session_id": 7}]',
        "deep": b"[" * 200_000,
        "digits": b"[" + b"9" * 10_000 + b"]",
    }
    if kind in contents:
        file.write_bytes(contents[kind])
    else:
        file.unlink()
        makers: dict[str, Callable[[], None]] = {
            "folder": lambda: file.mkdir(),
            "FIFO": lambda: os.mkfifo(file),
            "loop": lambda: file.symlink_to(file),
        }
        makers[kind]()
    return home


@pytest.mark.parametrize(
    "kind",
    [
        *("empty", "cut", "text", "object", "number", "null", "entries", "entry", "no id", "wrong id"),
        *("deep", "digits", "folder", "FIFO", "loop"),
    ],
)
def test_a_file_that_cannot_be_read_makes_every_session_live(book: Book, tmp_path: Path, kind: str) -> None:
    live = book.live(home=unreadable(tmp_path, kind))
    assert live
    assert live.all_reason.startswith("who is live cannot be read: active_sessions.json ")
    assert live.get("whoever") == LiveSession("whoever", live.all_reason)
    assert b"\xff" in live
    assert list(live) == []


def test_a_profile_is_registered_at_its_own_home_or_at_the_root(book: Book, tmp_path: Path) -> None:
    home = home_of(tmp_path, [entry("own", os.getpid())], profile="work")
    write_active_sessions(tmp_path, [entry("shared", os.getpid())])
    assert list(book.live(home=home)) == ["own", "shared"]
    write_active_sessions(tmp_path, b"{")
    assert book.live(home=home).all_reason


def test_a_session_id_of_lone_surrogates_is_kept(book: Book, tmp_path: Path) -> None:
    live = book.live(
        home=home_of(tmp_path, b'[{"session_id": "\\ud800", "pid": 0}, {"session_id": "b", "pid": 0}]')
    )
    assert list(live) == ["b", b"\xed\xa0\x80"]


# Shapes without turn leases


@pytest.mark.parametrize("shape", WITHOUT_LEASES)
@pytest.mark.parametrize("trust_indexes", [True, False])
def test_an_open_session_written_to_lately_is_live_while_the_file_is_held(
    shape: str, trust_indexes: bool
) -> None:
    book = Book(shape)
    chain(book, "root", "tip")
    book.session("ended", end="user_exit")
    for session_id, age in (("tip", 200), ("ended", 1), ("rowless", 1), ("old", 901), ("future", -90_000)):
        if session_id in ("old", "future"):
            book.session(session_id)
        book.message(session_id, NOW - age)
    book.session("edge")
    book.message("edge", NOW - 900)
    book.message("gone long ago", NOW - 5000)
    book.session("undated")
    book.message("undated", "today")
    live = book.live(held=True, trust_indexes=trust_indexes)
    assert {session_id: one.reason for session_id, one in live.items()} == {
        "root": "compression chain of tip: open and written to 3 minutes ago",
        "rowless": "written to just now without a session row, its agent may heal it",
        "tip": "open and written to 3 minutes ago",
    }
    assert not book.live(held=False, trust_indexes=trust_indexes)


def test_recent_writing_is_found_without_the_index_too() -> None:
    book = Book("22")
    book.connection.execute("DROP INDEX idx_messages_session")
    book.connection.execute("DROP INDEX idx_sessions_parent")
    chain(book, "root", "tip")
    book.message("tip", NOW - 70)
    assert book.live(held=True)["tip"].reason == "open and written to 1 minute ago"
    assert "root" in book.live(held=True)


def test_a_lock_is_live_without_turn_leases_too() -> None:
    book = Book("14")
    book.lock("a")
    assert "a" in book.live()


def test_shapes_with_turn_leases_do_not_go_by_the_clock_of_messages() -> None:
    book = Book("25")
    book.session("open")
    book.message("open", NOW - 1)
    assert not book.live(held=True)


# What cannot be read, and what looking leaves


@pytest.mark.parametrize("column", ["holder", "expires_at"])
def test_a_lease_table_of_an_unknown_form_makes_every_session_live(column: str) -> None:
    book = Book()
    book.connection.execute(f"DROP INDEX IF EXISTS idx_session_turn_leases_{column.split('_')[0]}")
    book.connection.execute("DROP INDEX IF EXISTS idx_session_turn_leases_expires")
    book.connection.execute(f"ALTER TABLE session_turn_leases DROP COLUMN {column}")
    assert book.live().all_reason == (
        "who is live cannot be read: session_turn_leases lacks a column that says who is live"
    )


def test_damaged_pages_make_every_session_live(tmp_path: Path) -> None:
    path = make(tmp_path / "state.db", "31", journal_mode="delete")
    execute(path, "INSERT INTO session_turn_leases VALUES ('a', 'x', 1, ?)", (NOW + 9,))
    connection = apsw.Connection(str(path))
    shape = read_shape(connection)
    page_size = connection.pragma("page_size")
    connection.close()
    with path.open("r+b") as file:
        file.seek((shape.tables["session_turn_leases"].root_page - 1) * page_size)
        file.write(b"\xff" * page_size)
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    live = live_sessions(connection, shape, home=None, now=NOW, held=False)
    assert live.all_reason == "who is live cannot be read: the tables that say so are damaged"
    connection.close()


def test_looking_leaves_the_file_and_every_lease_as_they_were(tmp_path: Path) -> None:
    path = make(tmp_path / "state.db", "31", journal_mode="delete")
    for session_id, expires_at in (("dead", NOW + 9), ("expired", NOW - 9), ("live", NOW + 9)):
        holder = f"pid={dead_pid()}" if session_id == "dead" else "x"
        execute(path, "INSERT INTO session_turn_leases VALUES (?, ?, 1, ?)", (session_id, holder, expires_at))
    before = path.read_bytes()
    connection = apsw.Connection(
        f"file:{path}?mode=ro", flags=apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
    )
    shape = read_shape(connection)
    for _ in range(2):
        live = live_sessions(connection, shape, home=None, now=NOW, held=False, processes=Processes())
        assert list(live) == ["live"]
    assert connection.execute("SELECT COUNT(*) FROM session_turn_leases").get == 3
    connection.close()
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["state.db"]  # noqa: PTH208


def test_looking_inside_a_transaction_is_not_recorded(book: Book) -> None:
    chain(book, "root", "tip")
    book.lease("tip")
    recorder = apsw.Session(book.connection, "main")
    recorder.attach()
    for ending in ("ROLLBACK", "COMMIT", "COMMIT"):
        book.connection.execute("BEGIN IMMEDIATE")
        assert list(book.live()) == ["root", "tip"]
        book.connection.execute(ending)
    assert recorder.is_empty
    recorder.close()
    assert list(book.connection.execute("SELECT session_id FROM temp.guard_seeds")) == []


def test_the_answer_is_a_mapping() -> None:
    one = LiveSession("a", "turn lease")
    live = LiveSessions({"a": one})
    assert live["a"] is one
    assert "b" not in live
    assert len(live) == 1
    assert live
    assert not LiveSessions()
    assert LiveSessions(all_reason="x")
    with pytest.raises(KeyError):
        live["b"]


def plan(book: Book, shape: Shape, file: str, block: str) -> list[str]:
    query = queries.choose(f"guard/{file}", block, shape.has)
    assert query is not None
    bindings = {"since": 1.0, "until": 2.0} if block == "recent" else {}
    return [str(row[3]) for row in book.connection.execute(f"EXPLAIN QUERY PLAN {query.sql}", bindings)]


@pytest.mark.parametrize("shape", SHAPES)
def test_only_indexes_and_the_guarded_rows_are_read(shape: str) -> None:
    book = Book(shape)
    book.connection.execute("CREATE TEMP TABLE guard_seeds (session_id BLOB)")
    found = read_shape(book.connection)
    for file, block in (("closure", "reach"), ("seeds", "recent")):
        for line in plan(book, found, file, block):
            assert not line.startswith(("SCAN session", "SCAN parent", "SCAN message", "SCAN child")), line
            assert "message" not in line or "COVERING INDEX" in line, line
    if found.has("session_admissions"):
        scans = [
            line for line in plan(book, found, "seeds", "admissions") if line.startswith("SCAN candidate")
        ]
        assert scans == ["SCAN candidate USING COVERING INDEX session_admissions_pending"]


# The same set, found the other way round

NAMES = [f"s{n}" for n in range(7)] + ["missing", "__orphaned__"]
MARKERS = ("_branched_from", "_delegate_from", "_reset_from")

configs = st.one_of(
    st.sampled_from([None, "", "{", "[]", "5"]),
    st.dictionaries(st.sampled_from(MARKERS), st.sampled_from([*NAMES, 7, None]), max_size=2).map(json.dumps),
)
sessions = st.lists(
    st.tuples(
        st.sampled_from([None, *NAMES]),
        st.sampled_from(["compression", "compression", "branched", None]),
        st.sampled_from(["cli", "cli", "subagent", "tool"]),
        configs,
    ),
    max_size=7,
)


class Slow:
    """The rule as it is asked of one target: the target, all delegates below it and its whole chain."""

    def __init__(self, rows: list[tuple[str | None, str | None, str, str | None]]) -> None:
        self.rows = {f"s{n}": row for n, row in enumerate(rows)}

    def markers(self, session_id: str) -> dict[str, Any]:
        try:
            config = json.loads(self.rows[session_id][3] or "")
        except ValueError:
            return {}
        return config if isinstance(config, dict) else {}

    def continues(self, child: str) -> bool:
        parent, _, source, _ = self.rows[child]
        if (
            parent is None
            or source == "tool"
            or parent in [self.markers(child).get(name) for name in MARKERS]
        ):
            return False
        return parent not in self.rows or self.rows[parent][1] == "compression"

    def asked_about(self, target: str) -> set[str]:
        asked: set[str] = set()
        found = {target}
        while found - asked:
            asked |= found
            for child, (parent, *_rest) in self.rows.items():
                marker = self.markers(child).get("_delegate_from")
                below = marker is not None and (
                    parent in asked or (marker != "__orphaned__" and marker in asked)
                )
                if below or (parent in asked and self.continues(child)):
                    found.add(child)
                if child in asked and parent is not None and self.continues(child):
                    found.add(parent)
        return asked


@pytest.fixture(scope="module")
def connection() -> apsw.Connection:
    opened = apsw.Connection(":memory:")
    opened.execute(script("shape_25"))
    return opened


@settings(max_examples=200, deadline=None)
@given(rows=sessions, leased=st.sets(st.sampled_from(NAMES[:-1]), max_size=3))
def test_a_session_is_guarded_when_what_it_drags_along_is_live(
    connection: apsw.Connection, rows: list[tuple[str | None, str | None, str, str | None]], leased: set[str]
) -> None:
    book = Book(connection=connection)
    connection.execute("DELETE FROM sessions; DELETE FROM session_turn_leases")
    for number, (parent, end, source, config) in enumerate(rows):
        connection.execute(
            "INSERT INTO sessions (id, source, started_at, parent_session_id, end_reason, model_config)"
            " VALUES (?, ?, 1, ?, ?, ?)",
            (f"s{number}", source, parent, end, config),
        )
    for session_id in leased:
        book.lease(session_id, "x")
    slow = Slow(rows)
    expected = {name for name in NAMES if slow.asked_about(name) & leased}
    for trust_indexes in (True, False):
        live = book.live(trust_indexes=trust_indexes)
        assert set(live) & set(NAMES) == expected
        assert all(one.session_id == session_id for session_id, one in live.items())


# Processes


def test_a_process_of_a_container_is_known_by_its_own_pid(tmp_path: Path) -> None:
    pid = dead_pid()
    for name, nspid in (("1", "1"), ("900", f"900\t31\t{pid}"), ("self", "7\t7")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "status").write_text(f"Name:\tx\nNSpid:\t{nspid}\nNSpgid:\t1\n")
    (tmp_path / "901").mkdir()
    assert not Processes(proc=tmp_path).gone(pid)
    assert Processes(proc=tmp_path / "missing").gone(pid)
    assert Processes().gone(pid)


@pytest.mark.parametrize(
    ("mounts", "container", "doubt"),
    [
        ([("/", "ext4")], False, ""),
        ([("/", "overlay")], True, ""),
        ([("/", "ext4"), ("{home}", "btrfs")], False, ""),
        ([("/", "overlay"), ("{home}", "ext4")], True, "mounted into this container"),
        ([("/", "ext4"), ("{home}", "nfs4")], False, "other hosts may share (nfs4)"),
        ([("{home}", "fuse.sshfs"), ("/", "ext4")], False, "other hosts may share (fuse.sshfs)"),
        ([("/", "ext4"), ("{home}x", "nfs4")], False, ""),
        ([("/", "ext4"), ("{home}", "ext4"), ("{home}", "9p")], False, "other hosts may share (9p)"),
        ([], False, "unknown"),
    ],
)
def test_a_pid_is_believed_where_the_file_belongs_to_this_host(
    book: Book,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    mounts: list[tuple[str, str]],
    container: bool,
    doubt: str,
) -> None:
    home = home_of(tmp_path)
    parts = [Mount(point.format(home=tmp_path.resolve()), kind) for point, kind in mounts]
    monkeypatch.setattr("psutil.disk_partitions", lambda **_: parts)
    monkeypatch.setattr("hermes_dbtools.processes._in_container", lambda: container)
    book.lease("a", f"pid={dead_pid()}:turn=t1")
    live = live_sessions(book.connection, read_shape(book.connection), home=home, now=NOW, held=False)
    assert ("a" in live) is bool(doubt)
    if doubt:
        assert doubt in live["a"].reason


class Mount:
    def __init__(self, mountpoint: str, fstype: str) -> None:
        self.mountpoint = mountpoint
        self.fstype = fstype


def refuse(error: type[OSError] | type[OverflowError]) -> Callable[[int, int], None]:
    def kill(_pid: int, _signal: int) -> None:
        raise error

    return kill


@pytest.mark.parametrize("error", [PermissionError, OverflowError, OSError])
def test_a_process_that_may_not_be_asked_is_alive(
    monkeypatch: pytest.MonkeyPatch, error: type[OSError] | type[OverflowError]
) -> None:
    pid = dead_pid()
    assert Processes().gone(pid)
    monkeypatch.setattr("os.kill", refuse(error))
    assert not Processes().gone(pid)
