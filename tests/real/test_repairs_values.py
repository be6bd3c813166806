"""Bad values in files of released stores, repaired from the command line: the release that made the file uses it again."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.real.damages import Sql, rows, shell
from tests.real.judge import assert_clean, assert_found, assert_usable, listing, texts
from tests.real.lives import KINDS, Healthy, copy_of
from tests.real.looks import digest, look, run, wrong
from tests.real.store import Store, StoreError
from tests.real.wheels import RELEASES

VALUES = "values,counters"


@pytest.fixture(params=KINDS)
def healthy(request: pytest.FixtureRequest, tmp_path: Path) -> Healthy:
    return copy_of(request.param, tmp_path / "home")


def repair(path: Path, *options: str) -> None:
    """Repair values and counters, take it back and repair again: nothing of it is left, and the undo gave every row back."""
    before = digest(path)
    apply(path, *options)
    taken = run("undo", path, "--apply", "--yes")
    assert taken.code == 0, taken.out + taken.err
    assert digest(path) == before
    apply(path, *options)


def apply(path: Path, *options: str) -> None:
    told = run("repair", path, "--apply", "--yes", "--select", VALUES, *options)
    assert told.code == 0, told.out + told.err
    assert wrong(look(path, select=("values", "counters"))) == ()
    again = run("repair", path, "--select", VALUES, *options)
    assert "the plan has no steps" in again.out, again.out


def spoil(path: Path, *statements: Sql) -> None:
    assert 0 not in shell(path, statements)


def ids_of(path: Path, session_id: str, role: str) -> list[int]:
    sql = "SELECT id FROM messages WHERE session_id = ? AND role = ? ORDER BY id"
    return [row[0] for row in rows(path, sql, (session_id, role))]


def test_a_list_that_one_broken_value_ended_shows_every_session_again(healthy: Healthy) -> None:
    """Broken JSON ends the list where the release asks for markers; bytes that are no text end it in all."""
    ids = healthy.life.ids
    with Store(healthy.path, healthy.release) as store:
        before = listing(store)
    spoil(
        healthy.path,
        ("UPDATE sessions SET model_config = '{\"a\":' WHERE id = ?", (ids["chat"],)),
        ("UPDATE sessions SET cost_status = CAST(x'e8' AS TEXT) WHERE id = ?", (ids["tools"],)),
    )
    with Store(healthy.path, healthy.release) as store, pytest.raises(StoreError):
        listing(store)
    repair(healthy.path, "--allow-lossy")
    with Store(healthy.path, healthy.release) as store:
        assert listing(store) == before
        assert_usable(store, ids["chat"], texts(store, ids["chat"]), before, delete=False)
        assert_clean(store)


def test_broken_text_and_calls_of_messages_are_read_and_found_again(healthy: Healthy) -> None:
    """The search index follows: the store's own engine finds no difference between it and the messages."""
    session_id = healthy.life.ids["tools"]
    said = ids_of(healthy.path, session_id, "user")
    called = ids_of(healthy.path, session_id, "assistant")
    spoil(
        healthy.path,
        (
            "UPDATE messages SET content = CAST(x'6c69676874ff20616e64206c616e7465726e' AS TEXT) WHERE id = ?",
            (said[0],),
        ),
        ("UPDATE messages SET content = char(0) || 'json:[{\"te' WHERE id = ?", (said[1],)),
        ("UPDATE messages SET tool_calls = '[{\"id\": ' WHERE id = ?", (called[0],)),
    )
    with Store(healthy.path, healthy.release) as store, pytest.raises(StoreError):
        texts(store, session_id)
    repair(healthy.path, "--allow-lossy")
    with Store(healthy.path, healthy.release) as store:
        read = texts(store, session_id)
        assert "light\ufffd and lantern" in read
        assert_found(store, session_id, "lantern")
        assert_clean(store)
        assert_usable(store, session_id, read, word="lantern", delete=False)


def test_times_in_milliseconds_and_text_sort_as_before(healthy: Healthy) -> None:
    session_id = healthy.life.ids["tools"]
    sql = "SELECT id, timestamp FROM messages WHERE session_id = ? ORDER BY id"
    before = rows(healthy.path, sql, (session_id,))
    ((started,),) = rows(healthy.path, "SELECT started_at FROM sessions WHERE id = ?", (session_id,))
    with Store(healthy.path, healthy.release) as store:
        shown = listing(store)
    spoil(
        healthy.path,
        ("UPDATE messages SET timestamp = timestamp * 1000 WHERE id IN (?, ?)", (before[1][0], before[2][0])),
        ("UPDATE messages SET timestamp = 'yesterday' WHERE id = ?", (before[4][0],)),
        ("UPDATE sessions SET started_at = started_at * 1000 WHERE id = ?", (session_id,)),
    )
    repair(healthy.path, "--allow-lossy")
    after = rows(healthy.path, sql, (session_id,))
    assert [row[0] for row in after] == [row[0] for row in before]
    for (id_, was), (_, now) in zip(before, after, strict=True):
        tolerance = 1e-6 if id_ != before[4][0] else after[5][1] - after[3][1]
        assert now == pytest.approx(was, abs=max(tolerance, 1e-6))
    assert rows(healthy.path, "SELECT started_at FROM sessions WHERE id = ?", (session_id,)) == [
        (pytest.approx(started, abs=1e-6),)
    ]
    with Store(healthy.path, healthy.release) as store:
        assert listing(store) == shown
        assert_clean(store)


def test_equal_titles_leave_the_newest_its_title_and_the_store_its_index(healthy: Healthy) -> None:
    ids = healthy.life.ids
    order = "SELECT id FROM sessions WHERE id IN (?, ?) ORDER BY rowid"
    (older,), (newer,) = rows(healthy.path, order, (ids["tools"], ids["chat"]))
    spoil(healthy.path, ("UPDATE sessions SET title = NULL WHERE id = ?", (older,)))
    shell(healthy.path, [("DROP INDEX idx_sessions_title_unique", ())])
    spoil(healthy.path, ("UPDATE sessions SET title = 'Same' WHERE id IN (?, ?)", (older, newer)))
    repair(healthy.path)
    with Store(healthy.path, healthy.release) as store:
        titles = {row["id"]: row["title"] for row in store.rows("SELECT id, title FROM sessions")}
        assert (titles[older], titles[newer]) == (None, "Same")
        made = store.rows("SELECT count(*) AS n FROM sqlite_master WHERE name = 'idx_sessions_title_unique'")
        assert made == [{"n": 1}]
        assert_clean(store)


@pytest.mark.parametrize("release", RELEASES)
def test_ids_are_not_given_out_twice_after_the_counter_was_raised(release: str, tmp_path: Path) -> None:
    healthy = copy_of(release, tmp_path / "home")
    ((highest, session_id),) = rows(healthy.path, "SELECT max(id), session_id FROM messages")
    spoil(healthy.path, ("UPDATE sqlite_sequence SET seq = 1 WHERE name = 'messages'", ()))
    repair(healthy.path)
    spoil(healthy.path, ("DELETE FROM messages WHERE id = ?", (highest,)))
    with Store(healthy.path, release) as store:
        assert store.call("append", session_id=session_id, content="new") > highest
