"""Which failures a log holds: real lines, logs of any form and length, and nothing that people have written."""

from __future__ import annotations

import gzip
import json
import os
import tomllib
import tracemalloc
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

from hermes_dbtools.damage import REGISTRY
from hermes_dbtools.explain import reading_log
from hermes_dbtools.explain.failures import failures
from hermes_dbtools.explain.findings import EVERY_WRITE, WHOLE_FILE
from hermes_dbtools.explain.log_lines import begins
from hermes_dbtools.explain.reading_log import BLOCK, MOST_IDS, LogReading, read_log, read_logs
from hermes_dbtools.model import UsageError
from hermes_dbtools.selection import selected

LINES: list[dict[str, Any]] = tomllib.loads(Path(__file__).with_name("explain_logs.toml").read_text("utf-8"))[
    "line"
]
ID = "20260528_222640_d4735e"
FK = f"2026-05-28 20:26:40,123 WARNING [{ID}] run_agent: Session DB append_message failed: FOREIGN KEY constraint failed\n"


def read(text: str | bytes) -> LogReading:
    return read_log("-", BytesIO(text.encode() if isinstance(text, str) else text))


@pytest.mark.parametrize("line", LINES, ids=lambda line: f"{line.get('kind', 'nothing')}")
def test_a_real_line_is_of_its_kind(line: dict[str, Any]) -> None:
    found = read(line["text"] + "\n")
    if "kind" not in line:
        assert found.kinds == {}
        return
    assert list(found.kinds) == [line["kind"]]
    (seen,) = found.kinds.values()
    assert list(seen.ids) == line.get("ids", [])
    assert (seen.count, seen.first, seen.last) == (1, line.get("time", ""), line.get("time", ""))
    assert list(seen.statements) == ([line["statement"]] if "statement" in line else [])


def test_every_kind_has_a_real_line_and_names_classes_that_exist() -> None:
    kinds = failures()
    assert len(kinds.by_kind) == len(kinds.failure)
    assert {line["kind"] for line in LINES if "kind" in line} >= set(kinds.by_kind)
    for failure in kinds.failure:
        assert selected(REGISTRY, (*kinds.structure, *failure.classes), ())
        assert all(word == word.lower() for word in failure.words)
        assert failure.means
        assert failure.calm


def test_the_classes_that_concern_every_session_exist() -> None:
    assert {damage.slug for damage in REGISTRY} >= EVERY_WRITE
    assert {damage.code for damage in REGISTRY} >= WHOLE_FILE


def test_no_word_is_shadowed_by_an_earlier_kind() -> None:
    for failure in failures().failure:
        for word in failure.words:
            assert failures().of(word) is failure, word


def test_repeats_are_counted_with_the_first_and_the_last_time() -> None:
    later = FK.replace("20:26:40", "21:00:01")
    other = FK.replace(ID, "20260528_212640_6b86b2").replace("20:26:40", "20:30:00")
    seen = read(FK + other + "something else\n" + later).kinds["foreign-key"]
    assert (seen.count, seen.first, seen.last) == (3, "2026-05-28 20:26:40", "2026-05-28 21:00:01")
    assert seen.ids == {ID: 2, "20260528_212640_6b86b2": 1}
    assert seen.statements == {"INSERT INTO messages": 3}


def test_a_traceback_belongs_to_the_entry_above_it() -> None:
    log = (
        f"2026-05-28 20:26:40,123 WARNING [{ID}] agent.turn_context: Incremental tool result persistence failed: 1\n"
        "Traceback (most recent call last):\n"
        '  File "hermes_state.py", line 1, in _do\n'
        "sqlite3.IntegrityError: FOREIGN KEY constraint failed\n"
    )
    seen = read(log).kinds["foreign-key"]
    assert (list(seen.ids), seen.first, list(seen.statements)) == (
        [ID],
        "2026-05-28 20:26:40",
        ["INSERT INTO messages"],
    )


def damaged(at: str) -> str:
    return f"2026-05-28 {at},001 WARNING cron.scheduler: Session DB creation failed: database disk image is malformed\n"


@pytest.mark.parametrize(
    ("before", "follows"),
    [
        ("20:26:40", "structure"),
        ("20:25:41", "structure"),
        ("20:25:39", ""),
        ("20:27:00", ""),
    ],
)
def test_a_foreign_key_failure_within_a_minute_after_damage_may_only_follow_from_it(
    before: str, follows: str
) -> None:
    assert read(damaged(before) * 3 + FK).kinds["foreign-key"].follows == follows


def test_damage_after_it_is_no_cause_and_undated_logs_go_by_their_order() -> None:
    assert read(FK + damaged("20:26:41")).kinds["foreign-key"].follows == ""
    undated = "database disk image is malformed\nFOREIGN KEY constraint failed\n"
    assert read(undated).kinds["foreign-key"].follows == "structure"


