"""What `salvage` promises beside the rows: the source untouched, the output whole or not at all, and plain words."""

from __future__ import annotations

import json
import random
import resource
import shutil
import stat
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import apsw
import msgspec
import pytest

from hermes_dbtools.salvage.facts import SalvageDocument
from hermes_dbtools.salvage.salvaging import salvage
from tests import damage_bytes
from tests.running import CHECKOUT, Ran, environment, tool, tool_here
from tests.salvaging import all_rows, schema, whole_store
from tests.shapes import make


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return whole_store(tmp_path_factory.mktemp("whole") / "state.db")


@pytest.fixture
def source(whole: Path, tmp_path: Path) -> Path:
    folder = tmp_path / "source"
    folder.mkdir()
    shutil.copyfile(whole, folder / "state.db")
    return folder / "state.db"


def left_in(folder: Path) -> list[str]:
    return sorted(one.name for one in folder.iterdir())


def test_a_healthy_store_comes_out_as_it_was(source: Path, tmp_path: Path) -> None:
    for pragma in ("application_id=1234567", "user_version=7"):
        make.execute(source, f"PRAGMA {pragma}")
    before, stamp = source.read_bytes(), source.stat().st_mtime_ns
    output = tmp_path / "new.db"
    ran = tool_here("salvage", source, output)
    rows = sum(len(found) for found in all_rows(source).values())
    assert (ran.code, ran.out.splitlines()[-1]) == (0, f"{rows:,} rows in {output}: everything was read")
    assert (source.read_bytes(), source.stat().st_mtime_ns) == (before, stamp)
    assert left_in(source.parent) == ["state.db"]
    assert stat.S_IMODE(output.stat().st_mode) == 0o600
    assert left_in(tmp_path) == ["new.db", "source"]
    assert all_rows(output) == all_rows(source)
    assert schema(output) == schema(source)
    for pragma in ("application_id", "user_version", "page_size", "journal_mode", "encoding"):
        assert make.execute(output, f"PRAGMA {pragma}") == make.execute(source, f"PRAGMA {pragma}")
    sequence = "SELECT name, seq FROM sqlite_sequence"
    assert make.execute(output, sequence) == make.execute(source, sequence)


def test_the_same_file_gives_the_same_bytes(source: Path, tmp_path: Path) -> None:
    place = damage_bytes.places(source)["sessions", "leaf"][0]
    damage_bytes.flip_page(source, place.number)
    outputs = [tmp_path / "one.db", tmp_path / "two.db"]
    texts = [tool_here("salvage", source, output, "--format", "json").out for output in outputs]
    assert outputs[0].read_bytes() == outputs[1].read_bytes()
    assert texts[0].replace("one.db", "two.db") == texts[1]


def test_the_document_fits_its_schema(source: Path, tmp_path: Path) -> None:
    damage_bytes.flip_page(source, damage_bytes.places(source)["messages", "leaf"][3].number)
    ran = tool_here("salvage", source, tmp_path / "new.db", "--format", "json")
    document = msgspec.json.decode(ran.out, type=SalvageDocument)
    assert ran.code == document.exit_code == 1
    assert not document.everything_read
    (messages,) = [table for table in document.tables if table.name == "messages"]
    assert messages.proof == "index"
    assert messages.lost == sum(last - first + 1 for first, last in messages.ranges) > 0
    assert sum(count for _session, count in messages.sessions) == messages.lost


def test_the_text_says_what_was_lost_and_what_to_do_next(source: Path, tmp_path: Path) -> None:
    place = damage_bytes.places(source)["messages", "leaf"][3]
    lost = damage_bytes.rows_on(source, place)
    damage_bytes.flip_page(source, place.number)
    ran = tool_here("salvage", source, tmp_path / "new.db")
    assert ran.code == 1
    assert f"messages: unreadable pages {place.number}\n" in ran.out
    assert f"lost ids {min(lost)}-{max(lost)} (proved by an index)" in ran.out
    assert f"next:  hermes-dbtools scan {tmp_path / 'new.db'}" in ran.err


