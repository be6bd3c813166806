"""The one pass over content: one statement for all classes and shapes, a mark is a line, no value stops it."""

from __future__ import annotations

import json
import re
import shutil
from array import array
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import apsw
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hermes_dbtools import queries, sweep, tool_calls
from hermes_dbtools.model import Status
from hermes_dbtools.scanning import ScanOptions, scan
from hermes_dbtools.tool_calls import Call, Function, Pairing, read_calls
from tests.looking import looking
from tests.shapes.make import SHAPES, execute, execute_many, fill, fill_many, make

SESSIONS, EACH = 40, 25
THIRD = "20260528_222640_d4735e"
TEXT_MARKS = ("reference", "inline", "sentinel", "unnamed")


@contextmanager
def profiled() -> Iterator[list[tuple[str, int]]]:
    """Every statement that any connection runs meanwhile, with its steps through a whole table or index."""
    seen: list[tuple[str, int]] = []

    def note(event: dict[str, Any]) -> None:
        steps = event["stmt_status"]["SQLITE_STMTSTATUS_FULLSCAN_STEP"]
        seen.append((event["sql"], steps))

    def hook(connection: apsw.Connection) -> None:
        connection.trace_v2(apsw.SQLITE_TRACE_PROFILE, note)

    apsw.connection_hooks.append(hook)
    try:
        yield seen
    finally:
        apsw.connection_hooks.remove(hook)


@pytest.mark.parametrize("shape", ["11", "14", "22", "30", "31", "media"])
def test_a_scan_goes_through_the_content_of_all_messages_once(shape: str, tmp_path: Path) -> None:
    home = tmp_path / "home"
    (home / "sessions").mkdir(parents=True)
    path = make(home / "state.db", shape)
    fill(path)
    fill_many(path, SESSIONS, EACH, 300, nul_every=7)
    execute(path, "UPDATE messages SET content = 'see MEDIA:/gone/a.png;base64,' WHERE id % 50 = 1")
    execute(path, "UPDATE messages SET timestamp = timestamp - 90 WHERE id % 50 = 3")
    execute(path, "UPDATE messages SET tool_name = NULL WHERE role = 'tool' AND id % 3 = 0")
    with profiled() as seen:
        (report,) = scan((home,), ScanOptions(limit=None, now=1_790_000_000.0)).databases
    assert not [result for result in report.results if result.status is Status.COULD_NOT_LOOK]
    passes = [sql for sql, steps in seen if steps >= SESSIONS * EACH // 2 and re.search(r"\bcontent\b", sql)]
    assert len(passes) == 1
    assert ":reference" in passes[0]


def test_a_deep_scan_makes_the_pass_once_too(tmp_path: Path) -> None:
    path = make(tmp_path / "state.db", "22")
    fill(path)
    with profiled() as seen:
        scan((path,), ScanOptions(now=1_790_000_000.0, deep=True))
    assert sum(":reference" in sql for sql, _steps in seen) == 1


@pytest.mark.parametrize("shape", SHAPES)
def test_every_mark_has_a_bit_of_its_own_in_every_shape(shape: str, tmp_path: Path) -> None:
    path = make(tmp_path / "state.db", shape)
    with looking(path) as context:
        bits = sweep.marks(context)
        assert set(TEXT_MARKS) <= set(bits)
        assert sorted(bits.values()) == [1 << place for place in range(len(bits))]
        assert set(context.sweep.run(context).marked) == set(bits)


def test_a_new_mark_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = make(tmp_path / "state.db", "22")
    fill(path)
    folder = tmp_path / "sql"
    shutil.copytree(Path(__file__).parents[1] / "sql", folder)
    text = (folder / "sweep.sql").read_text("utf-8")
    line = "| iif(role = 'tool' AND content GLOB '*lines*', :in_lines, 0)\n               | iif(content LIKE"
    assert text.count("| iif(content LIKE") == 1
    (folder / "sweep.sql").write_text(text.replace("| iif(content LIKE", line), "utf-8")
    monkeypatch.setattr(queries, "resource", lambda _folder: folder)
    queries.load.cache_clear()
    try:
        with looking(path) as context:
            assert list(context.sweep.run(context).rows("in_lines"))[:3] == [3, 7, 11]
    finally:
        queries.load.cache_clear()


BEHIND_A_NUL = {"reference", "inline"}
"""What cannot be looked at behind a NUL byte is suspected of both, and read whole by who asks for it."""


@pytest.mark.parametrize(
    ("content", "marks"),
    [
        ("plain", set()),
        ("see MEDIA:/a/b.png", {"reference"}),
        ("[Image attached at: /a/b.png]", {"reference"}),
        ("\0json:" + json.dumps([{"type": "text", "text": "@image:/a/b.png"}]), BEHIND_A_NUL),
        ("before\0after @file:/a/b", BEHIND_A_NUL),
        ("before\0after", BEHIND_A_NUL),
        ("\0json:" + json.dumps([{"image_url": {"url": "data:image/png;base64,AAAA"}}]), BEHIND_A_NUL),
        (
            "\0json:" + json.dumps([{"type": "image", "source": {"type": "base64", "data": "AA"}}]),
            BEHIND_A_NUL,
        ),
        (json.dumps([{"image_url": {"url": "data:image/png;base64,AAAA"}}]), {"inline"}),
        (json.dumps([{"type": "image", "source": {"type": "base64", "data": "AA"}}]), {"inline"}),
        ("the word base64 alone", set()),
        ("", {"sentinel"}),
        (None, {"sentinel"}),
        (" (empty) ", {"sentinel"}),
        ("\0json:[]", {"sentinel", *BEHIND_A_NUL}),
        ("You just executed tool calls but returned nothing", {"sentinel"}),
    ],
)
@pytest.mark.parametrize("shape", ["11", "media"])
def test_text_is_marked_before_and_behind_a_nul_byte(
    shape: str, content: str | None, marks: set[str], tmp_path: Path
) -> None:
    path = make(tmp_path / "state.db", shape)
    fill(path)
    if "sentinel" not in marks and content:
        content += " " * 80  # a short one behind a NUL byte may be an empty one
    execute(path, "UPDATE messages SET content = ? WHERE id = 9", (content,))
    with looking(path) as context:
        done = context.sweep.run(context)
        assert {name for name in TEXT_MARKS if 9 in done.rows(name)} == marks


def test_no_value_stops_the_pass(tmp_path: Path) -> None:
    path = make(tmp_path / "state.db", "media")
    fill(path)
    columns = [name for (name,) in execute(path, "SELECT name FROM pragma_table_info('messages')")]
    bad: list[Any] = [b"\xff\x00\xfe", "\0", "[[[", float("inf"), 2**62, "", '"x"', "[7, null, {}]", "{}"]
    for column in columns:
        if column in ("id", "session_id", "role", "timestamp", "active", "compacted"):
            continue
        values = [(value, number) for number, value in enumerate(bad, start=1)]
        execute_many(path, f'UPDATE messages SET "{column}" = ? WHERE id = ?', values)
    with looking(path) as context:
        done = context.sweep.run(context)
        assert done.done
        assert context.sweep.run(context).passes == 1


def test_calls_are_counted_as_the_store_counts_them(tmp_path: Path) -> None:
    path = make(tmp_path / "state.db", "22")
    fill(path)
    lists = [
        '[{"id": "a"}, {"id": "b"}]',
        "[]",
        '{"id": "a"}',
        '"[{\\"id\\": \\"a\\"}]"',
        "[7, null]",
        "7",
        "null",
    ]
    for number, encoded in enumerate(lists, start=1):
        execute(path, "UPDATE messages SET tool_calls = ? WHERE id = ?", (encoded, number))
    execute(path, "UPDATE messages SET session_id = ?, active = id % 2 WHERE id <= 7", (THIRD,))
    with looking(path) as context:
        counts = context.sweep.run(context).calls[THIRD.encode()]
    assert (counts.total, counts.active, counts.unreadable) == (
        2 + 0 + 1 + 1 + 2 + 1 + 1 + 1,
        2 + 1 + 2 + 1 + 1,
        False,
    )


def test_calls_that_are_not_json_are_unreadable() -> None:
    for encoded in (b"", b"[", b"\xff", b'[{"id": "a"}', b"[" * 100_000):
        assert read_calls(encoded) is None


def test_a_list_that_was_encoded_twice_has_calls_and_is_not_sent() -> None:
    read = read_calls(json.dumps(json.dumps([{"id": "a", "function": {"name": "f"}}])).encode())
    assert read is not None
    assert (read.count, read.sent, [call.ids for call in read.calls]) == (1, False, [("a",)])


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**40), 2**40) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
CALLS = st.lists(
    JSON
    | st.fixed_dictionaries(
        {},
        optional={
            "id": JSON,
            "call_id": JSON,
            "function": JSON
            | st.fixed_dictionaries({"name": JSON, "arguments": JSON | st.text(max_size=12)}),
        },
    ),
    max_size=4,
)


