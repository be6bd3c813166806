"""Backups beside a released store that appends all the time: each is whole, and holds what was said up to some moment."""

from __future__ import annotations

from pathlib import Path

import apsw
import pytest

from hermes_dbtools.backups import shelf, taking
from hermes_dbtools.home import resolve
from tests.real.judge import assert_appends, assert_clean, assert_found, listing, texts
from tests.real.lives import copy_of
from tests.real.looks import run
from tests.real.store import Store

DEADLINE = 300.0
"""Seconds that one answer of the store may take."""


def backed_up(path: Path) -> Path:
    """A backup as an operator makes one, at this moment."""
    ran = run("backup", path, "--format", "json")
    assert ran.code == 0, ran.err
    assert ran.document()["made"]
    return Path(ran.document()["path"])


def said(path: Path, session_id: str) -> list[str]:
    """What the session holds, and that the file is whole and counts it right."""
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert connection.execute("PRAGMA foreign_key_check").fetchall() == []
        find = "SELECT content FROM messages WHERE session_id = ? ORDER BY id"
        lines = [text for (text,) in connection.execute(find, (session_id,))]
        counter = "SELECT message_count FROM sessions WHERE id = ?"
        assert connection.execute(counter, (session_id,)).fetchall() == [(len(lines),)]
        return lines
    finally:
        connection.close()


@pytest.mark.parametrize(("release", "appends"), [("0.19.0", 10_000), ("0.20.4.1", 500)])
def test_all_of_many_appends_up_to_some_moment(release: str, appends: int, tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    with Store(path, release, deadline=DEADLINE) as store:
        store.call("create", session_id="busy")
        with store.appending("busy") as told:
            copies = [backed_up(path) for _number in range(3)]
            found = [said(copy, "busy") for copy in copies]
            while len(found[-1]) < appends:
                copies.append(backed_up(path))
                found.append(said(copies[-1], "busy"))
        assert told["errors"] == []
        whole = texts(store, "busy")
    assert whole == [f"beside {number}" for number in range(told["appended"])]
    assert [lines == whole[: len(lines)] for lines in found] == [True] * len(copies)
    first, length = copies[0], len(found[0])
    ran = run("restore", first, path, "--apply", "--yes")
    assert ran.code == 0, ran.err
    with Store(path, release) as store:
        assert texts(store, "busy") == whole[:length]
        assert_appends(store, "busy")
        assert_clean(store)


@pytest.mark.parametrize("release", ["0.13.0", "0.20.4.1"])
def test_a_restore_over_a_running_store_is_refused_and_over_a_stopped_one_it_is_whole(
    release: str, tmp_path: Path
) -> None:
    healthy = copy_of(release, tmp_path)
    chat = healthy.life.ids["chat"]
    done = taking.back_up(resolve(healthy.path), taking.BackupOptions())
    with Store(healthy.path, release) as store:
        before = (listing(store), texts(store, chat))
        store.call("append", session_id=chat, role="user", content="said after the backup")
        ran = run("restore", "latest", healthy.path, "--apply", "--yes")
        assert ran.code == 4
        assert f"(pid {store.pid})" in ran.err
        assert texts(store, chat) == [*before[1], "said after the backup"]
        store.kill()
    ran = run("restore", "latest", healthy.path, "--apply", "--yes")
    assert ran.code == 0, ran.err
    with Store(healthy.path, release) as store:
        assert (listing(store), texts(store, chat)) == before
        assert_clean(store)
    (replaced,) = [one for one in shelf.kept(resolve(healthy.path)) if one.kind == "replaced"]
    assert run("restore", replaced.name, healthy.path, "--apply", "--yes").code == 0
    with Store(healthy.path, release) as store:
        assert texts(store, chat) == [*before[1], "said after the backup"]
        assert_found(store, chat, "after")
    assert done.made
