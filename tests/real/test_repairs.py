"""Real files damaged in many ways at once and repaired from the command line: their own release uses them again."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.real.book import Book
from tests.real.damages import HARMS, facts, shell
from tests.real.judge import (
    assert_appends,
    assert_clean,
    assert_deletes,
    assert_found,
    assert_usable,
    listing,
    texts,
)
from tests.real.lives import KINDS, Healthy, copy_of, hidden_life
from tests.real.looks import AS_CORE, Ran, blind, digest, look, run, wrong
from tests.real.store import Store
from tests.real.wheels import RELEASES

TOGETHER = (
    "orphaned_tools",
    "orphaned_chat",
    "orphaned_pictures",
    "orphaned_compression_parent",
    "orphaned_inactive_rows",
    "missing_branch_parent",
    "missing_delegate_parent",
    "orphaned_usage",
    "orphaned_binding",
    "used_branchless_root",
    "null_active",
    "wrong_counter",
    "zero_counter",
)
"""Damages of different sessions, so that one file can hold them all."""
CHOICES = ("branched-root-leftovers=reopen", "missing-parent-session=detach")
MENDED = ("tools", "chat", "images", "branch", "untitled", "current", "measured", "handoff-failed")
"""Roles that must be usable afterwards, apart from what compression closed or a rewind emptied."""
DAY = 86400.0


@dataclass(frozen=True)
class Mended:
    """A file damaged in many ways and repaired, a copy of what an undo made of it, and what its store said before."""

    healthy: Healthy
    repaired: Path
    undone: Path
    damaged_digest: str
    undone_digest: str
    listed: frozenset[str]
    said: dict[str, list[str]]
    resumed: str
    """What its release resumed when asked for the session that compression had closed first."""

    @property
    def ids(self) -> dict[str, str]:
        return self.healthy.life.ids

    @property
    def emptied(self) -> str | None:
        """A session all of whose messages were rewound, where the release can do that."""
        return self.ids.get("rewound-whole")


@pytest.fixture(scope="module", params=KINDS)
def mended(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Mended:
    kind, folder = request.param, tmp_path_factory.mktemp("mended")
    healthy = copy_of(kind, folder / "home")
    known = facts(healthy)
    spoiled = {known.ids["root"], known.ids["delegate"], known.ids["accounted"], known.bound()}
    with Store(copy_of(kind, folder / "healthy").path, healthy.release) as store:
        listed = frozenset(listing(store)) - spoiled
        said = {role: texts(store, known.ids[role]) for role in (*MENDED, "rotated")}
        resumed = store.call("resume", session_id=known.ids["rotated"])["session_id"]
    harms = [harm for name in TOGETHER if (harm := HARMS[name](known)) is not None]
    for harm in harms:
        harm.do(healthy.path)
    report = look(healthy.path)
    assert sorted(wrong(report)) == sorted(row for harm in harms for row in harm.expect)
    assert blind(report) == {}
    damaged = digest(healthy.path)
    told = repair(healthy.path, "--allow-lossy", choices=CHOICES)
    assert told.code == 0, told.out + told.err
    assert wrong(look(healthy.path)) == ()
    repaired = copied(healthy.path, folder / "repaired")
    told = run("undo", healthy.path, "--apply", "--yes")
    assert told.code == 0, told.out + told.err
    return Mended(
        healthy,
        repaired,
        copied(healthy.path, folder / "undone"),
        damaged,
        digest(healthy.path),
        listed,
        said,
        resumed,
    )


@pytest.fixture
def store(mended: Mended, tmp_path: Path) -> Iterator[Store]:
    """The repaired file's own release on a copy of it."""
    with Store(copied(mended.repaired, tmp_path / "used"), mended.healthy.release) as opened:
        yield opened