@settings(max_examples=300, deadline=None)
@given(CALLS)
def test_calls_are_read_as_python_reads_them(calls: list[Any]) -> None:
    read = read_calls(json.dumps(calls).encode())
    assert read is not None
    assert read.count == len(calls)
    expected = [
        tuple(
            dict.fromkeys(
                one for one in (call.get("call_id"), call.get("id")) if isinstance(one, str) and one
            )
        )
        for call in calls
        if isinstance(call, dict)
    ]
    assert [call.ids for call in read.calls] == expected


@settings(max_examples=500, deadline=None)
@given(
    st.text(max_size=20)
    | JSON.map(json.dumps)
    | st.sampled_from(["NaN", '{"a": NaN}', '{"a": 1e999}', "\ud800", '{"a": "\t"}'])
)
def test_arguments_are_broken_where_python_reads_no_object(arguments: str) -> None:
    try:
        sound = not arguments.strip() or isinstance(json.loads(arguments), dict)
    except ValueError:
        sound = False
    assert Call(function=Function(arguments=arguments)).arguments_broken is not sound


def test_what_pairs_leaves_no_trace() -> None:
    pairing = Pairing()
    for number in range(0, 300_000, 2):
        pairing.calls(b"s", number, [Call(id=f"c{number}")])
        pairing.result(b"s", number + 1, b"c%d" % number)
    pairing.close()
    assert (pairing.unanswered, pairing.strays) == (array("q"), array("q"))


def test_very_many_open_calls_become_suspects(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tool_calls, "MOST_OPEN", 10)
    pairing = Pairing()
    for number in range(25):
        pairing.calls(b"s", number, [Call(id=f"c{number}")])
    pairing.close()
    assert list(pairing.unanswered) == list(range(25))


def test_one_id_in_two_sessions_is_two_calls() -> None:
    pairing = Pairing()
    pairing.calls(b"s", 1, [Call(id="c")])
    pairing.calls(b"t", 2, [Call(id="c")])
    pairing.result(b"t", 3, b"c")
    pairing.close()
    assert (list(pairing.unanswered), list(pairing.strays)) == ([1], [])
