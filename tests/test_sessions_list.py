"""The list says of each session what it is, in which state, and why upstream's lists leave it out."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from hermes_dbtools.home import Home
from hermes_dbtools.sessions.listing import KINDS, STATES, Filters, Listed, list_sessions
from tests.hostile import NOT_UTF8
from tests.repairs import (
    BRANCH,
    CHAT,
    COMPRESSED,
    CONTINUATION,
    DELEGATE,
    NOW,
    ROOT,
    SECOND,
    THIRD,
    bytes_of,
    new_home,
)
from tests.running import tool_here
from tests.shapes.make import SHAPES, execute

WITH_LEASES = ("30", "31", "runtime", "media")


def listed(home: Home, **filters: object) -> dict[object, Listed]:
    return {one.id: one for one in list_sessions(home, Filters(now=NOW, **filters)).sessions}  # type: ignore[arg-type]


@pytest.mark.parametrize("shape", SHAPES)
def test_every_session_with_kind_and_state_newest_first(shape: str, tmp_path: Path) -> None:
    home = new_home(tmp_path / "home", shape)
    before = bytes_of(home.database)
    found = listed(home)
    assert bytes_of(home.database) == before
    assert list(found) == [CHAT, CONTINUATION, COMPRESSED, DELEGATE, BRANCH, THIRD, SECOND, ROOT]
    assert [one.kind for one in found.values()] == [
        "root", "continuation", "root", "delegate", "branch", "root", "root", "root",
    ]  # fmt: skip
    assert [one.state for one in found.values()] == [
        "open", "open", "closed", "closed", "open", "open", "closed", "closed",
    ]  # fmt: skip
    assert found[COMPRESSED].reason == "compression"
    assert (found[COMPRESSED].hidden, found[COMPRESSED].shown_as) == ("", CONTINUATION)
    assert found[ROOT].title == "Plain session 0"
    assert found[ROOT].messages == 4
    # The lists of 0.13 and 0.16 show the run of a sub-agent below a branched session.
    assert bool(found[DELEGATE].hidden) == (shape not in ("11", "14"))


def test_why_a_session_is_hidden(tmp_path: Path) -> None:
    home = new_home(
        tmp_path / "home",
        "31",
        f"UPDATE sessions SET archived = 1 WHERE id = '{THIRD}'",
        f"UPDATE sessions SET hidden = 1 WHERE id = '{CHAT}'",
        f"UPDATE sessions SET parent_session_id = 'gone' WHERE id = '{SECOND}'",
        f"UPDATE sessions SET source = 'kanban' WHERE id = '{BRANCH}'",
    )
    found = listed(home, hidden=True)
    assert set(found) == {THIRD, CHAT, SECOND, BRANCH, DELEGATE}
    assert (found[THIRD].state, found[THIRD].hidden) == ("archived", "it is archived")
    assert found[CHAT].hidden == "it is flagged as hidden"
    assert "its parent has no row" in found[SECOND].hidden
    assert (found[SECOND].kind, found[SECOND].parent) == ("child", "gone")
    assert "kanban" in found[BRANCH].hidden
    assert "sub-agent" in found[DELEGATE].hidden


@pytest.mark.parametrize("shape", WITH_LEASES)
def test_a_live_session_names_its_holder_and_takes_its_chain_along(shape: str, tmp_path: Path) -> None:
    home = new_home(tmp_path / "home", shape)
    lease = "INSERT INTO session_turn_leases VALUES (?, 'pid=1:turn=t', ?, ?)"
    execute(home.database, lease, (COMPRESSED, NOW - 5, NOW + 300))
    found = listed(home, states=("live",))
    assert set(found) == {COMPRESSED, CONTINUATION}
    assert found[COMPRESSED].reason.startswith("turn lease")
    assert (found[COMPRESSED].holder, found[COMPRESSED].expires_at) == ("pid 1", NOW + 300)
    assert COMPRESSED in found[CONTINUATION].reason


def test_a_reset_and_filters(tmp_path: Path) -> None:
    home = new_home(
        tmp_path / "home",
        "31",
        f"UPDATE sessions SET end_reason = 'daily', ended_at = started_at + 1 WHERE id = '{CHAT}'",
        "INSERT INTO sessions (id, source, started_at, parent_session_id, session_key)"
        f" SELECT 'after', source, started_at + 9, id, session_key FROM sessions WHERE id = '{CHAT}'",
    )
    assert set(listed(home, kinds=("reset",))) == {"after"}
    assert set(listed(home, sources=("telegram",))) == {CHAT, "after"}
    assert set(listed(home, sources=("telegram",), kinds=("root",))) == {CHAT}
    assert listed(home, sources=("nobody",)) == {}
    assert {one.kind for one in listed(home).values()} <= set(KINDS)
    assert {one.state for one in listed(home).values()} <= set(STATES)


@pytest.mark.parametrize("shape", ["11", "22", "media"])
def test_values_of_any_kind_are_listed(shape: str, tmp_path: Path) -> None:
    home = new_home(tmp_path / "home", shape)
    path = home.database
    execute(
        path,
        "UPDATE sessions SET title = CAST(? AS TEXT), source = CAST(? AS TEXT) WHERE id = ?",
        (NOT_UTF8, NOT_UTF8, ROOT),
    )
    execute(
        path, "UPDATE sessions SET started_at = ?, message_count = 'many' WHERE id = ?", (math.inf, SECOND)
    )
    execute(path, "UPDATE sessions SET model_config = ?, ended_at = 'then' WHERE id = ?", ("[" * 3000, THIRD))
    execute(
        path,
        "INSERT INTO sessions (id, source, started_at) VALUES (CAST(? AS TEXT), 'cli', 1.0)",
        (NOT_UTF8,),
    )
    found = listed(home)
    assert len(found) == 9
    assert found[ROOT].title.startswith("hex:")
    assert (found[SECOND].started_at, found[SECOND].messages) == (None, 0)
    assert NOT_UTF8 in found
    for form in ("table", "json"):
        told = tool_here("sessions", "list", home.root, "--format", form)
        assert told.code == 0, told.err
        assert "\x1b" not in told.out


def test_the_command_prints_the_newest_and_says_how_many_there_are(tmp_path: Path) -> None:
    home = new_home(tmp_path / "home", "22")
    told = tool_here("sessions", "list", home.root, "--limit", "3")
    assert told.code == 0
    assert told.out.splitlines()[-1] == "8 sessions, 3 shown: --limit 0"
    assert len(told.out.splitlines()) == 5
    document = json.loads(
        tool_here("sessions", "list", "--home", home.root, "--limit", "0", "--format", "json").out
    )
    assert (document["total"], len(document["sessions"])) == (8, 8)
    assert document["sessions"][0]["id"] == CHAT
    assert tool_here("sessions", "list", tmp_path / "nowhere").code == 3
    assert tool_here("sessions", "list", home.root, "--kind", "twig").code == 2
