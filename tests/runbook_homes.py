"""The home that each runbook is written for: a fixture with its damage, and what a maker alone cannot do to it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path

import apsw
import pytest

from hermes_dbtools import demo, make_fixture
from hermes_dbtools.backups import taking
from hermes_dbtools.home import resolve
from hermes_dbtools.model import UsageError
from tests.live_writers import crashed
from tests.runbook_outputs import Place
from tests.running import CHECKOUT
from tests.test_storage_classes import foreign_wal, reachable_folder

OLD = 1_785_000_000.0
"""Epoch seconds of every file of a home: older than a day, whenever the test runs."""

SHAPES = ("22", "runtime", "media")
"""In this order: the first one that can have the damage."""

KEPT = re.compile(r"/dbtools/|malformed-backup")
"""Files that have times of their own."""

Also = Callable[[Place], None]
Beside = Callable[[Place], AbstractContextManager[Mapping[str, str]]]


GATEWAY = """
import signal, sqlite3, sys
connection = sqlite3.connect(sys.argv[2], isolation_level=None)
connection.execute("PRAGMA journal_mode = WAL")
def save(seconds):
    connection.execute("INSERT INTO messages (session_id, role, content, timestamp) "
                       "SELECT id, 'user', 'saved', started_at + ? FROM sessions WHERE ended_at IS NULL LIMIT 3", (seconds,))
    connection.execute("UPDATE sessions SET message_count = message_count + 1 "
                       "WHERE id IN (SELECT id FROM sessions WHERE ended_at IS NULL LIMIT 3)")
def leave(_number, _frame):
    connection.close()
    sys.exit(0)
save(100)
signal.signal(signal.SIGTERM, leave)
print("ready", flush=True)
sys.stdin.readline()
save(200)
print("saved", flush=True)
while True:
    signal.pause()
"""
"""A program that has the store open, saves before and after it is told to go on, and closes it when it is asked to end."""


def _nobody(_place: Place) -> AbstractContextManager[Mapping[str, str]]:
    return nullcontext({})


def _older(shape: str) -> Also:
    """A copy of the store from before the damage."""
    return lambda place: _made(place.home / "older.db", shape)


def _made(path: Path, shape: str) -> None:
    make_fixture(path, shape=shape)


def _picture_elsewhere(place: Place) -> None:
    """One of the lost files lies in another folder of the home."""
    _named_by_digest(place, place.folder / "cache" / "images" / "kept.png")


def _picture_in_a_backup(place: Place) -> None:
    """A backup has the right file for one of the wrong ones."""
    (place.home / "backup").mkdir()
    _named_by_digest(place, place.home / "backup" / "a.png")


def _backed_up(sessions: int = 0) -> Also:
    """A healthy store that was backed up, before it is damaged."""

    def done(place: Place) -> None:
        make_fixture(place.folder, sessions=sessions, home=True)
        taking.back_up(resolve(str(place.folder)), taking.BackupOptions())

    return done


def _bad_leaf(place: Place) -> None:
    """A page of messages is overwritten."""
    database = place.folder / "state.db"
    connection = apsw.Connection(str(database))
    pages = connection.execute(
        "SELECT pageno, pgsize FROM dbstat WHERE name = 'messages' AND pagetype = 'leaf'"
    )
    _first, (number, size), *_others = pages.fetchall()
    connection.close()
    with database.open("r+b") as file:
        file.seek((int(number or 0) - 1) * int(size or 0))
        file.write(b"\xff" * 64)


@contextmanager
def _deleted_sidecars(place: Place) -> Iterator[Mapping[str, str]]:
    """A gateway that has saved messages since somebody deleted the sidecars of its file."""
    script = place.home / "hermes"
    script.write_text(GATEWAY, "utf-8")
    command = [sys.executable, str(script), "gateway", str(place.folder / "state.db")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            assert process.stdout.readline() == "ready\n"
            for ending in ("-wal", "-shm"):
                (place.folder / f"state.db{ending}").unlink()
            process.stdin.write("go on\n")
            process.stdin.flush()
            assert process.stdout.readline() == "saved\n"
            threading.Thread(target=process.wait).start()  # a process that nobody waits for seems to live on
            yield {"24315": str(process.pid)}
        finally:
            process.kill()


def _leftovers(place: Place) -> None:
    """Copies of a damaged file, and a log that was set aside with a message that the store does not have."""
    database = place.folder / "state.db"
    older, newer = (place.folder / f"state.db.malformed-backup-2026070{day}_101112" for day in (1, 2))
    older.write_bytes(b"a damaged one")
    newer.write_bytes(b"a newer one")
    while newer.stat().st_ctime_ns <= older.stat().st_ctime_ns:
        newer.write_bytes(b"a newer one")
    whole = database.read_bytes()
    crashed(
        database,
        "INSERT INTO messages (session_id, role, content, timestamp) "
        "SELECT id, 'user', 'saved', started_at + 100 FROM sessions WHERE ended_at IS NULL LIMIT 1",
    )
    retired = place.folder / "state.db.retired-wal-20260914-1"
    retired.mkdir()
    (place.folder / "state.db-wal").rename(retired / "state.db-wal")
    (place.folder / "state.db-shm").unlink()
    database.write_bytes(whole)


FAILED = (
    "2026-11-30 09:00:0{second},000 WARNING [{id}] run_agent: "
    "Session DB append_message failed: FOREIGN KEY constraint failed"
)
"""A line of upstream's log (run_agent.py with hermes_logging.py, 0.13.0 to 0.20.4)."""


