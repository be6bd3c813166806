"""Deleting sessions of a runtime: the ledger retired, retained images freed, and a kill at any place made good."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from hermes_dbtools import retirement
from hermes_dbtools.home import Home
from hermes_dbtools.undoing import history
from tests.deleting import LEDGERS, admission, delete, home_of, keys, meta, names_of, sessions, worker
from tests.media import Entry, MediaHome, media_home
from tests.repairs import (
    BRANCH,
    DELEGATE,
    NOW,
    ROOT,
    SECOND,
    broken_keys,
    digests,
    files,
    look,
    search_is_sound,
    state,
    take_back,
)
from tests.running import CHECKOUT
from tests.shapes.make import execute

TOMBSTONE = retirement.TOMBSTONE
SECRET = "secret words"


def retired_home(folder: Path, shape: str) -> Home:
    """A home whose root and delegate have settled requests, workers, results and receipts of changes."""
    home = home_of(folder, shape)
    admission(home, ROOT, number="a1")
    admission(home, DELEGATE, number="a2")
    worker(home, DELEGATE)
    meta(
        home, retirement.RESULT + "a1", {"result": {"answer": "yes", "messages": [SECRET], "tools": [SECRET]}}
    )
    meta(home, retirement.MUTATION + "m1", {"digest": "d", "result": {"session_id": ROOT, "title": SECRET}})
    meta(home, f"gateway.api.settings.v1.{ROOT}", {"x": 1})
    meta(home, f"gateway.api.binding.v1.{ROOT}", {"x": 1})
    meta(home, "gateway.api.conversation.v1.mine", ROOT)
    meta(home, "gateway.api.conversation.v1.other", SECOND)
    return home


@pytest.mark.parametrize("shape", LEDGERS)
def test_the_ledger_is_retired_and_a_tombstone_written(shape: str, tmp_path: Path) -> None:
    home = retired_home(tmp_path / "home", shape)
    before = state(home.database)
    done = delete(home, ROOT)
    assert done.also_deleted == (DELEGATE,)
    for table, column in (("session_admissions", "target_session_id"), ("worker_executions", "session_id")):
        sql = f"SELECT count(*) FROM {table} WHERE {column} IN (?, ?)"
        assert execute(home.database, sql, (ROOT, DELEGATE)) == [(0,)]
    assert execute(home.database, "SELECT count(*) FROM worker_receipts WHERE execution_id = 'w1'") == [(0,)]
    assert keys(home, TOMBSTONE) == {TOMBSTONE + ROOT, TOMBSTONE + DELEGATE}
    assert keys(home, "gateway.api.") == {"gateway.api.conversation.v1.other"}
    stored: dict[str, str] = dict(execute(home.database, "SELECT key, value FROM state_meta"))
    kept = json.loads(stored[retirement.TERMINAL_ADMISSION + "a1"])
    assert (kept["payload_json"], kept["target_session_id"], kept["request_id"]) == ("{}", ROOT, "request a1")
    identity = retirement.identity_key("api", ROOT, "request a1")
    assert json.loads(stored[identity]) == "a1"
    assert json.loads(stored[retirement.TERMINAL_WORKER + "w1"])["session_id"] == DELEGATE
    assert json.loads(stored[retirement.RESULT + "a1"]) == {"result": {"answer": "yes", "messages": []}}
    assert not any(SECRET in value for value in stored.values())
    assert broken_keys(home.database) == []
    found = {r.code for r in look(home).results if r.status == "damaged" and r.severity > 1}
    assert found == set(), "nothing that a delete of ours leaves is a finding"
    take_back(home)
    assert state(home.database) == before


@pytest.mark.parametrize("shape", LEDGERS)
def test_a_column_that_a_terminal_key_would_lose_refuses(shape: str, tmp_path: Path) -> None:
    home = retired_home(tmp_path / "home", shape)
    execute(home.database, "ALTER TABLE session_admissions ADD COLUMN news TEXT")
    done = delete(home, ROOT, SECOND)
    assert done.deleted == (SECOND,)
    assert [one.key for one in done.skipped] == [ROOT]
    assert "news" in done.skipped[0].reason


@pytest.mark.parametrize("shape", LEDGERS)
def test_a_detached_child_gets_a_new_revision(shape: str, tmp_path: Path) -> None:
    home = home_of(tmp_path / "home", shape)
    sql = "SELECT runtime_revision FROM sessions WHERE id = ?"
    ((before,),) = execute(home.database, sql, (BRANCH,))
    delete(home, ROOT)
    assert execute(home.database, sql, (BRANCH,)) == [(before + 1,)]


@pytest.mark.parametrize("shape", LEDGERS)
def test_a_local_conversation_goes_as_a_whole(shape: str, tmp_path: Path) -> None:
    home = home_of(tmp_path / "home", shape)
    policy = {"entry": {"session_id": SECOND}, "lineage": [ROOT, "never-there"], "session_id": ROOT}
    meta(home, f"gateway.local_policy.v1:{ROOT}", policy)
    done = delete(home, SECOND)
    assert set(done.also_deleted) == {ROOT, DELEGATE}
    assert keys(home, "gateway.local_policy") == set()


# Retained images


def pictures(media: MediaHome, count: int, first: int = 0) -> list[Entry]:
    return [media.store(b"picture %d" % number) for number in range(first, first + count)]


def paths(entries: list[Entry]) -> list[Path]:
    return [Path(entry["path"]) for entry in entries]


def test_images_that_only_the_deleted_session_holds_are_freed(tmp_path: Path) -> None:
    media = media_home(tmp_path / "home")
    one, other = media.sessions.plain[:2]
    own, shared, mentioned, escaped, linked, lost, link = pictures(media, 7)
    media.admit(own, shared, mentioned, escaped, linked, lost, link, target_session_id=one)
    media.admit(shared, target_session_id=other)
    held = media.store(b"held by the other")
    media.admit(held, target_session_id=other)
    media.say(f"[Image attached at: {mentioned['path']}]", other)
    media.say(json.dumps([escaped["path"]]).replace("/", "\\/"), other)
    Path(linked["path"]).unlink()
    os.link(held["path"], linked["path"])
    Path(lost["path"]).unlink()
    Path(link["path"]).unlink()
    Path(link["path"]).symlink_to(held["path"])
    before, here = state(media.database), files(media.home)
    (receipt,) = delete(media.home, one).receipts
    assert here - files(media.home) == {str(Path(own["path"]).relative_to(media.home.root))}
    assert [file.path for file in receipt.trash] == [own["path"]]
    wishes = {
        retirement.retired_media_key(entry["path"]) for entry in (shared, mentioned, escaped, linked, link)
    }
    assert keys(media.home, retirement.RETIRED_MEDIA) == wishes
    take_back(media.home)
    assert (state(media.database), files(media.home) >= here) == (before, True)


def test_images_that_all_their_sessions_give_up_are_freed(tmp_path: Path) -> None:
    media = media_home(tmp_path / "home")
    one, other = media.sessions.plain[:2]
    shared = pictures(media, 3)
    media.admit(*shared, target_session_id=one)
    media.admit(*shared, target_session_id=other)
    media.say(f"[Image attached at: {shared[0]['path']}]", one)
    delete(media.home, one)
    assert all(path.exists() for path in paths(shared))
    assert len(keys(media.home, retirement.RETIRED_MEDIA)) == 3
    delete(media.home, other)
    assert not any(path.exists() for path in paths(shared))
    assert keys(media.home, retirement.RETIRED_MEDIA) == set()


def test_an_image_that_something_names_after_all_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from hermes_dbtools import apply

    media = media_home(tmp_path / "home")
    one, other = media.sessions.plain[:2]
    named, free = pictures(media, 2)
    media.admit(named, free, target_session_id=one)
    real = apply.commit

    def commit(connection: object) -> None:
        real(connection)  # type: ignore[arg-type]
        media.say(f"[Image attached at: {named['path']}]", other)

    monkeypatch.setattr(apply, "commit", commit)
    (receipt,) = delete(media.home, one).receipts
    assert {file.path: file.left for file in receipt.trash} == {
        named["path"]: "something names it",
        free["path"]: "",
    }
    assert [path.exists() for path in paths([named, free])] == [True, False]


def test_a_thousand_images_of_one_request_go(tmp_path: Path) -> None:
    """SQLite refuses 1,000 terms in one expression: upstream's delete once broke on exactly that."""
    media = media_home(tmp_path / "home")
    one, other = media.sessions.plain[:2]
    entries = pictures(media, 1100)
    media.admit(*entries, target_session_id=one)
    media.admit(*entries[:100], target_session_id=other)
    (receipt,) = delete(media.home, one).receipts
    assert len(receipt.trash) == 1000
    assert [path.exists() for path in paths(entries)] == [True] * 100 + [False] * 1000
    take_back(media.home)
    assert all(path.exists() for path in paths(entries))


