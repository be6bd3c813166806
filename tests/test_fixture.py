"""`fixture`: what was ordered is what a scan finds, and the same order makes the same bytes."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import apsw
import pytest

from hermes_dbtools import make_fixture, queries, scan
from hermes_dbtools.damage import REGISTRY
from hermes_dbtools.fixtures.damaging import impossible
from hermes_dbtools.fixtures.makers import MAKERS, WITHOUT
from hermes_dbtools.fixtures.names import SHAPES
from hermes_dbtools.fixtures.orders import ordered
from hermes_dbtools.model import DatabaseReport, Refused, Status, UsageError
from hermes_dbtools.scanning import ScanOptions
from hermes_dbtools.shape import Shape, read_shape
from tests.live_writers import writer
from tests.printed import commands, typed
from tests.running import CHECKOUT, environment, tool_here
from tests.shapes.health import drifted, unanswered
from tests.shapes.make import execute, make

LATER = 4_000_000_000.0
"""Epoch seconds at which every file is old."""

CONSEQUENCES: Mapping[str, set[str]] = {
    "duplicate-titles": {"missing-indexes"},  # the unique index would forbid them
    "null-active": {"lost-column-defaults"},  # with its default the column would never be NULL
}
"""What else may be found, for it is true as well, and why."""

BLINDING = {"unreadable-file", "split-wal"}
"""With these nobody can look at the rows."""

ALONE = {
    *BLINDING, "structural-damage", "newer-schema", "missing-columns",
    "unavailable-tokenizer", "search-shadow-leftovers", "search-rebuild-pending", "search-index-damage",
}  # fmt: skip
"""What would keep other classes from looking, or from knowing what the file should have."""


def found(home: Path, *, deep: bool = True) -> DatabaseReport:
    (report,) = scan((home,), ScanOptions(limit=None, deep=deep, now=LATER)).databases
    assert report.error == ""
    return report


def counts(report: DatabaseReport) -> dict[str, int]:
    return {result.slug: result.count for result in report.results if result.count}


def unseen(report: DatabaseReport) -> list[tuple[str, str]]:
    return [(r.slug, r.reason) for r in report.results if r.status is Status.COULD_NOT_LOOK]


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.fixture(scope="module")
def shapes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Shape]:
    """What an empty store of each shape has, the tables of Telegram topics included."""
    folder = tmp_path_factory.mktemp("shapes")
    read = {}
    for name in SHAPES:
        connection = apsw.Connection(str(make(folder / name, name, parts=["telegram"])))
        read[name] = read_shape(connection)
        connection.close()
    return read


def test_every_class_has_a_maker_or_a_reason() -> None:
    assert set(MAKERS) | set(WITHOUT) == {damage.slug for damage in REGISTRY}
    assert not set(MAKERS) & set(WITHOUT)
    assert all(len(reason) > 20 for reason in WITHOUT.values())


def test_every_file_of_damage_belongs_to_a_maker_and_is_documented() -> None:
    root = CHECKOUT / "sql" / "fixture" / "damage"
    files = {path.relative_to(root).with_suffix("").as_posix() for path in root.glob("*/*.sql")}
    assert files == {damage.path for damage in REGISTRY if damage.slug in MAKERS and MAKERS[damage.slug].rows}
    for file in files:
        blocks = queries.load(f"fixture/damage/{file}")
        assert "damage" in {block.name for block in blocks}, file
        assert all(block.doc[0].isupper() and block.doc.endswith(".") for block in blocks), file


@pytest.mark.parametrize("slug", MAKERS)
def test_a_scan_finds_what_was_ordered_and_nothing_else(
    slug: str, tmp_path: Path, shapes: Mapping[str, Shape]
) -> None:
    maker = MAKERS[slug]
    assert not impossible(ordered(f"{slug}=3"), shapes["runtime"])
    home = tmp_path / "home"
    make_fixture(home, shape="runtime", damage={slug: 3}, home=True)
    report = found(home)
    assert counts(report)[slug] == (3 if maker.counted else 1)
    assert set(counts(report)) - {slug} <= CONSEQUENCES.get(slug, set())
    assert bool(unseen(report)) == (slug in BLINDING)


@pytest.mark.parametrize("shape", ["11", "16", "22", "25", "31", "media"])
def test_all_damages_together_are_found_each_by_itself_and_the_bytes_are_the_same_again(
    shape: str, tmp_path: Path, shapes: Mapping[str, Shape]
) -> None:
    wanted = {
        slug: 2 if maker.counted else 1
        for slug, maker in MAKERS.items()
        if slug not in ALONE and not impossible(ordered(f"{slug}=2"), shapes[shape])
    }
    assert len(wanted) > 30
    digests = set()
    for _ in range(2):
        path = make_fixture(
            tmp_path / "home", shape=shape, damage=dict.fromkeys(wanted, 2), home=True, force=True
        )
        digests.add(digest(path))
    assert len(digests) == 1
    report = found(tmp_path / "home")
    also = {other for slug in wanted for other in CONSEQUENCES.get(slug, ())}
    assert set(wanted) <= set(counts(report)) <= set(wanted) | also
    assert all(counts(report)[slug] >= count for slug, count in wanted.items())
    assert unseen(report) == []


@pytest.mark.parametrize("shape", SHAPES)
def test_a_fixture_without_damage_is_healthy_and_alone(shape: str, tmp_path: Path) -> None:
    path = make_fixture(tmp_path / "state.db", shape=shape, sessions=5, messages=7, seed=3)
    assert [file.name for file in tmp_path.iterdir()] == ["state.db"]
    assert counts(found(path)) == {}
    assert unseen(found(path)) == []
    assert execute(path, "PRAGMA integrity_check") == [("ok",)]
    assert execute(path, "PRAGMA journal_mode") == [("wal",)]
    assert execute(path, "SELECT count(*) FROM messages") == [(31 + 35,)]
    assert drifted(path) == []
    assert unanswered(path) == []


def test_the_same_arguments_make_the_same_bytes_in_any_process(tmp_path: Path) -> None:
    words = (
        "--shape",
        "runtime",
        "--damage",
        "orphaned-messages=2",
        "--damage",
        "inline-images",
        "--seed",
        "7",
    )
    words += ("--damage", "dangling-image-references=2", "--sessions", "30", "--messages", "5", "--home")
    digests = set()
    for hash_seed in ("1", "2"):
        home = tmp_path / "home"
        ran = tool_here("fixture", str(home), *words, "--force", env=environment(PYTHONHASHSEED=hash_seed))
        assert ran.code == 0, ran.err
        assert ran.out.splitlines()[1:] == [
            "  orphaned-messages 2",
            "  dangling-image-references 2",
            "  inline-images 1",
        ]
        digests.add(digest(home / "state.db"))
    assert len(digests) == 1


def test_the_order_of_the_words_does_not_matter_and_the_seed_does(tmp_path: Path) -> None:
    one = make_fixture(tmp_path / "1.db", damage=["cut-lineages", "invalid-json=2"])
    other = make_fixture(tmp_path / "2.db", damage={"invalid-json": 2, "cut-lineages": 1})
    seeded = make_fixture(tmp_path / "3.db", damage={"invalid-json": 2, "cut-lineages": 1}, seed=1)
    assert digest(one) == digest(other) != digest(seeded)
    ids = [{row[0] for row in execute(path, "SELECT id FROM sessions")} for path in (one, seeded)]
    assert len(ids[0]) == len(ids[1])
    assert not ids[0] & ids[1]


@pytest.mark.parametrize(
    ("word", "kind"),
    [(f"{slug}:{kind}", kind) for slug, maker in MAKERS.items() for kind in maker.kinds],
)
def test_every_kind_of_damage_to_the_bytes_of_a_file(word: str, kind: str, tmp_path: Path) -> None:
    home = tmp_path / "home"
    make_fixture(home, damage=[word], home=True)
    result = next(result for result in found(home, deep=False).results if result.count)
    assert (result.slug, result.count, result.findings[0].kind) == (word.partition(":")[0], 1, kind)


def test_a_journal_that_is_to_be_played_back_changes_nothing(tmp_path: Path) -> None:
    healthy = make_fixture(tmp_path / "healthy.db")
    path = make_fixture(tmp_path / "state.db", damage=["split-wal"])
    assert sorted(file.name for file in tmp_path.iterdir()) == ["healthy.db", "state.db", "state.db-journal"]
    rows = [execute(one, "SELECT id, content FROM messages ORDER BY id") for one in (healthy, path)]
    assert rows[0] == rows[1]
    assert not path.with_name("state.db-journal").exists(), "SQLite has played it back"
    assert execute(path, "PRAGMA integrity_check") == [("ok",)]


WRONG = {
    "a class that there is not": (["nonsense"], "no damage class"),
    "no number": (["orphaned-messages=x"], "a number from 1"),
    "none of it": (["orphaned-messages=0"], "a number from 1"),
    "no such kind": (["unreadable-file:odd"], "its kinds are zeroes"),
    "a kind where there are none": (["orphaned-messages:odd"], "it has no kinds"),
    "more pages than there are": (["structural-damage=9"], "4 times at most"),
    "twice": (["orphaned-messages", "HDB201"], "ordered twice"),
    "what needs a home": (["altered-images"], "--home"),
    "what the shape cannot have": (["stuck-executions"], "shape 22: it has no session_admissions"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_cannot_be_made_is_one_line_and_no_file(name: str, tmp_path: Path) -> None:
    words, said = WRONG[name]
    for home in (False, True) if "home" not in name else (False,):
        with pytest.raises(UsageError, match=said):
            make_fixture(tmp_path / "fixture", damage=words, home=home)
    assert list(tmp_path.iterdir()) == []


def test_a_name_that_is_not_text_is_one_line(tmp_path: Path) -> None:
    ran = tool_here("fixture", os.fsencode(tmp_path) + b"/\xff.db")
    assert (ran.code, ran.out, list(tmp_path.iterdir())) == (2, "", [])
    assert ran.err.startswith(f"hermes-dbtools: {tmp_path}/\\xff.db is not UTF-8")
    assert len(ran.err.splitlines()) == 1


@pytest.mark.parametrize("slug", ["search-index-damage", "undecodable-images"])
def test_what_only_a_deep_scan_finds_is_found_and_mended_by_what_is_printed(
    slug: str, tmp_path: Path
) -> None:
    made = tool_here("fixture", tmp_path / "state.db", "--damage", slug)
    (command,) = commands(made)
    assert command.endswith(" --deep")
    found = typed(command, tmp_path)
    assert slug in found.out
    if slug == "search-index-damage":
        repaired = typed(commands(typed(commands(found)[0], tmp_path))[0], tmp_path)
        assert repaired.code == 0, repaired.out + repaired.err
        assert typed(command, tmp_path).code == 0
    else:
        looked = typed(commands(found)[0], tmp_path)
        assert "--choose undecodable-images=placeholder" in looked.out


def test_only_what_is_said_to_need_a_deep_scan_needs_one(tmp_path: Path, shapes: Mapping[str, Shape]) -> None:
    wanted = {
        slug for slug, maker in MAKERS.items() if slug not in ALONE and not maker.deep and not maker.home
    }
    damage = [slug for slug in wanted if not impossible(ordered(slug), shapes["22"])]
    make_fixture(tmp_path / "state.db", damage=damage)
    report = found(tmp_path / "state.db", deep=False)
    assert set(damage) <= set(counts(report))


def test_a_place_where_nothing_can_be_written_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(Refused, match="cannot be made"):
        make_fixture(tmp_path / "file" / "state.db")


def test_a_file_that_is_there_is_replaced_only_by_force_and_with_its_sidecars(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    path.write_bytes(b"mine")
    path.with_name("state.db-wal").write_bytes(b"mine too")
    with pytest.raises(Refused, match="--force"):
        make_fixture(path)
    assert path.read_bytes() == b"mine"
    make_fixture(path, force=True)
    assert [file.name for file in tmp_path.iterdir()] == ["state.db"]
    assert counts(found(path)) == {}
    with pytest.raises(UsageError, match="folder"):
        make_fixture(tmp_path, force=True)
    link = tmp_path / "link.db"
    link.symlink_to(path)
    with pytest.raises(Refused, match="regular file"):
        make_fixture(link, force=True)


def test_a_store_that_somebody_uses_is_never_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = make_fixture(tmp_path / "state.db")
    before = digest(path)
    with writer(path, "SELECT 1"), pytest.raises(Refused, match="another process"):
        make_fixture(path, force=True)
    monkeypatch.setenv("HERMES_HOME", str(tmp_path))
    for place, home in ((path, False), (tmp_path / "other.db", False), (tmp_path, True)):
        with pytest.raises(Refused, match="default home"):
            make_fixture(place, home=home, force=True)
    assert digest(path) == before


def test_the_command_says_what_it_made_and_what_comes_next(tmp_path: Path) -> None:
    ran = tool_here("fixture", "home", "--home", "--damage", "unreferenced-images=2", cwd=tmp_path)
    assert ran.code == 0
    assert ran.out.splitlines()[1:] == ["  unreferenced-images 2"]
    assert "hermes-dbtools scan home" in ran.err
    assert "for a day" in ran.err
    again = tool_here("fixture", "home", "--home", cwd=tmp_path)
    assert (again.code, again.out) == (4, "")
    assert again.err.count("\n") == 1
    assert tool_here("fixture", "x.db", "--shape", "12", cwd=tmp_path).code == 2
    assert tool_here("fixture", "x.db", "--shape", "11", "--damage", "null-active", cwd=tmp_path).code == 2


GROWTH = """
import resource, sys
from hermes_dbtools import make_fixture
make_fixture(sys.argv[1], sessions=int(sys.argv[2]), messages=50)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


def test_memory_does_not_grow_with_the_number_of_messages(tmp_path: Path) -> None:
    peaks = []
    for sessions in (200, 1_000):
        command = [sys.executable, "-c", GROWTH, str(tmp_path / f"{sessions}.db"), str(sessions)]
        done = subprocess.run(command, env=environment(), capture_output=True, text=True, check=True)
        peaks.append(int(done.stdout) * 1024)
    pages = (tmp_path / "1000.db").stat().st_size - (tmp_path / "200.db").stat().st_size
    assert pages > 50_000_000
    assert peaks[1] - peaks[0] < 90_000_000, "no more than the cache of pages and the buffers of two indexes"
