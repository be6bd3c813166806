"""Every kind of page damaged for certain: the right verdict, and all rows outside the damaged pages."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from hermes_dbtools.salvage.facts import Salvaged
from hermes_dbtools.salvage.salvaging import salvage
from hermes_dbtools.scanning import ScanOptions, scan
from tests import damage_bytes
from tests.damage_bytes import Place
from tests.salvaging import DELETED, PAGE, all_rows, lacking, schema, whole_store
from tests.shapes import make

SEARCH = ("messages_fts", "messages_fts_trigram")

KINDS = {
    "leaf": (
        *("async_delegations", "compression_locks", "gateway_routing", "messages", "schema_version"),
        *("session_model_usage", "sessions", "state_meta", "sqlite_sequence", "sqlite_schema"),
        *("idx_async_delegations_delivery", "idx_compression_locks_expires", "idx_messages_active_null"),
        *("idx_messages_platform_msg_id", "idx_messages_session", "idx_messages_session_active"),
        *("idx_session_model_usage_model", "idx_session_model_usage_session", "idx_sessions_gateway_peer"),
        *("idx_sessions_handoff_state", "idx_sessions_parent", "idx_sessions_session_key"),
        *(
            "idx_sessions_source",
            "idx_sessions_source_id",
            "idx_sessions_started",
            "idx_sessions_title_unique",
        ),
        *("sqlite_autoindex_async_delegations_1", "sqlite_autoindex_compression_locks_1"),
        *("sqlite_autoindex_gateway_routing_1", "sqlite_autoindex_session_model_usage_1"),
        *("sqlite_autoindex_sessions_1", "sqlite_autoindex_state_meta_1"),
        *("messages_fts_config", "messages_fts_content", "messages_fts_data", "messages_fts_docsize"),
        *("messages_fts_idx", "messages_fts_trigram_config", "messages_fts_trigram_content"),
        *("messages_fts_trigram_data", "messages_fts_trigram_docsize", "messages_fts_trigram_idx"),
    ),
    "internal": (
        *(
            "compression_locks",
            "gateway_routing",
            "messages",
            "session_model_usage",
            "sessions",
            "state_meta",
        ),
        *("sqlite_schema", "idx_compression_locks_expires", "idx_messages_session"),
        *("idx_messages_session_active", "idx_sessions_gateway_peer", "idx_sessions_source_id"),
        *("sqlite_autoindex_compression_locks_1", "sqlite_autoindex_gateway_routing_1"),
        *("sqlite_autoindex_sessions_1", "sqlite_autoindex_state_meta_1"),
        *("messages_fts_content", "messages_fts_data", "messages_fts_docsize", "messages_fts_idx"),
        *("messages_fts_trigram_content", "messages_fts_trigram_data"),
        *("messages_fts_trigram_docsize", "messages_fts_trigram_idx"),
    ),
    "overflow": (
        *("messages", "messages_fts_content", "messages_fts_data", "messages_fts_idx"),
        *("messages_fts_trigram_content", "messages_fts_trigram_data", "sqlite_schema"),
    ),
}
"""Every kind of page that the store has."""

PAGES = [(name, kind) for kind, names in KINDS.items() for name in names]


@dataclass(frozen=True)
class Original:
    """A healthy store and everything that must be found in what a salvage makes of a damaged copy of it."""

    path: Path
    places: Mapping[tuple[str, str], list[Place]]
    rows: Mapping[str, Mapping[int, tuple[Any, ...]]]
    schema: Mapping[str, str]

    def copy(self, folder: Path) -> Path:
        target = folder / "state.db"
        shutil.copyfile(self.path, target)
        return target


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Original:
    path = whole_store(tmp_path_factory.mktemp("whole") / "state.db")
    return Original(path, damage_bytes.places(path), all_rows(path), schema(path))


def verdict(path: Path) -> list[tuple[str, str, str, object]]:
    """Code, kind, object and whether it is canonical, of every finding about the file and its pages."""
    (report,) = scan((path,), ScanOptions(select=("HDB001", "HDB002"))).databases
    assert report.error == ""
    return [
        (finding.code, finding.kind, finding.key, finding.evidence.get("canonical"))
        for result in report.results
        for finding in result.findings
    ]


def salvaged(damaged: Path) -> tuple[Salvaged, Path]:
    before = damaged.read_bytes()
    output = damaged.with_name("new.db")
    done = salvage(damaged, output)
    assert damaged.read_bytes() == before
    assert sorted(one.name for one in damaged.parent.iterdir()) == ["new.db", "state.db"]
    return done, output


def assert_kept(
    original: Original, output: Path, lost: Mapping[str, set[int]], *, unpointed: bool = False
) -> None:
    """Every row but the lost ones is there as it was, nothing deleted came back, and the new file is sound."""
    after = all_rows(output)
    missing = lacking(original.rows, after, lost)
    if unpointed:
        missing.pop("sessions", None)
    assert missing == {}
    assert not set(range(DELETED[0], DELETED[1] + 1)) & set(after["messages"])
    assert schema(output) == original.schema
    for pragma in ("integrity_check", "foreign_key_check"):
        assert make.execute(output, f"PRAGMA {pragma}") in ([("ok",)], [])
    counts = {name: make.execute(output, f"SELECT count(*) FROM {name}_docsize")[0][0] for name in SEARCH}
    assert counts == dict.fromkeys(SEARCH, len(after["messages"]))


def test_every_kind_of_page_of_the_store_is_damaged_here(original: Original) -> None:
    assert sorted(PAGES) == sorted(original.places)


@pytest.mark.parametrize(("name", "kind"), PAGES, ids=[f"{name}-{kind}" for name, kind in PAGES])
def test_a_page_turned_over(original: Original, tmp_path: Path, name: str, kind: str) -> None:
    place = original.places[name, kind][len(original.places[name, kind]) // 2]
    damaged = original.copy(tmp_path)
    damage_bytes.flip_page(damaged, place.number)
    found = verdict(damaged)
    assert found == [one for one in found if one[0] in ("HDB001", "HDB002")]
    done, output = salvaged(damaged)
    lost: dict[str, set[int]] = {}
    if name in original.rows:
        lost = {name: damage_bytes.rows_on(original.path, place)}
        assert ("HDB002", "table", name, True) in found
    elif name.startswith("messages_fts"):
        assert found == []
    elif name.startswith(("idx_", "sqlite_autoindex_")):
        assert found == [("HDB002", "index", name, False)]
    elif name == "sqlite_sequence":
        assert found == [("HDB002", "table", name, True)]
    elif place.number == 1:
        assert found == [("HDB001", "wrong-header", "state.db", None)]
    else:
        assert found == [("HDB002", "schema", "sqlite_schema", True)]
    assert_kept(original, output, lost)
    by_name = {table.name: table for table in done.tables}
    if name in original.rows and name != "schema_version":
        table = by_name[name]
        assert (table.lost, table.proof, table.at_most) == (len(lost[name]), "index", len(lost[name]))
        assert table.rows == len(original.rows[name]) - len(lost[name])
    whole = not lost.get(name) and name not in ("sqlite_schema", "sqlite_sequence")
    assert done.exit_code == (0 if whole else 1)
    assert [table.name for table in done.tables if not table.complete] == ([name] if lost.get(name) else [])


@pytest.mark.parametrize("name", ["messages", "sessions", "state_meta"])
@pytest.mark.parametrize("kind", ["leaf", "internal"])
def test_a_page_of_zeroes(original: Original, tmp_path: Path, name: str, kind: str) -> None:
    place = original.places[name, kind][0]
    damaged = original.copy(tmp_path)
    damage_bytes.zero_page(damaged, place.number)
    assert ("HDB002", "table", name, True) in verdict(damaged)
    lost = damage_bytes.rows_on(original.path, place)
    done, output = salvaged(damaged)
    assert_kept(original, output, {name: lost}, unpointed=name == "sessions")
    assert done.exit_code == (1 if lost else 0)


def test_a_lost_session_comes_back_for_its_messages(original: Original, tmp_path: Path) -> None:
    place = original.places["sessions", "leaf"][1]
    lost = damage_bytes.rows_on(original.path, place)
    damaged = original.copy(tmp_path)
    damage_bytes.flip_page(damaged, place.number)
    done, output = salvaged(damaged)
    sql = "SELECT id FROM sessions WHERE rowid IN (SELECT value FROM json_each(?))"
    ids = {id_ for (id_,) in make.execute(original.path, sql, (str(sorted(lost)),))}
    spoken = {one for (one,) in make.execute(original.path, "SELECT DISTINCT session_id FROM messages")}
    rebuilt = make.execute(output, "SELECT id, message_count FROM sessions WHERE source = 'recovered'")
    routed = {id_ for (id_,) in make.execute(output, "SELECT id FROM sessions WHERE source = 'telegram'")}
    assert {id_ for id_, _count in rebuilt} == (ids & spoken) - routed
    assert done.recovered == len(ids & spoken) > 1
    counted = dict(make.execute(output, "SELECT session_id, count(*) FROM messages GROUP BY 1"))
    assert all(count == counted[id_] for id_, count in rebuilt)


@pytest.mark.parametrize("offset", [0, 16, 18, 21, 24, 28, 44, 56], ids=lambda at: f"byte {at}")
def test_a_byte_of_the_header(original: Original, tmp_path: Path, offset: int) -> None:
    damaged = original.copy(tmp_path)
    damage_bytes.flip(damaged, offset, 2)
    verdict(damaged)
    done, output = salvaged(damaged)
    assert_kept(original, output, {})
    assert done.page_size == PAGE
    assert make.execute(output, "PRAGMA page_size") == [(PAGE,)]


@pytest.mark.parametrize("offset", [18, 20, 52, 55, 59], ids=lambda at: f"byte {at}")
def test_a_single_byte_of_the_header_that_changes_what_all_pages_mean(
    original: Original, tmp_path: Path, offset: int
) -> None:
    """The version of writes, the bytes kept free on each page, the mode of vacuum, the encoding: named, and nothing is lost."""
    damaged = original.copy(tmp_path)
    damage_bytes.flip(damaged, offset)
    assert {code for code, *_rest in verdict(damaged)} in ({"HDB001"}, {"HDB002"})
    done, output = salvaged(damaged)
    assert_kept(original, output, {})
    assert done.exit_code == 0


def test_the_list_of_free_pages(original: Original, tmp_path: Path) -> None:
    (trunk,) = damage_bytes.free_pages(original.path)
    damaged = original.copy(tmp_path)
    damage_bytes.flip_page(damaged, trunk)
    assert verdict(damaged) == [("HDB002", "free-list", "free list", False)]
    done, output = salvaged(damaged)
    assert (done.free_list, done.exit_code) == ("unreadable", 0)
    assert_kept(original, output, {})


def test_rows_that_were_deleted_stay_deleted_where_an_interior_page_is_lost(
    original: Original, tmp_path: Path
) -> None:
    damaged = original.copy(tmp_path)
    for place in original.places["messages", "internal"]:
        damage_bytes.flip_page(damaged, place.number)
    done, output = salvaged(damaged)
    assert_kept(original, output, {})
    (messages,) = [table for table in done.tables if table.name == "messages"]
    assert messages.by_pages == messages.rows == len(original.rows["messages"])


@pytest.mark.parametrize("share", [0.9, 0.5])
def test_a_file_cut_off(original: Original, tmp_path: Path, share: float) -> None:
    damaged = original.copy(tmp_path)
    size = int(damaged.stat().st_size * share)
    damage_bytes.cut(damaged, size)
    assert [one[:2] for one in verdict(damaged)] == [("HDB001", "truncated")]
    lost: dict[str, set[int]] = {}
    for places in original.places.values():
        for place in places:
            if place.number * PAGE > size and place.name in original.rows:
                lost.setdefault(place.name, set()).update(damage_bytes.rows_on(original.path, place))
    _done, output = salvaged(damaged)
    assert_kept(original, output, lost, unpointed=True)


def test_a_last_page_that_is_cut_off_is_said_to_be(original: Original, tmp_path: Path) -> None:
    """What is cut off reads as zeroes, so a row that ends there may be another."""
    damaged = original.copy(tmp_path)
    damage_bytes.cut(damaged, damaged.stat().st_size - 7)
    done, _output = salvaged(damaged)
    assert (done.unread_bytes, done.exit_code) == (7, 1)


@pytest.mark.parametrize("at", [0, 1, 3, 5, 8, 9, 12])
@pytest.mark.parametrize("kind", ["leaf", "internal"])
def test_one_byte_of_the_head_of_a_page(original: Original, tmp_path: Path, kind: str, at: int) -> None:
    place = original.places["messages", kind][2 if kind == "leaf" else 0]
    damaged = original.copy(tmp_path)
    damage_bytes.flip(damaged, (place.number - 1) * PAGE + at)
    assert ("HDB002", "table", "messages", True) in verdict(damaged)
    _done, output = salvaged(damaged)
    assert_kept(original, output, {"messages": damage_bytes.rows_on(original.path, place)})


def test_a_text_overwritten_inside_its_row_is_found_by_its_value(original: Original, tmp_path: Path) -> None:
    damaged = original.copy(tmp_path)
    content = b"%0200d" % 100
    at = damaged.read_bytes().index(content)
    damage_bytes.flip(damaged, at + 50, 20)
    done, output = salvaged(damaged)
    assert done.not_text == {"messages": 1}
    assert done.exit_code == 1
    assert len(all_rows(output)["messages"]) == len(original.rows["messages"])


def test_a_chain_bent_to_pages_of_another_is_in_doubt(original: Original, tmp_path: Path) -> None:
    """The row has the right length and every tree is whole; only the pages of the whole file do not add up."""
    places = original.places["messages", "overflow"]
    owner = places[0].path.partition("+")[0]
    links = [place.number for place in places if place.path.partition("+")[0] == owner]
    data = bytearray(original.path.read_bytes())
    of_search = [place.number for place in original.places["messages_fts_data", "overflow"]]
    last_of_search = next(number for number in of_search if not any(data[(number - 1) * PAGE :][:4]))
    before_last = (links[-2] - 1) * PAGE
    assert data[before_last : before_last + 4] == links[-1].to_bytes(4, "big")
    data[before_last : before_last + 4] = last_of_search.to_bytes(4, "big")
    damaged = tmp_path / "state.db"
    damaged.write_bytes(data)
    done, _output = salvaged(damaged)
    assert all(table.complete for table in done.tables)
    assert done.doubts
    assert done.exit_code == 1


STRANGERS = (
    ("sessions", "internal", "messages", "leaf"),
    ("state_meta", "internal", "messages_fts_content", "leaf"),
    ("messages", "leaf", "messages_fts_content", "leaf"),
    ("gateway_routing", "leaf", "messages_fts_data", "leaf"),
)


@pytest.mark.parametrize("strangers", STRANGERS, ids="-".join)
def test_a_page_in_the_place_of_another(
    original: Original, tmp_path: Path, strangers: tuple[str, str, str, str]
) -> None:
    """Both are whole, so what leads to them must not be believed: the table is named, and every row comes from where it lies."""
    path = original.copy(tmp_path)
    table, kind, other, other_kind = strangers
    here, there = original.places[table, kind][-1].number, original.places[other, other_kind][-1].number
    damage_bytes.swap_pages(path, here, there)
    assert (table, True) in {(key, canonical) for _code, _kind, key, canonical in verdict(path)}
    done, output = salvaged(path)
    assert_kept(original, output, {})
    assert {one.name for one in done.tables if one.pages} >= {table}


def test_a_trigger_that_its_damage_left_readable_is_made_right(original: Original, tmp_path: Path) -> None:
    path = original.copy(tmp_path)
    make.execute(path, "DROP TRIGGER messages_fts_insert")
    make.execute(path, "CREATE TRIGGER messages_fts_insert AFTER INSERT ON messages BEGIN SELECT 1; END")
    _done, output = salvaged(path)
    assert_kept(original, output, {})