# Killed


def killed(home: Home, operation: str, place: str, *ids: str) -> None:
    command = [sys.executable, "-m", "tests.sessions_crash_child", str(home.root), operation, place, *ids]
    done = subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True, check=False)
    assert done.returncode == -signal.SIGKILL, done.stderr


@pytest.mark.parametrize(
    "place",
    [
        "apply.commit:1:after",
        "files_back.finish:1:before",
        "trash.move_away:1:before",
        "trash._move:1:before",
        "trash._move:1:after",
        "trash._move:3:after",
        "receipts.sync_folder:9:before",
        "trash.move_away:1:after",
    ],
)
def test_killed_before_the_last_file_has_moved_the_next_run_finishes(place: str, tmp_path: Path) -> None:
    home = home_of(tmp_path / "home", "runtime")
    before, here = state(home.database), files(home)
    killed(home, "delete", place, ROOT)
    assert sessions(home).isdisjoint({ROOT, DELEGATE})
    assert [receipt.status for receipt in history(home)] == ["committed"]
    assert delete(home, "nobody").missing == ("nobody",)
    assert here - files(home) == {f"sessions/{name}" for name in names_of(ROOT)}
    take_back(home)
    assert state(home.database) == before
    assert files(home) >= here


@pytest.mark.parametrize("place", ["apply.begin:1:after", "apply.mark:1:after", "apply.commit:1:before"])
def test_killed_before_commit_nothing_has_happened(place: str, tmp_path: Path) -> None:
    home = home_of(tmp_path / "home", "runtime")
    before, here = digests(home.database), files(home)
    killed(home, "delete", place, ROOT)
    assert digests(home.database) == before
    assert files(home) >= here
    assert delete(home, ROOT).deleted == (ROOT,)


