"""One session with all that there is to say of it: family, guard, rows, images, receipts, findings."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hermes_dbtools.home import Home
from hermes_dbtools.model import UsageError
from hermes_dbtools.sessions.showing import Shown, ShowOptions, show
from tests.hostile import NOT_UTF8
from tests.repairs import (
    BRANCH,
    CHAT,
    COMPRESSED,
    CONTINUATION,
    COUNTERS,
    DELEGATE,
    NOW,
    ROOT,
    SECOND,
    bytes_of,
    new_home,
    repair,
)
from tests.running import tool_here
from tests.shapes.make import SHAPES, execute
from tests.test_sessions_rebuild import BAD_WORDS


def shown(home: Home, word: str) -> Shown:
    return show(home, word, ShowOptions(NOW))


def drawn(found: Shown) -> list[tuple[object, int, str]]:
    return [(m.listed.id, m.place.depth, m.listed.kind) for m in found.family]


@pytest.mark.parametrize("shape", SHAPES)
def test_the_family_is_a_tree_with_kinds_and_the_rows_are_counted(shape: str, tmp_path: Path) -> None:
    home = new_home(tmp_path / "home", shape)
    before = bytes_of(home.database)
    found = shown(home, BRANCH)
    assert bytes_of(home.database) == before
    assert drawn(found) == [(ROOT, 0, "root"), (BRANCH, 1, "branch"), (DELEGATE, 1, "delegate")]
    rows = {share.table: share.rows for share in found.tables}
    assert (rows["sessions"], rows["messages"]) == (1, 4)
    assert rows.get("session_model_usage", 2) == 2
    assert all(share.bytes > 0 for share in found.tables)
    assert (found.images, found.receipts, found.findings, found.scan_error) == ((), (), (), "")


def test_markers_stand_in_the_tree(tmp_path: Path) -> None:
    home = new_home(tmp_path / "home", "25")
    markers = {m.listed.id: m.place.relative.markers for m in shown(home, ROOT).family}
    assert markers[BRANCH] == (("_branched_from", ROOT),)
    assert markers[DELEGATE] == (("_delegate_from", ROOT),)
    told = tool_here("sessions", "show", ROOT, "--home", home.root)
    assert told.code == 0
    assert f"_branched_from={ROOT}" in told.out
    assert "Plain session 0" in told.out


def test_a_loop_and_a_missing_parent_end_the_tree(tmp_path: Path) -> None:
    home = new_home(tmp_path / "home", "22")
    execute(home.database, "UPDATE sessions SET parent_session_id = ? WHERE id = ?", (BRANCH, ROOT))
    found = shown(home, BRANCH)
    assert [(m.listed.id, m.place.loop) for m in found.family][-1] == (DELEGATE, False)
    assert (BRANCH, True) in [(m.listed.id, m.place.loop) for m in found.family]
    assert {finding.code for finding in found.findings} >= {"HDB305"}
    assert tool_here("sessions", "show", BRANCH, "--home", home.root).code == 0
    execute(home.database, "UPDATE sessions SET parent_session_id = 'gone' WHERE id = ?", (ROOT,))
    assert drawn(shown(home, ROOT))[0][:2] == (ROOT, 0)


def test_a_chain_is_drawn_as_deep_as_it_is(tmp_path: Path) -> None:
    home = new_home(tmp_path / "home", "30")
    execute(
        home.database,
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 3000)"
        " INSERT INTO sessions (id, source, started_at, ended_at, end_reason, parent_session_id)"
        " SELECT 'c' || i, 'cli', 1.7e9 + i, 1.7e9 + i, 'compression', CASE WHEN i > 1 THEN 'c' || (i - 1) END FROM n",
    )
    family = shown(home, "c1500").family
    assert [member.place.depth for member in family] == list(range(3000))


def test_who_holds_it_and_until_when(tmp_path: Path) -> None:
    home = new_home(tmp_path / "home", "runtime")
    lease = "INSERT INTO session_turn_leases VALUES (?, 'pid=1:turn=t', 1.0, ?)"
    execute(home.database, lease, (COMPRESSED, 4e9))
    found = shown(home, CONTINUATION)
    assert (found.session.state, found.session.holder, found.session.expires_at) == ("live", "pid 1", 4e9)
    told = tool_here("sessions", "show", CONTINUATION, "--home", home.root)
    assert "live: compression chain of" in told.out
    assert "pid 1, until 2096-10-02" in told.out


def test_images_with_their_state(tmp_path: Path) -> None:
    home = new_home(tmp_path / "home", "media")
    folder = home.root / "cache" / "documents" / "native-inputs" / ("a" * 64)
    folder.mkdir(parents=True)
    (folder / "there.png").write_bytes(b"x")
    media = [
        {"path": str(folder / name), "sha256": "a" * 64, "size": 1} for name in ("there.png", "gone.png")
    ]
    payload = json.dumps({"api_turn_v1": {"media": media}})
    execute(home.database, "UPDATE session_admissions SET payload_json = ?", (payload,))
    execute(
        home.database,
        "UPDATE messages SET content = ? WHERE id = (SELECT min(id) FROM messages WHERE session_id = ?)",
        ("look [Image attached at: /nowhere/x.png]", CHAT),
    )
    found = shown(home, CHAT)
    states = {(Path(image.path).name, image.state) for image in found.images}
    assert states == {("there.png", "fine"), ("gone.png", "missing"), ("x.png", "missing")}
    assert shown(home, ROOT).images == ()
    told = tool_here("sessions", "show", CHAT, "--home", home.root)
    assert "missing  api image (held)" in told.out
    assert "look" not in told.out


def test_receipts_and_findings_are_its_own(tmp_path: Path) -> None:
    home = new_home(tmp_path / "home", "22", COUNTERS)
    assert [finding.code for finding in shown(home, SECOND).findings] == ["HDB501"]
    assert shown(home, CHAT).findings == ()
    receipt = repair(home)
    assert [one.id for one in shown(home, SECOND).receipts] == [receipt.id]
    assert shown(home, CHAT).receipts == ()


def test_an_id_its_beginning_and_a_title_mean_it(tmp_path: Path) -> None:
    home = new_home(tmp_path / "home", "22")
    for word in (ROOT, ROOT[:14], "Plain session 0"):
        assert shown(home, word).session.id == ROOT
    with pytest.raises(UsageError, match="several sessions"):
        shown(home, "20260528")


@pytest.mark.parametrize("command", [("show",), ("export", "-o", "out.jsonl")])
@pytest.mark.parametrize("word", BAD_WORDS.values(), ids=BAD_WORDS)
def test_a_bad_id_is_one_clear_line_and_changes_nothing(
    word: str, command: tuple[str, ...], tmp_path: Path
) -> None:
    home = new_home(tmp_path / "home", "22")
    before = bytes_of(home.database)
    told = tool_here("sessions", *command, "--home", home.root, "--", word, cwd=tmp_path)
    assert told.code == 2
    assert len(told.err.splitlines()) == 1
    assert len(told.err) < 400
    assert bytes_of(home.database) == before
    assert [path.name for path in tmp_path.iterdir()] == ["home"]


def test_values_of_any_kind_are_shown(tmp_path: Path) -> None:
    home = new_home(tmp_path / "home", "media")
    odd = "UPDATE sessions SET title = CAST(? AS TEXT), model_config = CAST(? AS TEXT), started_at = 'x' WHERE id = ?"
    execute(home.database, odd, (NOT_UTF8, NOT_UTF8, ROOT))
    execute(
        home.database,
        "UPDATE messages SET content = CAST(? AS TEXT), media_content = '{' WHERE session_id = ?",
        (NOT_UTF8, ROOT),
    )
    execute(home.database, "UPDATE session_admissions SET payload_json = CAST(? AS TEXT)", (b'"media"\xff',))
    for word in (ROOT, CHAT):
        for form in ("table", "json"):
            told = tool_here("sessions", "show", word, "--home", home.root, "--format", form)
            assert told.code == 0, told.err


def test_json_says_the_same(tmp_path: Path) -> None:
    home = new_home(tmp_path / "home", "25", COUNTERS)
    document = json.loads(tool_here("sessions", "show", SECOND, "--home", home.root, "--format", "json").out)
    assert document["session"]["id"] == SECOND
    assert [member["depth"] for member in document["lineage"]] == [0]
    assert [finding["code"] for finding in document["findings"]] == ["HDB501"]
    assert {share["table"] for share in document["tables"]} >= {"messages", "sessions"}
