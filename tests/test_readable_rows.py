"""Damaged tables are counted by reading them: exactly the rows of the damaged pages are missing."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from hermes_dbtools import readable_rows as readable
from hermes_dbtools.damage.storage.structural_damage import DAMAGE
from hermes_dbtools.file_state import examine
from hermes_dbtools.model import Finding
from tests.looking import findings
from tests.shapes.make import execute, fill, fill_many, make

LEAVES = "SELECT pageno, ncell FROM dbstat WHERE name = 'messages' AND pagetype = 'leaf' ORDER BY path"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with 1,000 messages and their sessions."""
    path = make(tmp_path_factory.mktemp("made") / "state.db", "22")
    fill(path)
    fill_many(path, 10, 100)
    return path


@pytest.fixture
def store(made: Path, tmp_path: Path) -> Path:
    """A copy of it."""
    return Path(shutil.copy(made, tmp_path / "state.db"))


def spoil(path: Path, page: int, content: bytes = b"\xff" * 64) -> None:
    """Overwrite the start of a page."""
    size = examine(path).page_size
    with path.open("r+b") as file:
        file.seek((page - 1) * size)
        file.write(content)


def of_table(path: Path, table: str = "messages") -> Finding:
    """What is said of a damaged table."""
    (found,) = (
        finding for finding in findings(DAMAGE, path) if finding.kind == "table" and finding.table == table
    )
    return found


def leaf(path: Path, place: int) -> tuple[int, int]:
    """Page and rows of a leaf of the messages."""
    leaves = execute(path, LEAVES)
    page, cells = leaves[place]
    return int(page), int(cells)


def test_the_rows_of_one_leaf_are_unreadable_and_all_others_are_not(store: Path) -> None:
    ((total,),) = execute(store, "SELECT count(*) FROM messages")
    page, cells = leaf(store, 5)
    spoil(store, page)
    found = of_table(store)
    assert (found.evidence["rows"], found.evidence["rows_unreadable"]) == (total, cells)
    assert found.evidence["rows_readable"] == total - cells
    assert found.evidence["counted_by"] == "idx_messages_session"
    assert f"{cells:,} of {total:,} are unreadable, sessions intact, search rebuildable" in found.message
    assert isinstance(found.evidence["pages"], list)


def test_leaves_at_both_ends_and_in_the_middle(store: Path) -> None:
    wanted = 0
    for place in (0, 7, 8, -1):
        page, cells = leaf(store, place)
        wanted += cells
        spoil(store, page)
    assert of_table(store).evidence["rows_unreadable"] == wanted


def test_a_page_of_zeroes_holds_no_row(store: Path) -> None:
    page, cells = leaf(store, 3)
    spoil(store, page, bytes(4096))
    assert of_table(store).evidence["rows_unreadable"] == cells


def test_the_root_takes_every_row(store: Path) -> None:
    ((root,),) = execute(store, "SELECT rootpage FROM sqlite_schema WHERE name = 'messages'")
    ((total,),) = execute(store, "SELECT count(*) FROM messages")
    spoil(store, root)
    found = of_table(store)
    assert (found.evidence["rows_readable"], found.evidence["rows_unreadable"]) == (0, total)


def test_one_overflow_page_takes_one_row(store: Path) -> None:
    execute(store, "UPDATE messages SET content = hex(zeroblob(20000)) WHERE id = 100")
    overflow = "SELECT pageno FROM dbstat WHERE name = 'messages' AND pagetype = 'overflow' ORDER BY path"
    pages = [int(row[0]) for row in execute(store, overflow)]
    spoil(store, pages[2])
    assert of_table(store).evidence["rows_unreadable"] == 1


def test_without_an_index_only_what_can_be_read_is_told(store: Path) -> None:
    for name in ("idx_messages_session", "idx_messages_session_active"):
        execute(store, f"DROP INDEX {name}")
    ((total,),) = execute(store, "SELECT count(*) FROM messages")
    page, cells = leaf(store, 5)
    spoil(store, page)
    found = of_table(store)
    assert (found.evidence["rows"], found.evidence["rows_unreadable"]) == (None, None)
    assert found.evidence["rows_readable"] == total - cells
    assert "of how many is not known" in found.message


def test_a_damaged_index_tells_nothing(store: Path) -> None:
    for name in ("idx_messages_session", "idx_sessions_source"):
        ((root,),) = execute(store, "SELECT rootpage FROM sqlite_schema WHERE name = ?", (name,))
        spoil(store, root)
    page, cells = leaf(store, 5)
    spoil(store, page)
    found = of_table(store)
    assert found.evidence["counted_by"] == "idx_messages_session_active"
    assert found.evidence["rows_unreadable"] == cells


def test_a_limit_of_questions_says_at_most(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(readable, "MOST_QUESTIONS", 0)
    page, cells = leaf(store, 5)
    spoil(store, page)
    found = of_table(store)
    assert found.evidence["at_most"] is True
    assert int(str(found.evidence["rows_unreadable"])) >= cells
    assert "at most" in found.message


def test_damaged_sessions_leave_messages_intact(store: Path) -> None:
    ((root,),) = execute(store, "SELECT rootpage FROM sqlite_schema WHERE name = 'sessions'")
    spoil(store, root)
    found = of_table(store, "sessions")
    assert "messages intact" in found.message
    assert found.evidence["rows_readable"] == 0