def _logs(name: str, *ids: str) -> Also:
    """A log in which the saves of these sessions failed."""

    def write(place: Place) -> None:
        folder = place.folder / "logs"
        folder.mkdir()
        lines = [FAILED.format(second=second, id=one) for second, one in enumerate(ids)]
        (folder / name).write_text("\n".join(lines) + "\n", "utf-8")

    return write


def _before_the_upgrade(place: Place) -> None:
    """The same store before an upgrade hid two of its chats."""
    before = make_fixture(place.home / "before.db", shape="22", damage=["hidden-by-upgrade=2"])
    connection = apsw.Connection(str(before))
    connection.execute(
        "UPDATE sessions SET model_config = json_remove(model_config, '$._delegate_from') "
        "WHERE json_extract(model_config, '$._delegate_from') = '__orphaned__'"
    )
    connection.close()


def _project(place: Place) -> None:
    """The folder of somebody's program."""
    (place.home / "project" / "fixtures").mkdir(parents=True)


def _demo(place: Place) -> None:
    """The home that `demo` shows everything on."""
    (place.folder / "state.db").unlink()
    demo.make_home(place.folder)


def _profiles(place: Place) -> None:
    """A home with two profiles."""
    make_fixture(place.folder / "profiles" / "work", home=True)
    make_fixture(place.folder / "profiles" / "play", damage=["session-counter-drift"], home=True)


def _full(place: Place) -> None:
    """What lies beside a store of some age."""
    _leftovers(place)
    taking.back_up(resolve(str(place.folder)), taking.BackupOptions())


def _named_by_digest(place: Place, file: Path) -> None:
    """The makers name files by the digest of the session that has them."""
    connection = apsw.Connection(str(place.folder / "state.db"))
    names = [str(name) for (name,) in connection.execute("SELECT id FROM sessions WHERE id LIKE '%_000000'")]
    connection.close()
    file.write_text(names[0], "utf-8")


@dataclass(frozen=True, slots=True)
class Example:
    """A home to make; `damage` None is two findings of the runbook's class, without `shape` the first that can have it.

    `sessions` come beside the healthy ones that every fixture has, whose ids `sql` names; it runs with foreign keys off, then
    `also`. `before` runs in the empty home. `beside` is what runs beside it, and yields words that are other ones in each run.
    `settings` are constants of this tool and what they are in the meantime. `reachable`: every user can get to the home.
    """

    damage: tuple[str, ...] | None = None
    shape: str = ""
    sessions: int = 0
    sql: str = ""
    also: Also | None = None
    settings: Mapping[str, object] = field(default_factory=dict)
    before: Also | None = None
    beside: Beside = _nobody
    reachable: bool = False


def _case(path: str, name: str) -> Example:
    """The damage of a case of a class, on the same shape."""
    table = tomllib.loads((CHECKOUT / "tests" / "cases" / f"{path}.toml").read_text("utf-8"))
    (case,) = (case for case in table["case"] if case["name"] == name)
    return Example(damage=(), shape=case["shape"], sql=case["damage"])


FAILING = ("orphaned-messages", "missing-parent-session")
LOST, CHILD = "20260604_102640_000000", "20260604_110640_000000"

