"""Search indexes of released stores, damaged and mended: the release searches, appends and deletes, and its engine agrees."""

from __future__ import annotations

from pathlib import Path

import pytest

from hermes_dbtools.model import Status
from tests.real.damages import shell
from tests.real.judge import assert_clean, assert_found, assert_usable, listing, texts
from tests.real.lives import KINDS, copy_of
from tests.real.looks import all_findings, look, run
from tests.real.store import Store

STORES = ("0.19.0", "0.20.4.1")
"""The last release with inline indexes, and the one whose indexes read the messages themselves."""
EXTERNAL = "0.20.4.1"
LONG = "needle " * 3_000 + "behindtheend"
PICTURE = [
    {"type": "text", "text": "look at this wonderful picture"},
    {"type": "image_url", "image_url": {"url": "x"}},
]
TRIGGERS = tuple(
    f"messages_fts{kind}_{event}" for kind in ("", "_trigram") for event in ("insert", "delete", "update")
)
NO_INDEX = """
    DELETE FROM sqlite_master WHERE name = 'messages_fts' OR (type = 'trigger' AND name IN
        ('messages_fts_insert', 'messages_fts_delete', 'messages_fts_update'))
"""
HARMS: dict[str, tuple[str, ...]] = {
    "blocks": ("UPDATE messages_fts_trigram_data SET block = zeroblob(length(block)) WHERE id > 10",),
    "table": ("DROP TABLE messages_fts_idx",),
    "index": ("PRAGMA writable_schema = ON", NO_INDEX),
    "unfed": (
        *(f"DROP TRIGGER {name}" for name in TRIGGERS),
        "UPDATE messages SET content = 'the unheard words' WHERE id = (SELECT MIN(id) FROM messages)",
    ),
    "stale": ("INSERT INTO state_meta (key, value) VALUES ('fts_stale', '1')",),
    "gaps": (),
}
CODES = {
    "blocks": "HDB802",
    "table": "HDB802",
    "index": "HDB803",
    "unfed": "HDB804",
    "stale": "HDB804",
    "gaps": "HDB801",
}
TAKEN_OUT = {
    "0.19.0": "DELETE FROM messages_fts WHERE rowid <= 3",
    EXTERNAL: """
        INSERT INTO messages_fts (messages_fts, rowid, content, tool_name, tool_calls)
        SELECT 'delete', id, content, tool_name, tool_calls FROM messages WHERE id <= 3
    """,
}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state.db"


def talk(store: Store) -> None:
    """Two sessions with what search has trouble with: pictures behind a NUL byte, Chinese, emoji, long answers of tools."""
    for session_id in ("main", "other"):
        store.call("create", session_id=session_id, source="cli")
        store.call("append", session_id=session_id, content=f"{session_id} speaks of elderberries")
        store.call("append", session_id=session_id, content=PICTURE)
        store.call(
            "append",
            session_id=session_id,
            role="assistant",
            content="\u4f60\u597d\u4e16\u754c \U0001f600 hello",
        )
        store.call(
            "append",
            session_id=session_id,
            role="tool",
            content=LONG,
            tool_name="read_file",
            tool_call_id="c1",
        )


@pytest.mark.parametrize("kind", KINDS)
def test_no_index_of_a_healthy_file_is_accused_even_of_one_entry(kind: str, tmp_path: Path) -> None:
    healthy = copy_of(kind, tmp_path)
    report = look(healthy.path, select=("search",), deep=True)
    assert all_findings(report) == []
    of_search = [result for result in report.results if result.family == "search"]
    assert {result.status for result in of_search} == {Status.CLEAN}
    assert [state.verdict for state in report.search] == ["ok", "ok"]


@pytest.mark.parametrize("harm", HARMS)
@pytest.mark.parametrize("release", STORES)
def test_a_mended_index_is_one_that_its_store_works_with(release: str, harm: str, path: Path) -> None:
    with Store(path, release) as store:
        talk(store)
        listed = listing(store)
    shell(path, [(statement, ()) for statement in HARMS[harm] or (TAKEN_OUT[release],)])
    assert {one.code for one in all_findings(look(path, select=("search",)))} == {CODES[harm]}
    told = run("repair", path, "--select", "search", "--apply", "--yes")
    assert told.code == 0, told.out + told.err
    report = look(path, select=("search",), deep=True)
    assert all_findings(report) == []
    assert {state.verdict for state in report.search} == {"ok"}
    with Store(path, release) as store:
        assert_clean(store)
        assert_found(store, "main", "unheard" if harm == "unfed" else "elderberries")
        assert_found(store, "main", "wonderful")
        assert_found(store, "main", "\u4f60\u597d\u4e16")
        assert_found(store, "main", "behindtheend")
        assert_usable(store, "main", texts(store, "main"), listed, word="needle")


def test_a_broken_off_migration_is_ended_and_its_old_tables_go(path: Path) -> None:
    """The tables that the release itself demotes, at the moment it is killed."""
    with Store(path, "0.19.0") as store:
        talk(store)
    with Store(path, EXTERNAL) as store:
        store.call("call", method="_demote_legacy_fts_to_trash", arguments={})
    report = look(path, select=("search",))
    assert {(one.code, one.kind) for one in all_findings(report)} == {
        ("HDB803", "demoted-tables"),
        ("HDB804", "refill"),
    }
    told = run("repair", path, "--select", "search", "--apply", "--yes")
    assert told.code == 0, told.out + told.err
    assert all_findings(look(path, select=("search",), deep=True)) == []
    with Store(path, EXTERNAL) as store:
        assert_clean(store)
        assert_found(store, "main", "elderberries")
        assert_usable(store, "main", texts(store, "main"), listing(store), word="needle")