def test_what_people_wrote_is_never_taken_for_an_id() -> None:
    log = (
        "WARNING x: Title 'plan for session 2026plan' is already in use by session 20260528_202640_5feceb\n"
        "ERROR x: Could not decode to UTF-8 column 'content' with text 'failed for hunter2pass'\n"
        "WARNING x: turn lease contention on session 20260528_202640_5feceb: routing key agent:main:telegram:dm:1001 waits\n"
        "WARNING [agent:main:telegram:dm:1001] x: FOREIGN KEY constraint failed for session 1001\n"
        "WARNING x: Session DB transcript append failed for +49 170 1234567: FOREIGN KEY constraint failed\n"
    )
    assert list(read(log).ids) == ["20260528_202640_5feceb"]


def test_a_log_of_many_sessions_names_the_first_and_counts_the_others() -> None:
    log = "".join(FK.replace(ID, f"20260528_{number:06d}_abcdef") for number in range(MOST_IDS + 7))
    found = read(log)
    assert (len(found.ids), found.more_ids) == (MOST_IDS, 7)
    assert found.kinds["foreign-key"].count == MOST_IDS + 7


@pytest.mark.parametrize("filler", [b"x" * 100 + b"\n", b"x" * 101], ids=["lines", "one line"])
def test_a_long_log_is_read_in_little_memory(tmp_path: Path, filler: bytes) -> None:
    path = tmp_path / "long.log"
    with path.open("wb") as file:
        for place in range(24):
            file.write(filler * (BLOCK // len(filler) + place) + b"\n" + FK.encode())
    tracemalloc.start()
    try:
        found = read_log(str(path))
        _now, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert found.kinds["foreign-key"].count == 24
    assert found.bytes == path.stat().st_size
    assert peak < 12 * BLOCK


def test_bytes_that_are_no_text_are_no_obstacle() -> None:
    found = read(b"\xff\xfd \xc3\x28 noise\r\n" + FK.encode() + b"\xe4" * 50)
    assert found.kinds["foreign-key"].ids == {ID: 1}


BAD: dict[str, tuple[bytes, str]] = {
    "empty": (b"", "empty"),
    "binary": (b"SQLite format 3\0" + bytes(84), "NUL"),
    "compressed": (b"\x1f\x8b\x08\0rest", "zcat"),
    "utf16": ("WARNING".encode("utf-16"), "UTF-16"),
}


@pytest.mark.parametrize("name", BAD)
def test_what_is_no_log_is_refused(tmp_path: Path, name: str) -> None:
    content, told = BAD[name]
    path = tmp_path / f"{name}.log"
    path.write_bytes(content)
    for stdin in (None, BytesIO(content)):
        with pytest.raises(UsageError, match=told):
            read_log(str(path), stdin)


def test_folders_pipes_and_missing_files_are_refused_without_waiting(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for name, told in (("", "folder"), ("pipe", "regular"), ("gone", "no such"), ("a\0b", "null")):
        with pytest.raises(UsageError, match=told):
            read_log(str(tmp_path / name))


API = "api-7f3a9c2e"
RAN = "Session DB append_message failed: FOREIGN KEY constraint failed"
ENTRY = f"2026-05-28 20:26:40,123 WARNING [{API}] run_agent: {RAN}"
COLLECTED = {
    "coloured": f"2026-05-28 20:26:40,123 \x1b[33mWARNING\x1b[0m [{API}] run_agent: {RAN}",
    "coloured whole": f"\x1b[1;33m{ENTRY}\x1b[0m",
    "grep": ENTRY.replace("FOREIGN KEY", "\x1b[01;31m\x1b[KFOREIGN\x1b[m\x1b[K KEY"),
    "crlf": f"{ENTRY}\r",
    "docker": json.dumps({"log": f"{ENTRY}\n", "stream": "stderr", "time": "2026-05-28T18:26:40.1Z"}),
    "compose": f"hermes-1  | {ENTRY}",
    "kubernetes": f"2026-05-28T18:26:41.1Z stderr F {ENTRY}".replace("18:26:41.1Z", "20:26:40.1Z"),
    "journal": json.dumps({"MESSAGE": ENTRY, "PRIORITY": "4", "_PID": "12"}),
    "structured": json.dumps(
        {"timestamp": "2026-05-28T20:26:40Z", "level": "warn", "session_id": API, "message": RAN}
    ),
    "structured, by a service manager": "May 28 20:26:40 host hermes[8]: "
    + json.dumps(
        {
            "ts": "2026-05-28 20:26:40",
            "levelname": "ERROR",
            "session": API,
            "msg": "Session DB append_message failed",
            "exc_info": "Traceback:\n  x\nsqlite3.IntegrityError: FOREIGN KEY constraint failed",
        }
    ),
}


@pytest.mark.parametrize("name", COLLECTED)
def test_a_line_is_the_same_whatever_collected_it(name: str) -> None:
    seen = read(f"{COLLECTED[name]}\n").kinds["foreign-key"]
    assert (seen.count, list(seen.ids), seen.first) == (1, [API], "2026-05-28 20:26:40")
    assert list(seen.statements) == ["INSERT INTO messages"]


@pytest.mark.parametrize(
    "line",
    [
        "2026-05-28 20:26:40,123 \x1b[32mINFO\x1b[0m [x] run_agent: msg='why FOREIGN KEY constraint failed?'",
        json.dumps(
            {"level": "info", "time": "2026-05-28T20:26:40Z", "message": "FOREIGN KEY constraint failed?"}
        ),
        json.dumps(
            {"log": "2026-05-28 20:26:40 INFO x: FOREIGN KEY constraint failed?\n", "stream": "stdout"}
        ),
        json.dumps({"level": "error", "message": "x", "prompt": "FOREIGN KEY constraint failed?"}),
    ],
)
def test_what_people_asked_about_a_failure_is_none(line: str) -> None:
    assert read(f"{line}\n").kinds == {}


@pytest.mark.parametrize(
    "wrapped",
    [
        lambda line: json.dumps({"log": f"{line}\n", "stream": "stderr", "time": "2026-05-28T20:26:41Z"}),
        lambda line: f"2026-05-28T20:26:41.123456789Z stderr F {line}",
        lambda line: f"2026-05-28T20:26:41+0200 host hermes[811]: {line}",
    ],
    ids=["docker", "kubernetes", "journal"],
)
def test_a_traceback_belongs_to_its_entry_though_every_line_has_a_time(wrapped: Callable[[str], str]) -> None:
    lines = [
        f"2026-05-28 20:26:40,123 ERROR [{API}] run_agent: a turn failed",
        "Traceback (most recent call last):",
        '  File "hermes_state.py", line 1, in _do',
        "sqlite3.IntegrityError: FOREIGN KEY constraint failed",
    ]
    seen = read("".join(f"{wrapped(line)}\n" for line in lines)).kinds["foreign-key"]
    assert list(seen.ids) == [API]


def test_a_log_without_times_is_looked_through_once(monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[bytes] = []

    def counted(line: bytes) -> bool:
        looked.append(line)
        return begins(line)

    monkeypatch.setattr(reading_log, "begins", counted)
    found = read(f"a line\nsqlite3.IntegrityError: {RAN}\n" * 2000)
    assert found.kinds["foreign-key"].count == 2000
    assert len(looked) < 3 * 4000


def test_a_rotated_log_is_one(tmp_path: Path) -> None:
    """Its newest file is given first, as a shell sorts them, and the one that was just begun is empty."""
    older = FK.replace("2026-05-28", "2026-05-27").replace(ID, API)
    (tmp_path / "errors.log").write_bytes(b"")
    (tmp_path / "errors.log.1").write_text(FK)
    (tmp_path / "errors.log.2.gz").write_bytes(gzip.compress(older.encode()))
    found = read_logs([str(path) for path in sorted(tmp_path.iterdir())])
    seen = found.kinds["foreign-key"]
    assert (found.name, found.bytes) == ("errors.log and 2 more", len(FK + older))
    assert (seen.first, seen.last) == ("2026-05-27 20:26:40", "2026-05-28 20:26:40")
    assert set(seen.ids) == {ID, API}


def test_nothing_follows_from_the_end_of_another_file(tmp_path: Path) -> None:
    for name, line in (
        ("a.log", "database disk image is malformed\n"),
        ("b.log", "FOREIGN KEY constraint failed\n"),
    ):
        (tmp_path / name).write_text(line)
    found = read_logs([str(tmp_path / "a.log"), str(tmp_path / "b.log")])
    assert found.kinds["foreign-key"].follows == ""


def test_a_log_that_was_cut_to_nothing_while_it_was_written_is_read() -> None:
    assert read(bytes(3 * 4096) + FK.encode()).kinds["foreign-key"].ids == {ID: 1}


def test_a_compressed_log_that_is_cut_off_is_one_clear_line(tmp_path: Path) -> None:
    path = tmp_path / "errors.log.gz"
    whole = gzip.compress(FK.encode() * 500)
    for content in (whole[:-9], whole[:20], whole[:12] + bytes(40)):
        path.write_bytes(content)
        with pytest.raises(UsageError, match="compressed, and cut off or damaged"):
            read_log(str(path))
