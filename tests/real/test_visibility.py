"""Which sessions a list shows, and why not the others, against the list of every release."""

from __future__ import annotations

from pathlib import Path

import apsw
import pytest

from hermes_dbtools.model import Value
from hermes_dbtools.shape import read_shape
from hermes_dbtools.visibility import HOPS, Rule, Standing, standings
from tests.real.judge import listing
from tests.real.lives import KINDS, copy_of, hidden_life
from tests.real.store import Store
from tests.real.wheels import RELEASES

MARKED_DELEGATES = ("0.18.2", "0.19.0", "0.20.4.1")
"""Releases whose list asks for the marker of sub-agents."""


def stand(path: Path, *, trust_indexes: bool = True) -> dict[Value, Standing]:
    """The standing of every session of a file that no store holds."""
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        shape = read_shape(connection)
        return standings(
            connection, lambda need: (trust_indexes or not need.startswith("index:")) and shape.has(need)
        )
    finally:
        connection.close()


def shown(standing: dict[Value, Standing]) -> set[Value]:
    """The ids the list would show."""
    return {one.shown_as for one in standing.values() if one.shown}


def listed(path: Path, release: str) -> set[Value]:
    """The ids a release's list shows."""
    with Store(path, release) as store:
        return set(listing(store))


@pytest.mark.parametrize("kind", KINDS)
def test_a_busy_life_is_shown_as_its_release_shows_it(kind: str, tmp_path: Path) -> None:
    healthy = copy_of(kind, tmp_path)
    standing = stand(healthy.path)
    assert standing == stand(healthy.path, trust_indexes=False)
    assert shown(standing) == listed(healthy.path, healthy.release)


@pytest.mark.parametrize("release", RELEASES)
def test_what_a_release_hides_is_hidden_by_the_rule_that_is_named(release: str, tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    with Store(path, release) as store:
        hidden_life(store)
        odd_sessions(store)
    standing = stand(path)
    assert standing == stand(path, trust_indexes=False)
    assert shown(standing) == listed(path, release)
    marked = release in MARKED_DELEGATES
    expected = {
        "hidden-fork": (Rule.UNMARKED_CHILD,),
        "child": (Rule.UNMARKED_CHILD,),
        "too-early": (Rule.BRANCHED_LATER,),
        "parentless": (Rule.MISSING_PARENT,),
        "stray": (Rule.DELEGATE_MARKER,) if marked else (),
        "loop-a": (Rule.UNMARKED_CHILD,),
        f"link-{HOPS + 1:03}": (Rule.TOO_DEEP,),
        f"link-{HOPS + 9:03}": (Rule.TOO_DEEP,),
    }
    assert {session_id: standing[session_id].rules for session_id in expected} == expected
    assert standing[f"link-{HOPS + 9:03}"].through == f"link-{HOPS + 1:03}"
    assert standing["link-000"].shown_as == f"link-{HOPS:03}"
    assert {standing["fork-1"].rules, standing["fork-2"].rules} == {(), (Rule.OTHER_CONTINUATION,)}
    if release != "0.13.0":
        assert standing["shelf"].rules == (Rule.ARCHIVED,)
        assert standing["shelf-2"] == Standing(rules=(Rule.ARCHIVED,), through="shelf")


def odd_sessions(store: Store) -> None:
    """Sessions a list treats in every way it knows, most by rows that no release writes."""
    start, number = 1_780_000_000.0, 0

    def row(session_id: str, **values: object) -> None:
        nonlocal number
        number += 1
        names = {"id": session_id, "source": "cli", "started_at": start + number, **values}
        marks = ", ".join("?" for _ in names)
        store.execute(f"INSERT INTO sessions ({', '.join(names)}) VALUES ({marks})", *names.values())

    def ended(reason: str, after: float = 0.5) -> dict[str, object]:
        return {"end_reason": reason, "ended_at": start + number + 1 + after}

    row("child-root")
    row("child", parent_session_id="child-root")
    row("branched", **(ended("branched") | {"ended_at": start + 5000}))
    row("too-early", parent_session_id="branched")
    row("parentless", parent_session_id="never-was")
    row("stray", model_config='{"_delegate_from": "never-was"}')
    row("odd-config", model_config="[1]")
    row("no-marker", model_config='{"_delegate_from": null}')
    row("loop-a", parent_session_id="loop-b")
    row("loop-b", parent_session_id="loop-a")
    row("self", parent_session_id="self", **ended("compression"))
    row("forked", **ended("compression"))
    row("fork-1", parent_session_id="forked", **ended("cli_close"))
    row("fork-2", parent_session_id="forked")
    row("compressed-tool", **ended("compression"))
    row("tool-child", parent_session_id="compressed-tool", source="tool")
    row("inherited", **ended("compression"))
    row("inheritor", parent_session_id="inherited", model_config='{"_branched_from": "elsewhere"}')
    row("reset", end_reason="session_reset", ended_at=start + number + 1)
    row("after-reset", parent_session_id="reset", model_config='{"_reset_from": "reset"}')
    for link in range(HOPS + 10):
        parent = {"parent_session_id": f"link-{link - 1:03}"} if link else {}
        last = link == HOPS + 9
        row(f"link-{link:03}", **parent, **({} if last else ended("compression")))
    if store.release != "0.13.0":
        row("shelf", archived=1, **ended("compression"))
        row("shelf-2", parent_session_id="shelf")
        row("odd-flag", archived=2)
    if store.release == "0.20.4.1":
        row("flagged", hidden=1)
        row("same-chat", end_reason="idle", ended_at=start + number + 1, session_key="k")
        row("same-chat-2", parent_session_id="same-chat", session_key="k")