def test_wal_mode_is_kept(source: Path, tmp_path: Path) -> None:
    make.execute(source, "PRAGMA journal_mode = wal")
    output = tmp_path / "new.db"
    assert tool_here("salvage", source, output).code == 0
    assert left_in(tmp_path) == ["new.db", "source"]
    assert output.read_bytes()[18:20] == b"\2\2"


@pytest.mark.parametrize("suffix", ["", "-wal", "-journal"])
def test_nothing_is_written_over(source: Path, tmp_path: Path, suffix: str) -> None:
    output = tmp_path / "new.db"
    there = tmp_path / f"new.db{suffix}"
    there.write_bytes(b"mine")
    ran = tool_here("salvage", source, output)
    assert (ran.code, ran.err) == (4, f"hermes-dbtools: {there} is there already; name a new file\n")
    assert there.read_bytes() == b"mine"
    assert left_in(tmp_path) == [there.name, "source"]


def test_a_link_to_nothing_is_something_too(source: Path, tmp_path: Path) -> None:
    (tmp_path / "new.db").symlink_to(tmp_path / "elsewhere.db")
    assert tool_here("salvage", source, tmp_path / "new.db").code == 4
    assert left_in(tmp_path) == ["new.db", "source"]


@pytest.mark.parametrize(
    "content",
    [b"", bytes(40_000), b"no database at all\n" * 3000, random.Random(5).randbytes(50_000)],
    ids=["empty", "zeroes", "text", "noise"],
)
def test_nothing_readable(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "state.db").write_bytes(content)
    ran = tool_here("salvage", tmp_path / "state.db", tmp_path / "new.db")
    assert ran.code == 3
    assert ran.err.count("\n") == 1
    assert left_in(tmp_path) == ["state.db"]


def test_another_database_is_no_store(tmp_path: Path) -> None:
    other = tmp_path / "state.db"
    make.execute(other, "CREATE TABLE mine (a, b)")
    ran = tool_here("salvage", other, tmp_path / "new.db")
    assert (ran.code, ran.err.count("\n")) == (3, 1)
    assert "no Hermes store" in ran.err
    assert left_in(tmp_path) == ["state.db"]


@pytest.mark.parametrize("name", ["missing.db", ""])
def test_nothing_there(tmp_path: Path, name: str) -> None:
    assert tool_here("salvage", tmp_path / name if name else "", tmp_path / "new.db").code in (2, 3)
    assert left_in(tmp_path) == []


KILLED = """
import os, sys, apsw
connection = apsw.Connection(sys.argv[1])
connection.execute("PRAGMA journal_mode=wal").fetchall()
connection.wal_autocheckpoint(0)
for statement in sys.argv[2:]:
    connection.execute(statement)
os._exit(0)
"""


def killed(path: Path, *statements: str) -> None:
    """Run statements in a process that dies before any of them leaves the `-wal`."""
    subprocess.run([sys.executable, "-c", KILLED, str(path), *statements], check=True, env=environment())
    path.with_name("state.db-shm").unlink()


def test_the_wal_is_honoured(source: Path, tmp_path: Path) -> None:
    killed(source, "UPDATE sessions SET title = 'only in the log' WHERE rowid = 3")
    ran = tool_here("salvage", source, tmp_path / "new.db")
    assert ran.code == 0
    assert "pages taken from the -wal" in ran.out
    assert left_in(source.parent) == ["state.db", "state.db-wal"]
    assert make.execute(tmp_path / "new.db", "SELECT title FROM sessions WHERE rowid = 3") == [
        ("only in the log",)
    ]


def test_a_wal_is_applied_without_the_first_page_of_its_database(source: Path, tmp_path: Path) -> None:
    killed(source, "INSERT INTO state_meta VALUES ('in.the.log', 'yes')")
    damage_bytes.flip_page(source, 1)
    ran = tool_here("salvage", source, tmp_path / "new.db", "--format", "json")
    document = json.loads(ran.out)
    assert document["log"].endswith("pages taken from the -wal")
    assert document["page_size"] == 1024
    found = make.execute(tmp_path / "new.db", "SELECT value FROM state_meta WHERE key = 'in.the.log'")
    assert found == [("yes",)]