def test_the_release_lists_reads_appends_to_searches_and_deletes_what_was_mended(
    mended: Mended, store: Store
) -> None:
    tips = {mended.ids["images"]: mended.ids["branch-of-images"]} if unmarked(mended) else {}
    shown = frozenset(tips.get(session_id, session_id) for session_id in mended.listed)
    for role in MENDED:
        session_id = mended.ids[role]
        as_tip = tips.get(session_id)
        assert_usable(store, session_id, mended.said[role], shown, listed_as=as_tip, delete=False)
    for role in MENDED:
        assert_deletes(store, mended.ids[role], set(listing(store)) - {mended.ids[role]})
    assert_clean(store)


def test_an_adopted_compression_parent_keeps_its_continuation_listed(mended: Mended, store: Store) -> None:
    session_id, tip = mended.ids["rotated"], mended.ids["rotated-3"]
    row = store.call("session", session_id=session_id)
    assert (row["source"], row["end_reason"]) == ("recovered", "compression")
    assert texts(store, session_id) == mended.said["rotated"]
    assert_found(store, session_id, "wordrotated")
    assert tip in listing(store)
    assert session_id not in listing(store)
    assert store.call("resume", session_id=session_id)["session_id"] == mended.resumed
    assert_appends(store, tip)
    assert_clean(store)
    assert_deletes(store, session_id, set(listing(store)))


def test_an_adopted_id_without_an_active_row_survives_every_sweep(mended: Mended, store: Store) -> None:
    session_id = mended.emptied
    assert (session_id is None) == unmarked(mended)
    if session_id is None:
        return
    store.call("end", session_id=session_id, end_reason="cli_close")
    sweep(store)
    assert session_id in listing(store)
    assert texts(store, session_id) == []
    assert len(store.rows("SELECT id FROM messages WHERE session_id = ?", session_id)) == 4
    store.call("reopen", session_id=session_id)
    assert_appends(store, session_id)


def test_a_recounted_session_survives_the_sweep_that_would_have_deleted_it(
    mended: Mended, store: Store
) -> None:
    session_id = mended.ids["handoff-failed"]
    store.call("end", session_id=session_id, end_reason="cli_close")
    sweep(store)
    assert texts(store, session_id) == mended.said["handoff-failed"]


def test_an_undo_gives_every_damaged_row_back_and_leaves_the_indexes_right(mended: Mended) -> None:
    assert mended.undone_digest == mended.damaged_digest
    with Store(mended.undone, mended.healthy.release) as opened:
        found = opened.call("integrity")
    assert found["integrity_check"] == ["ok"]
    assert set(found["search"].values()) <= {"ok"}