EXAMPLES: Mapping[str, Example] = {
    "README#demo": Example(damage=(), also=_demo),
    "README#fixtures": Example(damage=(), also=lambda place: (place.folder / "fixtures").mkdir()),
    "first-response": Example(damage=FAILING, also=_logs("agent.log", LOST, CHILD)),
    "reference": Example(damage=()),
    "procedures/foreign_key_failure": Example(damage=FAILING, also=_logs("agent.log", LOST, CHILD)),
    "procedures/after_an_upgrade": Example(damage=()),
    "procedures/after_an_upgrade#upgraded": Example(
        damage=("hidden-by-upgrade=2",), shape="22", also=_before_the_upgrade
    ),
    "procedures/disk_full": Example(
        damage=("reclaimable-space",),
        also=_full,
        settings={"hermes_dbtools.damage.storage.leftover_files.GRACE_SECONDS": 0},
    ),
    "procedures/database_malformed": Example(
        damage=("structural-damage:index",), sessions=50, before=_backed_up(50), also=_bad_leaf
    ),
    "procedures/gateway_will_not_start_after_deleting_sessions": Example(
        shape="runtime",
        damage=("orphaned-messages=2", "dangling-routing=2", "orphaned-ledger-rows=2"),
        also=_logs("gateway.log", LOST),
    ),
    "procedures/ci_on_fixtures": Example(damage=(), also=_project),
    "procedures/many_hosts": Example(damage=("orphaned-messages=2",), also=_profiles),
    "lineage/activity_after_end": Example(
        sql="UPDATE messages SET timestamp = timestamp + 2000 WHERE session_id = '20260529_012640_ef2d12'"
    ),
    "lineage/branched_root_leftovers": Example(
        damage=(),
        shape="runtime",
        sql="""
        UPDATE sessions SET model_config = '{"_branched_from": "gone", "_reset_from": "gone too"}'
         WHERE id = '20260528_222640_d4735e';
        UPDATE sessions SET ended_at = 1780026000.0, end_reason = 'branched' WHERE id = '20260529_032640_790269';
        INSERT INTO state_meta (key, value) VALUES
          ('gateway.retired_session.v1.gone', '{}'),
          ('gateway.local_policy.v1:gone', '{"session_id": "gone", "entry": {"session_id": "gone"}}');
        INSERT INTO gateway_routing (scope, session_key, entry_json, updated_at) VALUES
          ('', 'agent:main:telegram:dm:2', '{"session_key": "agent:main:telegram:dm:2", "session_id": "gone"}', 1780000000),
          ('', 'agent:main:telegram:dm:3', '{"session_key": "agent:main:telegram:dm:3", "session_id": "gone"}', 1780000000);
        """,
    ),
    "lineage/hidden_sessions": Example(
        sql="""
        UPDATE sessions SET parent_session_id = '20260528_212640_6b86b2',
                            model_config = '{"_delegate_from": "20260528_212640_6b86b2"}'
         WHERE id = '20260528_222640_d4735e'
        """
    ),
    "lineage/lineage_cycles": Example(
        damage=(),
        sql="""
        UPDATE sessions SET parent_session_id = '20260528_222640_d4735e' WHERE id = '20260528_212640_6b86b2';
        UPDATE sessions SET parent_session_id = '20260528_212640_6b86b2' WHERE id = '20260528_222640_d4735e';
        """,
    ),
    "lineage/placeholder_sessions": Example(
        damage=("placeholder-sessions",),
        sql="""
        INSERT INTO sessions (id, source, started_at, message_count)
        VALUES ('20260529_021320_0badc0', 'unknown', 1780020800, 2);
        INSERT INTO messages (session_id, role, content, timestamp) VALUES
          ('20260529_021320_0badc0', 'user', 'look it up', 1780020801),
          ('20260529_021320_0badc0', 'assistant', 'found', 1780020802);
        INSERT INTO messages (session_id, role, content, timestamp, tool_calls)
        VALUES ('20260528_222640_d4735e', 'assistant', '', 1780020790,
                '[{"id": "call_d", "type": "function", "function": {"name": "delegate_task", "arguments": "{}"}}]');
        INSERT INTO messages (session_id, role, content, timestamp, tool_call_id, tool_name)
        VALUES ('20260528_222640_d4735e', 'tool',
                '{"results": [{"status": "completed", "session_id": "20260529_021320_0badc0"}]}',
                1780020803, 'call_d', 'delegate_task');
        UPDATE sessions SET message_count = message_count + 2, tool_call_count = tool_call_count + 1
         WHERE id = '20260528_222640_d4735e';
        """,
    ),
    "media/altered_images": Example(also=_picture_in_a_backup),
    "media/dangling_image_references": Example(also=_picture_elsewhere),
    "media/unreferenced_images": Example(
        settings={"hermes_dbtools.damage.media.unreferenced_images.GRACE_SECONDS": 0}
    ),
    "references/missing_system_prompt": Example(also=_older("runtime")),
    "references/orphaned_messages": Example(
        damage=("orphaned-messages=3",),
        sql="""
        INSERT INTO state_meta (key, value)
        SELECT 'gateway.retired_session.v1.' || m.session_id, '{}' FROM messages AS m
         WHERE m.session_id NOT IN (SELECT id FROM sessions) ORDER BY m.session_id DESC LIMIT 1
        """,
    ),
    "storage/split_wal": Example(damage=(), beside=_deleted_sidecars),
    "schema/interrupted_migration#version-ahead": _case(
        "schema/interrupted_migration", "the number of the next release on the tables of the last"
    ),
    "schema/lost_column_defaults": _case(
        "schema/lost_column_defaults", "the flag of live messages was added by its type alone"
    ),
    "schema/missing_columns": Example(before=_backed_up()),
    "schema/wrong_primary_key": _case("schema/wrong_primary_key", "usage with the key of before the tasks"),
    "storage/leftover_files": Example(
        damage=(),
        before=_backed_up(),
        also=_leftovers,
        settings={"hermes_dbtools.damage.storage.leftover_files.GRACE_SECONDS": 0},
    ),
    "storage/split_wal#foreign-wal": Example(
        damage=(), also=lambda place: foreign_wal(place.folder / "state.db", "schema")
    ),
    "storage/unsafe_storage": Example(
        damage=(), also=lambda place: (place.folder / "state.db").chmod(0o666), reachable=True
    ),
    "storage/unsafe_storage#other-owner": Example(
        damage=(),
        also=lambda place: crashed(place.folder / "state.db", "UPDATE state_meta SET value = value"),
    ),
    "storage/split_wal#hot-journal": Example(damage=("split-wal",)),
    "storage/structural_damage": Example(
        damage=("structural-damage:index",), sessions=50, before=_backed_up(50), also=_bad_leaf
    ),
    "storage/unreadable_file": Example(damage=("unreadable-file:truncated",), before=_backed_up()),
    "values/invalid_json": Example(
        sql="UPDATE sessions SET model_config = substr(model_config, 1, 12) WHERE id = '20260528_232640_4e0740'",
        also=_older("22"),
    ),
}
"""By the path of the runbook, where two findings of its class are not what it is about."""


