"""Stores of every release driven at random by their own calls alone: nothing is accused but what the store did itself."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.real.looks import blind, look, notes, wrong
from tests.real.store import Store
from tests.real.wanderer import DEEDS, Deed, Wanderer
from tests.real.wheels import RELEASES

EXAMPLES = int(os.environ.get("HERMES_DBTOOLS_WANDERERS", "15")) // len(RELEASES)
"""Stores of each release."""

TRUE_NOTES = {
    ("HDB207", "missing-session"): "a delete of up to 0.19 leaves the route",
    ("HDB208", "goal"): "every delete leaves the goal",
    ("HDB301", "branchless-root"): "the branch was deleted, its root stays ended as branched",
    ("HDB301", "stale-branch-marker"): "the root was deleted, the branch keeps its marker",
    ("HDB303", ""): "a prune leaves the sub-agents of what it removes",
    ("HDB306", "unused"): "the continuation was deleted",
    ("HDB307", ""): "a session was opened again and compressed a second time",
    ("HDB308", ""): "a session was branched twice and nothing was said in the branches",
    ("HDB309", ""): "the first part of a conversation was deleted",
    ("HDB312", ""): "nobody closed it and nobody used it for a month",
    ("HDB313", ""): "begun, ended or left, and never written to",
    ("HDB314", "ghost"): "accounting made a row for a session that was deleted",
    ("HDB316", "branched-later"): "its root was opened again and ended as branched once more",
    ("HDB316", "unmarked-child"): "a branch, a fork or a sub-agent without a marker whose root is open",
    ("HDB316", "delegate-marker"): "a chat that an upgrade or a compression hides",
    ("HDB317", "continuation"): "a compression did not hand the chat's identity down",
    ("HDB405", "stuck-handoff"): "nobody took the hand-over",
    ("HDB601", "last-turn"): "a rewind or a compression cut a call from its result",
    ("HDB601", "earlier-turns"): "a rewind or a compression cut a call from its result",
    ("HDB602", ""): "a compression kept a result whose call it dropped",
    ("HDB606", ""): "a branch copied a turn of calls without its calls",
    ("HDB903", "expired"): "the holder of a lock or a lease is gone",
}
"""Every note on these stores by code and kind, and what makes it true."""

_NUMBER = st.integers(0, 999)
_OFTEN = ("begin", "begin", "talk", "talk", "talk", "talk", "talk", "wait")
DEALT = st.lists(
    st.tuples(st.sampled_from((*DEEDS, *_OFTEN)), st.tuples(_NUMBER, _NUMBER, _NUMBER)),
    min_size=15,
    max_size=60,
)


def number(release: str) -> tuple[int, ...]:
    return tuple(int(part) for part in release.split("."))


@pytest.mark.parametrize("release", RELEASES)
def test_no_store_is_accused_of_what_it_did_not_do(release: str, tmp_path: Path) -> None:
    older = [one for one in RELEASES if number(one) < number(release)]

    @settings(
        max_examples=EXAMPLES,
        derandomize=True,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(deeds=DEALT, before=st.one_of(st.none(), st.sampled_from(older) if older else st.none()))
    def wander(deeds: list[Deed], before: str | None) -> None:
        with tempfile.TemporaryDirectory(dir=tmp_path) as folder:
            judge(Path(folder) / "state.db", deeds, release, before)

    wander()


def judge(path: Path, deeds: list[Deed], release: str, before: str | None) -> None:
    """Drive a store, the first half of the way on an older release where one is given, and look at its file."""
    wanderer = None
    ways = [(release, deeds)]
    if before is not None:
        ways = [(before, deeds[: len(deeds) // 2]), (release, deeds[len(deeds) // 2 :])]
    for used, way in ways:
        with Store(path, used) as store:
            wanderer = Wanderer(store) if wanderer is None else wanderer.on(store)
            wanderer.go(way)
    assert wanderer is not None
    report = look(path, select=())
    assert blind(report) == {}
    assert [row for row in wrong(report) if not made_by_the_store(row[0], row[1], wanderer)] == []
    assert {(code, kind) for code, kind, _key in notes(report)} - set(TRUE_NOTES) == set()


def made_by_the_store(code: str, key: str, wanderer: Wanderer) -> bool:
    """A true finding of something that a release does to its own rows.

    HDB302: a branch or a fork without a marker, whose root was opened again or never ended, is in no list. HDB315: the
    upgrade from a release before 0.17 marked a child without a parent as a sub-agent's run, and lists hide it for ever.
    """
    if code == "HDB302":
        return key in wanderer.unmarked
    return code == "HDB315" and wanderer.upgraded