def test_of_a_damaged_wal_only_the_transactions_before_the_damage_count(source: Path, tmp_path: Path) -> None:
    killed(
        source,
        "INSERT INTO state_meta VALUES ('first', 'yes')",
        "INSERT INTO state_meta VALUES ('second', 'yes')",
    )
    log = source.with_name("state.db-wal")
    damage_bytes.flip(log, log.stat().st_size - 500, 1)
    ran = tool_here("salvage", source, tmp_path / "new.db")
    found = make.execute(tmp_path / "new.db", "SELECT key FROM state_meta WHERE key IN ('first', 'second')")
    assert found == [("first",)]
    assert ran.code == 0, "the last frame may never have been written whole"


@pytest.mark.parametrize("place", ["salt", "checksum", "frame"])
def test_transactions_behind_a_damaged_place_of_a_wal_are_counted_as_lost(
    source: Path, tmp_path: Path, place: str
) -> None:
    inserts = [f"INSERT INTO state_meta VALUES ('log.{number}', 'yes')" for number in range(4)]
    killed(source, *inserts)
    log = source.with_name("state.db-wal")
    damage_bytes.flip(log, {"salt": 16, "checksum": 24, "frame": 32 + 24 + 100}[place], 4)
    ran = tool_here("salvage", source, tmp_path / "new.db", "--format", "json")
    document = json.loads(ran.out)
    assert (ran.code, document["everything_read"]) == (1, False)
    assert (document["log"], document["log_lost"]) == ("the -wal holds no whole transaction", 4)
    told = tool_here("salvage", source, tmp_path / "other.db").out
    assert "4 transactions lie behind a damaged place of the -wal and cannot be read" in told


def test_what_an_older_generation_of_a_wal_left_behind_is_not_lost(source: Path, tmp_path: Path) -> None:
    """A log that was written back is begun again from its start, and its old frames stay behind the new ones."""
    killed(
        source,
        *(f"INSERT INTO state_meta VALUES ('old.{number}', 'yes')" for number in range(4)),
        "PRAGMA wal_checkpoint(RESTART)",
        "INSERT INTO state_meta VALUES ('new', 'yes')",
    )
    ran = tool_here("salvage", source, tmp_path / "new.db", "--format", "json")
    assert (ran.code, json.loads(ran.out)["log_lost"]) == (0, 0)
    found = make.execute(tmp_path / "new.db", "SELECT count(*) FROM state_meta WHERE key IN ('old.3', 'new')")
    assert found == [(2,)]


def test_the_wal_of_another_file_is_left_out(source: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    make.make(other / "state.db", "22", journal_mode="delete")
    killed(other / "state.db", "INSERT INTO state_meta VALUES ('of.another', 'file')")
    shutil.move(other / "state.db-wal", source.with_name("state.db-wal"))
    ran = tool_here("salvage", source, tmp_path / "new.db")
    assert "the -wal is of a file with other pages and was left out" in ran.out
    assert all_rows(tmp_path / "new.db") == all_rows_of_copy(source, tmp_path)


def all_rows_of_copy(source: Path, folder: Path) -> object:
    """Rows of the file alone, asked of a copy without its sidecars."""
    shutil.copyfile(source, folder / "alone.db")
    return all_rows(folder / "alone.db")


def test_an_unfinished_transaction_is_rolled_back(source: Path, tmp_path: Path) -> None:
    before = all_rows(source)
    with closing(apsw.Connection(str(source))) as connection:
        connection.execute("PRAGMA cache_size=2")
        connection.execute("BEGIN")
        connection.execute("UPDATE messages SET content = 'half done'")
        folder = tmp_path / "died"
        folder.mkdir()
        for one in source.parent.iterdir():
            shutil.copyfile(one, folder / one.name)
        connection.execute("ROLLBACK")
    assert left_in(folder) == ["state.db", "state.db-journal"]
    ran = tool_here("salvage", folder / "state.db", tmp_path / "new.db")
    assert "an unfinished transaction was rolled back" in ran.out
    assert all_rows(tmp_path / "new.db") == before
    assert left_in(folder) == ["state.db", "state.db-journal"]


def limited(size: int) -> Callable[[], None]:
    """Files of this process grow no further than `size` bytes."""
    return lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))