@contextmanager
def home(path: str, folder: Path) -> Iterator[Place]:
    """The home of a runbook, `path` as it lies under runbooks/ without its ending, or of one part of it (`path#part`)."""
    example = EXAMPLES.get(path, Example())
    chosen = reachable_folder() if example.reachable else nullcontext(folder)
    with chosen as place, _furnished(Place(place), example, path) as furnished:
        yield furnished


@contextmanager
def _furnished(place: Place, example: Example, path: str) -> Iterator[Place]:
    if example.before is not None:
        example.before(place)
    usual = (f"{path.rpartition('/')[2].replace('_', '-')}=2",)
    damage = usual if example.damage is None else example.damage
    _make(place, (example.shape,) if example.shape else SHAPES, damage, example.sessions)
    if example.sql:
        connection = apsw.Connection(str(place.folder / "state.db"))
        connection.execute("PRAGMA foreign_keys = OFF")
        connection.execute(example.sql)
        connection.close()
    if example.also is not None:
        example.also(place)
    for file in place.folder.rglob("*"):
        if file.is_file() and not file.is_symlink() and not KEPT.search(str(file)):
            os.utime(file, (OLD, OLD))
    with example.beside(place) as values, pytest.MonkeyPatch.context() as patch:
        for name, value in example.settings.items():
            patch.setattr(name, value)
        yield replace(place, values=values)


def _make(place: Place, shapes: Sequence[str], damage: Sequence[str], sessions: int) -> None:
    for shape in shapes:
        try:
            make_fixture(place.folder, shape=shape, damage=damage, sessions=sessions, home=True, force=True)
            return
        except UsageError:
            if shape == shapes[-1]:
                raise
