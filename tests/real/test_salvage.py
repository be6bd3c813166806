"""Damaged files of every release, fresh and upgraded: the released store lists, resumes, searches and appends on the output."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests import damage_bytes
from tests.real.judge import assert_appends, assert_clean, assert_found, listing, texts
from tests.real.lives import KINDS, UPGRADES, Healthy, copy_of
from tests.real.looks import digest, look, run, wrong
from tests.real.store import Store
from tests.real.wheels import RELEASES
from tests.salvaging import all_rows, lacking, schema

USED = ("chat", "tools", "images")
"""Roles of sessions that are read, searched and appended to."""


def file_alone(kind: str, folder: Path) -> Healthy:
    """A healthy file whose `-wal` was written back, so that its pages are where its trees say."""
    healthy = copy_of(kind, folder)
    assert not healthy.path.with_name("state.db-wal").exists()
    return healthy


def said(healthy: Healthy, folder: Path) -> tuple[list[str], dict[str, list[str]], dict[str, object]]:
    """What the release lists, reads and resumes of a healthy copy."""
    folder.mkdir()
    path = folder / "state.db"
    shutil.copyfile(healthy.path, path)
    with Store(path, healthy.release) as store:
        return (
            listing(store),
            {role: texts(store, healthy.life.ids[role]) for role in USED},
            {role: store.call("resume", session_id=healthy.life.ids[role]) for role in USED},
        )


def salvaged(healthy: Healthy, folder: Path, code: int) -> Path:
    """The new file in a home of its own."""
    folder.mkdir()
    ran = run("salvage", healthy.path, folder / "state.db")
    assert ran.code == code, ran.out + ran.err
    return folder / "state.db"


def assert_goes_on(store: Store, healthy: Healthy, before: dict[str, list[str]]) -> None:
    """The release reads, searches and appends to sessions as it did, and finds nothing wrong with the file."""
    for role in USED:
        session_id = healthy.life.ids[role]
        assert texts(store, session_id) == before[role]
        words = [word for line in before[role] for word in line.split() if word.isalnum()]
        assert_found(store, session_id, max(words, key=len))
        assert_appends(store, session_id)
    assert_clean(store)


@pytest.mark.parametrize("kind", KINDS)
def test_a_file_without_its_first_page_is_itself_again(kind: str, tmp_path: Path) -> None:
    healthy = file_alone(kind, tmp_path / "home")
    listed, read, resumed = said(healthy, tmp_path / "healthy")
    known, rows, objects = digest(healthy.path), all_rows(healthy.path), schema(healthy.path)
    damage_bytes.flip_page(healthy.path, 1)
    new = salvaged(healthy, tmp_path / "new", 1)  # nobody can prove that its schema had no more
    assert digest(new) == known
    assert all_rows(new) == rows
    assert schema(new) == objects
    with Store(new, healthy.release) as store:
        assert listing(store) == listed
        assert {role: store.call("resume", session_id=healthy.life.ids[role]) for role in USED} == resumed
        assert_goes_on(store, healthy, read)


@pytest.mark.parametrize("kind", [*RELEASES, "chain"])
def test_lost_sessions_come_back_and_nothing_else_is_touched(kind: str, tmp_path: Path) -> None:
    healthy = file_alone(kind, tmp_path / "home")
    listed, _read, _resumed = said(healthy, tmp_path / "healthy")
    rows = all_rows(healthy.path)
    place = damage_bytes.places(healthy.path)["sessions", "leaf"][0]
    lost = damage_bytes.rows_on(healthy.path, place)
    damage_bytes.flip_page(healthy.path, place.number)
    new = salvaged(healthy, tmp_path / "new", 1)
    after = all_rows(new)
    sessions = (
        {"sessions": set(rows["sessions"])} if "sessions" in lacking(rows, after, {"sessions": lost}) else {}
    )
    assert lacking(rows, after, {"sessions": lost, **sessions}) == {}
    assert len(after["messages"]) == len(rows["messages"])
    assert [row for row in wrong(look(new)) if row[0] in ("HDB002", "HDB201", "HDB202", "HDB206")] == []
    with Store(new, healthy.release) as store:
        assert listing(store)
        assert set(listing(store)) & set(listed)
        for row in store.call("listed"):
            assert texts(store, row["id"]) is not None
            assert_appends(store, row["id"])
        assert_clean(store)


def spoil_text(path: Path, table: str) -> None:
    """Turn over the first bytes of the text that made a table, wherever in the schema it lies."""
    data = path.read_bytes()
    at = data.index(f"CREATE TABLE {table} (".encode())
    damage_bytes.flip(path, at, 12)


@pytest.mark.parametrize("kind", ["0.13.0", *UPGRADES])
@pytest.mark.parametrize("table", ["messages", "sessions"])
def test_a_lost_text_is_found_by_the_rows_of_its_table(kind: str, table: str, tmp_path: Path) -> None:
    healthy = file_alone(kind, tmp_path / "home")
    _listed, read, _resumed = said(healthy, tmp_path / "healthy")
    known = digest(healthy.path)
    spoil_text(healthy.path, table)
    new = salvaged(healthy, tmp_path / "new", 1)
    assert digest(new) == known
    with Store(new, healthy.release) as store:
        assert_goes_on(store, healthy, read)