def without_search_entries(path: Path) -> int:
    """Empty the search indexes, so that what is made of the file is larger than it; its bytes."""
    for index in ("messages_fts", "messages_fts_trigram"):
        for name in ("insert", "delete", "update"):
            make.execute(path, f"DROP TRIGGER {index}_{name}")
        make.execute(path, f"DROP TABLE {index}")
    make.execute(path, "VACUUM")
    with closing(apsw.Connection(str(path))) as connection:
        text = make.script("shape_22")
        connection.execute(
            text[text.index("CREATE VIRTUAL TABLE messages_fts USING") :].rpartition("INSERT")[0]
        )
    return path.stat().st_size


@pytest.mark.parametrize(
    ("more", "code", "words"),
    [
        (0, 3, "set TMPDIR to a folder with more room"),  # the private copy is to be given a schema
        (50_000, 4, "cannot be written"),
        (200_000, 4, "cannot be written"),
        (400_000, 4, "cannot be written"),
    ],
)
def test_a_full_disk_leaves_nothing(source: Path, tmp_path: Path, more: int, code: int, words: str) -> None:
    size = without_search_entries(source)
    before = source.read_bytes()
    ran = tool("salvage", source, tmp_path / "new.db", before=limited(size + more))
    assert (ran.code, ran.out) == (code, "")
    assert ran.err.count("\n") == 1
    assert words in ran.err
    assert ("nothing was made" in ran.err) == (code == 4)
    assert source.read_bytes() == before
    assert left_in(tmp_path) == ["source"]


def test_a_full_disk_under_the_private_copy(source: Path, tmp_path: Path) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    ran = tool(
        "salvage", source, tmp_path / "new.db", before=limited(100_000), env=environment(TMPDIR=str(scratch))
    )
    assert (ran.code, ran.err.count("\n")) == (3, 1)
    assert "set TMPDIR to a folder with more room" in ran.err
    assert left_in(scratch) == []
    assert left_in(tmp_path) == ["scratch", "source"]


def test_a_killed_salvage_leaves_the_name_free(source: Path, tmp_path: Path) -> None:
    script = (
        "import os, sys\n"
        "from pathlib import Path\n"
        "from hermes_dbtools.salvage.salvaging import salvage\n"
        "stop = lambda what: os._exit(9) if what == 'its values' else None\n"
        "salvage(Path(sys.argv[1]), Path(sys.argv[2]), stop)\n"
    )
    output = tmp_path / "new.db"
    done = subprocess.run(
        [sys.executable, "-c", script, str(source), str(output)], env=environment(), cwd=CHECKOUT, check=False
    )
    assert done.returncode == 9
    assert not output.exists()
    assert tool_here("salvage", source, output).code == 0


def test_no_word_of_a_message_is_printed(source: Path, tmp_path: Path) -> None:
    secret = "Zyxwvutsrq"
    make.execute(source, "UPDATE messages SET content = ? WHERE id < 60", (secret * 20,))
    damage_bytes.flip_page(source, damage_bytes.places(source)["messages", "leaf"][1].number)
    for number, form in enumerate(("table", "json")):
        ran: Ran = tool_here("salvage", source, tmp_path / f"{number}.db", "--format", form)
        assert secret not in ran.out + ran.err


def test_a_row_that_is_not_utf8_is_kept_and_named(source: Path, tmp_path: Path) -> None:
    make.execute(source, "UPDATE messages SET content = CAST(x'fffe41' AS TEXT) WHERE id = 5")
    damage_bytes.flip_page(source, damage_bytes.places(source)["messages", "internal"][0].number)
    done = salvage(source, tmp_path / "new.db")
    assert done.not_text == {"messages": 1}
    sql = "SELECT typeof(content), hex(content) FROM messages WHERE id = 5"
    assert make.execute(tmp_path / "new.db", sql) == [("text", "FFFE41")]