@pytest.mark.parametrize("place", ["trash.give_back:1:after", "apply.commit:1:before"])
def test_an_undo_killed_before_commit_can_be_made_again(place: str, tmp_path: Path) -> None:
    home = home_of(tmp_path / "home", "runtime")
    before, here = state(home.database), files(home)
    delete(home, ROOT)
    after = digests(home.database)
    killed(home, "undo", place)
    assert digests(home.database) == after
    take_back(home)
    assert state(home.database) == before
    assert files(home) >= here


def test_an_undo_killed_after_commit_is_finished(tmp_path: Path) -> None:
    home = home_of(tmp_path / "home", "runtime")
    here = files(home)
    (receipt,) = delete(home, ROOT).receipts
    killed(home, "undo", "apply.commit:1:after")
    delete(home, "nobody")
    assert [receipt.status for receipt in history(home)] == ["undone"]
    assert files(home) >= here
    assert list((home.dbtools_dir / receipt.id / "trash").iterdir()) == []


# Beside a writer


def test_a_delete_waits_for_a_writer_and_no_longer_than_its_timeout(tmp_path: Path) -> None:
    home = home_of(tmp_path / "home", "22")
    program = (
        "import sqlite3, sys; c = sqlite3.connect(sys.argv[1], isolation_level=None); c.execute('BEGIN IMMEDIATE');"
        "print('held', flush=True); sys.stdin.read(); c.execute('COMMIT')"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program, str(home.database)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as writer:
        assert writer.stdout is not None
        assert writer.stdout.readline() == b"held\n"
        started = time.monotonic()
        with pytest.raises(Exception, match="another process is writing"):
            delete(home, ROOT)
        assert time.monotonic() - started < 60
        writer.communicate()
    search_is_sound(home.database, tmp_path / "checks")
    assert delete(home, ROOT).deleted == (ROOT,)
    assert NOW > 0