@pytest.mark.parametrize("release", RELEASES)
def test_unmarked_children_of_an_adopted_open_parent_are_listed(release: str, tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    with Store(path, release) as store:
        life = hidden_life(store)
        book = Book(store, "")
        book.chat("forked-twice")
        for child in ("fork-1", "fork-2"):
            book.call("fork", parent="forked-twice", child=child)
            book.call("reopen", session_id="forked-twice")
        roots = [life.ids["live-root"], "forked-twice"]
        said = {session_id: texts(store, session_id) for session_id in roots}
    shell(path, [("DELETE FROM sessions WHERE id = ?", (session_id,)) for session_id in roots])
    assert wrong(look(path)) == tuple(("HDB201", session_id, "error") for session_id in sorted(roots))
    assert repair(path).code == 0
    with Store(path, release) as store:
        assert {*roots, "fork-1", "fork-2", life.ids["live-branch"]} <= set(listing(store))
        for session_id in roots:
            assert_usable(store, session_id, said[session_id], listing(store))


@pytest.mark.parametrize("release", RELEASES)
def test_a_purge_and_its_undo_leave_rows_and_indexes_right(release: str, tmp_path: Path) -> None:
    """The purged session holds NUL-`json:` rows, whose index entries the two engines do not make alike."""
    healthy = copy_of(release, tmp_path / "home")
    known = facts(healthy)
    purged, child = known.ids["images"], known.ids["branch-of-images"]
    harm = HARMS["orphaned_pictures"](known)
    assert harm is not None
    harm.do(healthy.path)
    damaged = digest(healthy.path)
    told = repair(healthy.path, "--allow-lossy", choices=("orphaned-messages=purge",))
    assert told.code == 1, told.out + told.err
    assert wrong(look(healthy.path)) == (("HDB202", child, "error"),)
    purged_copy = copied(healthy.path, tmp_path / "purged")
    with Store(purged_copy, release) as store:
        assert store.rows("SELECT id FROM messages WHERE session_id = ?", purged) == []
        assert set(store.call("integrity")["search"].values()) <= {"ok"}
    assert repair(purged_copy).code == 0
    with Store(purged_copy, release) as store:
        assert child in listing(store)
        assert_clean(store)
    assert run("undo", healthy.path, "--apply", "--yes").code == 0
    assert digest(healthy.path) == damaged
    assert wrong(look(healthy.path)) == harm.expect
    with Store(copied(healthy.path, tmp_path / "undone"), release) as store:
        assert set(store.call("integrity")["search"].values()) <= {"ok"}


def test_sessions_whose_prompt_is_gone_are_written_again(tmp_path: Path) -> None:
    healthy = copy_of("0.20.4.1", tmp_path / "home")
    session_id = healthy.life.ids["tools"]
    with Store(copy_of("0.20.4.1", tmp_path / "healthy").path, healthy.release) as store:
        said, shown = texts(store, session_id), listing(store)
    harm = HARMS["missing_prompt"](facts(healthy))
    assert harm is not None
    harm.do(healthy.path)
    assert repair(healthy.path).code == 0
    with Store(healthy.path, healthy.release) as store:
        prompt = {"session_id": session_id, "system_prompt": "A new prompt."}
        store.call("call", method="update_system_prompt", arguments=prompt)
        assert_usable(store, session_id, said, shown)


@pytest.mark.parametrize("release", RELEASES)
def test_a_row_that_accounting_made_again_is_recounted_before_a_sweep_deletes_its_messages(
    release: str, tmp_path: Path
) -> None:
    path = tmp_path / "state.db"
    with Store(path, release) as store:
        book = Book(store, "")
        book.chat("talk")
        said = texts(store, "talk")
        store.execute("DELETE FROM sessions WHERE id = 'talk'")
        book.measure("talk", input_tokens=5, output_tokens=5)
        row = store.call("session", session_id="talk")
        assert (row["source"], row["message_count"]) == ("unknown", 0)
    assert wrong(look(path)) == (("HDB501", "talk", "error"),)
    assert repair(path).code == 0
    with Store(path, release) as store:
        store.call("end", session_id="talk", end_reason="cli_close")
        sweep(store)
        assert texts(store, "talk") == said


def repair(path: Path, *more: str, choices: tuple[str, ...] = ()) -> Ran:
    """Apply what a repair of this file plans."""
    chosen = [word for choice in choices for word in ("--choose", choice)]
    return run("repair", path, "--apply", "--yes", *AS_CORE, *chosen, *more)


def copied(path: Path, folder: Path) -> Path:
    """A copy of a file that nobody has open, with its log where it has one."""
    folder.mkdir()
    for name in ("state.db", "state.db-wal"):
        if path.with_name(name).exists():
            (folder / name).write_bytes(path.with_name(name).read_bytes())
    return folder / "state.db"


def sweep(store: Store) -> None:
    """Every sweep of empty sessions that the release has, two days later."""
    methods = store.call("ping")["methods"]
    store.call("clock", offset=2 * DAY)
    for verb, method in (
        ("delete_empty", "delete_empty_sessions"),
        ("prune_ghosts", "prune_empty_ghost_sessions"),
    ):
        if method in methods:
            store.call(verb)
    store.call("clock")


def unmarked(mended: Mended) -> bool:
    """Whether the release marks no branches and keeps no rewound rows."""
    return mended.healthy.release == "0.13.0"
