"""Deletes of sessions that hold very many retained images, killed at any stage, and what answers their requests afterwards."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import apsw
import pytest

from hermes_dbtools import delete_sessions, make_plan, retirement, scan, undo
from hermes_dbtools.apply import ApplyOptions, apply_plan
from hermes_dbtools.damage.media import retired_media_leftovers
from hermes_dbtools.model import Deletion
from hermes_dbtools.plan import PlanOptions
from hermes_dbtools.scanning import ScanOptions
from hermes_dbtools.undoing import UndoOptions, choose_receipt, history
from tests.media import Entry, MediaHome, media_home
from tests.repairs import NOW
from tests.running import CHECKOUT
from tests.shapes.make import execute, execute_many

DOOMED, FIRST = 40, 10**9
LEDGER = """
INSERT INTO session_admissions
       (admission_id, request_id, principal_id, target_session_id, lineage_json, payload_json, payload_digest, intent,
        status, outcome, owner_epoch, generation)
VALUES (?, ?, 'api', ?, '[]', ?, ?, 'queue', 'terminal', 'completed', 1, 1)
"""


@dataclass(frozen=True, slots=True)
class Crowd:
    """A home whose doomed sessions hold images; the paths of those that may go, and of those that must stay."""

    media: MediaHome
    doomed: tuple[str, ...]
    free: tuple[str, ...]
    kept: tuple[str, ...]
    marked: tuple[str, ...]

    def delete(self) -> Deletion:
        return delete_sessions(self.doomed, self.media.home, now=NOW)


def crowd(folder: Path, images: int, shape: str = "media") -> Crowd:
    """Each image is held by a request of its own; some are shared, mentioned elsewhere, or hard links of held files.

    One is missing and one is a link.
    """
    media = media_home(folder, shape)
    doomed = tuple(f"api {number:02}" for number in range(DOOMED))
    survivor = media.sessions.plain[0]
    execute_many(
        media.database,
        "INSERT INTO sessions (id, source, started_at) VALUES (?, 'api_server', 1780000000)",
        [(one,) for one in doomed],
    )
    free, kept, marked, rows, shared, mentioned = [], [], [], [], [], []
    notes: dict[str, list[str]] = {one: [] for one in doomed}
    for number in range(images):
        entry, session = media.store(str(number).encode()), doomed[number % DOOMED]
        path = Path(entry["path"])
        rows.append(request(number, session, entry))
        notes[session].append(f"[Image attached at: {path}]")
        if number == 3:
            path.unlink()
            continue
        if number == 4:
            path.rename(folder / "elsewhere.png")
            path.symlink_to(folder / "elsewhere.png")
        elif number % 10 == 0:
            shared.append(entry)
        elif number % 10 == 1:
            mentioned.append(str(path))
        elif number % 100 == 2:
            held = media.store(f"held {number}".encode())
            shared.append(held)
            path.unlink()
            os.link(held["path"], path)
        else:
            free.append(str(path))
            continue
        kept.append(str(path))
        marked.append(retirement.retired_media_key(str(path)))
    execute_many(media.database, LEDGER, rows)
    execute_many(
        media.database,
        "INSERT INTO messages (session_id, role, content, timestamp) VALUES (?, 'user', ?, 1780000001)",
        [(one, "\n".join(said)) for one, said in notes.items()],
    )
    media.admit(*shared, target_session_id=survivor)
    media.say(json.dumps(mentioned).replace("/", "\\/"), survivor, active=0)
    return Crowd(media, doomed, tuple(free), tuple(kept), tuple(sorted(marked)))


def request(number: int, session: str, entry: Entry) -> tuple[object, ...]:
    """A settled request with one image, as a row of the ledger."""
    payload = {"text": "look", "api_turn_v1": {"media": [entry]}}
    digest = retirement.fingerprint(session, {"input": payload, "intent": "queue"})
    return (f"{number + FIRST:032x}", f"responses:key {number}", session, json.dumps(payload), digest)


def marks(media: MediaHome) -> tuple[str, ...]:
    sql = "SELECT key FROM state_meta WHERE key GLOB 'gateway.media.retired.v1.*' ORDER BY key"
    return tuple(str(key) for (key,) in execute(media.database, sql))


def assert_deleted(crowd: Crowd, done: Deletion) -> None:
    """The right files are gone, every other is there, and only what stays is marked."""
    assert done.deleted == crowd.doomed
    assert [path for path in crowd.free if os.path.lexists(path)] == []
    assert [path for path in crowd.kept if not os.path.lexists(path)] == []
    assert marks(crowd.media) == crowd.marked
    (receipt,) = done.receipts
    assert receipt.status == "committed"
    assert sorted(file.path for file in receipt.trash) == sorted(crowd.free)
    assert all(not file.left for file in receipt.trash)


@contextmanager
def traced() -> Iterator[dict[str, int]]:
    """The statements of every connection that is opened meanwhile, with the most bindings that each had."""
    seen: dict[str, int] = {}

    def trace(_cursor: apsw.Cursor, sql: str, bindings: object) -> bool:
        count = len(bindings) if isinstance(bindings, dict | tuple | list) else 0
        seen[sql] = max(seen.get(sql, 0), count)
        return True

    def hook(connection: apsw.Connection) -> None:
        connection.exec_trace = trace

    apsw.connection_hooks.append(hook)
    try:
        yield seen
    finally:
        apsw.connection_hooks.remove(hook)


def test_a_thousand_and_ten_thousand_images_cost_the_same_statements(tmp_path: Path) -> None:
    longest, most, seconds = [], [], []
    for images in (1_000, 10_000):
        one = crowd(tmp_path / str(images), images)
        started = time.process_time()
        with traced() as statements:
            done = one.delete()
        seconds.append(time.process_time() - started)
        assert_deleted(one, done)
        longest.append(max(len(sql) for sql in statements if "hermes_dbtools.repair" not in sql))
        most.append(max(statements.values()))
    assert longest[0] == longest[1]
    assert most[0] == most[1] < 40
    assert seconds[1] < 30 * seconds[0] + 1, "ten times the images; a cost by pairs would be a hundred times"


def test_an_undo_gives_two_thousand_images_back(tmp_path: Path) -> None:
    one = crowd(tmp_path / "home", 2_000)
    one.delete()
    receipt = undo(one.media.home, choose_receipt(one.media.home, None), UndoOptions(now=NOW))
    assert receipt.status == "undone"
    assert [path for path in (*one.free, *one.kept) if not os.path.lexists(path)] == []
    assert marks(one.media) == ()


# Leftovers of a delete of the store itself, at the same scale


def test_what_a_failed_clean_up_left_of_three_thousand_images_is_collected(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retired_media_leftovers, "KEYS_AT_ONCE", 1_000)
    one = crowd(tmp_path / "home", 3_000)
    media = one.media
    for table, column in (("session_admissions", "target_session_id"), ("messages", "session_id")):
        execute(media.database, f"DELETE FROM {table} WHERE {column} GLOB 'api ??'")
    entries: list[Entry] = [
        {"path": path, "sha256": Path(path).parent.name, "size": 1} for path in (*one.free, *one.kept)
    ]
    execute_many(
        media.database,
        "INSERT INTO state_meta (key, value) VALUES (?, ?)",
        [(retirement.retired_media_key(entry["path"]), json.dumps(entry)) for entry in entries],
    )
    select = ScanOptions(select=("retired-media-leftovers",), limit=None)
    with traced() as statements:
        (report,) = scan((media.home.root,), select).databases
        plan = make_plan(report, PlanOptions(max_rows=20_000))
        receipt = apply_plan(media.home, plan, ApplyOptions())
    assert max(statements.values()) < 40
    assert sorted(file.path for file in receipt.trash) == sorted(one.free)
    assert [path for path in one.free if os.path.lexists(path)] == []
    assert [path for path in one.kept if not os.path.lexists(path)] == []
    assert marks(media) == one.marked


# Killed


def killed(media: MediaHome, place: str, *ids: str) -> None:
    command = [
        sys.executable,
        "-m",
        "tests.sessions_crash_child",
        str(media.home.root),
        "delete",
        place,
        *ids,
    ]
    done = subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True, check=False)
    assert done.returncode == -signal.SIGKILL, done.stderr


STAGES = (
    "apply.commit:1:after",
    "files_back.finish:1:before",
    "trash.move_away:1:before",
    "named_files.named:1:before",
    "named_files.named:1:after",
    "trash._move:1:before",
    "trash._move:1:after",
    "trash._move:50:after",
    "trash._move:76:before",
    "trash._move:77:after",
    "trash.move_away:1:after",
)
"""From the COMMIT to the last file: a hundred images, of which 77 may go."""


@pytest.mark.parametrize("place", STAGES)
def test_killed_after_commit_the_next_run_finishes(place: str, tmp_path: Path) -> None:
    one = crowd(tmp_path / "home", 100)
    assert len(one.free) == 77
    killed(one.media, place, *one.doomed)
    assert delete_sessions("nobody", one.media.home, now=NOW).missing == ("nobody",)
    (receipt,) = history(one.media.home)
    assert receipt.status == "committed"
    assert [path for path in one.free if os.path.lexists(path)] == []
    assert [path for path in one.kept if not os.path.lexists(path)] == []
    assert marks(one.media) == one.marked
    undo(one.media.home, receipt, UndoOptions(now=NOW))
    assert [path for path in (*one.free, *one.kept) if not os.path.lexists(path)] == []


@pytest.mark.parametrize("place", ["apply.commit:1:after", "trash._move:1:after", "trash._move:50:after"])
def test_what_was_named_between_a_kill_and_the_next_run_stays(place: str, tmp_path: Path) -> None:
    one = crowd(tmp_path / "home", 100)
    media = one.media
    killed(media, place, *one.doomed)
    said, held, linked, changed = [path for path in one.free if os.path.lexists(path)][-4:]
    media.say(f"look at {said}")
    media.admit({"path": held, "sha256": Path(held).parent.name, "size": 1}, status="queued")
    other = media.store(b"held by another")
    Path(linked).unlink()
    os.link(other["path"], linked)
    media.admit(other, status="queued")
    Path(changed).write_bytes(b"rewritten")
    delete_sessions("nobody", media.home, now=NOW)
    (receipt,) = history(media.home)
    assert receipt.status == "committed"
    assert {file.path for file in receipt.trash if file.left} == {said, held, linked, changed}
    assert {path for path in one.free if os.path.lexists(path)} == {said, held, linked, changed}
    assert Path(changed).read_bytes() == b"rewritten"


# Requests sent again


def exact_retry(media: MediaHome, row: tuple[object, ...], **changed: object) -> dict[str, Any] | str:
    """What the store answers a request of a retired session with: its terminal admission, or why not.

    Read as upstream reads it (`hermes_state_terminal.py`): tombstone, identity, admission, digest of the input.
    """
    _admission, name, session, payload, _digest = row
    asked = {
        "principal": "api",
        "request": name,
        "session": session,
        "payload": json.loads(str(payload)),
    } | changed

    def value(key: str) -> str | None:
        rows = execute(media.database, "SELECT value FROM state_meta WHERE key = ?", [key])
        return str(rows[0][0]) if rows else None

    if value(retirement.TOMBSTONE + str(asked["session"])) is None:
        return "not retired"
    key = retirement.identity_key(str(asked["principal"]), str(asked["session"]), str(asked["request"]))
    if (identity := value(key)) is None:
        return "not found"
    kept: dict[str, Any] = json.loads(value(retirement.TERMINAL_ADMISSION + json.loads(identity)) or "")
    digest = retirement.fingerprint(str(asked["session"]), {"input": asked["payload"], "intent": "queue"})
    return kept if kept["payload_digest"] == digest else "conflict"


def admissions_of(media: MediaHome, name: object) -> list[str]:
    """Every admission, of living and deleted sessions, that a request of the Responses API has."""
    sql = """
    SELECT admission_id FROM session_admissions WHERE principal_id = 'api' AND request_id = :name
     UNION ALL
    SELECT json_extract(value, '$.admission_id') FROM state_meta
     WHERE key GLOB 'gateway.terminal_admission.v1.*' AND json_extract(value, '$.principal_id') = 'api'
       AND json_extract(value, '$.request_id') = :name
    """
    return [str(one) for (one,) in execute(media.database, sql, {"name": name})]


@pytest.mark.parametrize("shape", ["runtime", "media"])
def test_an_exact_retry_finds_its_receipt_and_no_other_request_does(shape: str, tmp_path: Path) -> None:
    one = crowd(tmp_path / "home", 200, shape)
    media = one.media
    columns = "admission_id, request_id, target_session_id, payload_json, payload_digest"
    rows = execute(
        media.database, f"SELECT {columns} FROM session_admissions WHERE target_session_id GLOB 'api ??'"
    )
    assert len(rows) == 200
    result = {"result": {"answer": "seen", "messages": ["what the user wrote"], "tools": []}}
    execute(
        media.database,
        "INSERT INTO state_meta (key, value) VALUES (?, ?)",
        [retirement.RESULT + str(rows[0][0]), json.dumps(result)],
    )
    one.delete()
    for row in rows:
        kept = exact_retry(media, row)
        assert isinstance(kept, dict)
        assert (kept["admission_id"], kept["status"], kept["outcome"]) == (row[0], "terminal", "completed")
        assert (kept["payload_json"], kept["lineage_json"]) == ("{}", "[]"), "nothing that the user wrote"
        assert admissions_of(media, row[1]) == [row[0]], "a look-up by the key alone finds it"
    ((left,),) = execute(
        media.database, "SELECT value FROM state_meta WHERE key = ?", [retirement.RESULT + str(rows[0][0])]
    )
    assert json.loads(str(left)) == {"result": {"answer": "seen", "messages": []}}
    assert exact_retry(media, rows[0], payload={"text": "other"}) == "conflict"
    assert exact_retry(media, rows[0], request="responses:fresh") == "not found"
    assert exact_retry(media, rows[0], principal="another") == "not found"
    assert exact_retry(media, rows[0], session=media.sessions.plain[0]) == "not retired"
    assert idempotency(media) == []


@pytest.mark.parametrize("shape", ["runtime", "media"])
def test_a_key_of_a_deleted_session_that_runs_elsewhere_is_found(shape: str, tmp_path: Path) -> None:
    one = crowd(tmp_path / "home", 100, shape)
    media = one.media
    one.delete()
    assert idempotency(media) == []
    media.admit(request_id="responses:key 7", status="terminal", outcome="completed")
    assert idempotency(media) == [("repeated-request", "error")]


def test_after_an_undo_a_retry_finds_the_living_admission(tmp_path: Path) -> None:
    one = crowd(tmp_path / "home", 100, "runtime")
    before = execute(one.media.database, "SELECT * FROM session_admissions ORDER BY seq")
    one.delete()
    undo(one.media.home, choose_receipt(one.media.home, None), UndoOptions(now=NOW))
    assert execute(one.media.database, "SELECT * FROM session_admissions ORDER BY seq") == before
    assert admissions_of(one.media, "responses:key 7") == [f"{FIRST + 7:032x}"]
    assert idempotency(one.media) == []


def idempotency(media: MediaHome) -> list[tuple[str, str]]:
    """What HDB904 finds."""
    (report,) = scan((media.home.root,), ScanOptions(select=("idempotency-leftovers",), now=NOW)).databases
    return [
        (finding.kind, finding.severity.word)
        for result in report.results
        for finding in result.findings
        if result.code == "HDB904"
    ]
