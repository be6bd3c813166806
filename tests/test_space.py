"""What takes room: every page, value and file is counted once, and nothing that people wrote is printed."""

from __future__ import annotations

import base64
import json
import os
import time
from pathlib import Path

import apsw
import msgspec
import pytest

from hermes_dbtools.documents import encode
from hermes_dbtools.home import resolve
from hermes_dbtools.model import CouldNotLook
from hermes_dbtools.report.space import space_document, space_next, space_text
from hermes_dbtools.space import SpaceOptions, space
from hermes_dbtools.space_model import FileSpace, Space, SpaceDocument
from tests.hostile import damage_every_column
from tests.media import media_home
from tests.running import tool_here
from tests.shapes.make import SHAPES, execute, fill, fill_many, make
from tests.test_privacy import MARKER, mark

NOW = 1_790_000_000.0
INSIDE = SpaceOptions(repairs=False, now=NOW)


def weighed(path: Path, options: SpaceOptions = INSIDE) -> Space:
    return space(resolve(path), options)


def accounted(file: FileSpace) -> int:
    return sum(tree.bytes for tree in file.trees) + file.free + file.reserved + file.lost


@pytest.mark.parametrize("shape", SHAPES)
def test_the_parts_are_the_file(shape: str, tmp_path: Path) -> None:
    path = make(tmp_path / "state.db", shape)
    fill(path)
    execute(path, "DELETE FROM messages WHERE id % 2")
    found = weighed(path).file
    assert accounted(found) == found.bytes == path.stat().st_size
    assert (found.lost, found.reserved) == (0, 0)
    assert all(tree.pages * found.page_size == tree.bytes for tree in found.trees)
    kinds = {tree.name: (tree.kind, tree.owner) for tree in found.trees}
    assert kinds["messages"] == ("table", "messages")
    assert kinds["idx_messages_session"] == ("index", "messages")
    assert kinds["sqlite_autoindex_sessions_1"] == ("index", "sessions")
    assert kinds["messages_fts_data"] == ("search", "messages_fts")
    assert kinds["sqlite_schema"] == ("sqlite", "sqlite_schema")


@pytest.mark.parametrize("vacuum", ["NONE", "FULL", "INCREMENTAL"])
@pytest.mark.parametrize("page_size", [512, 4096, 65536])
def test_the_parts_are_the_file_whatever_its_pages(vacuum: str, page_size: int, tmp_path: Path) -> None:
    source, path = make(tmp_path / "source.db", "22", journal_mode="delete"), tmp_path / "state.db"
    fill_many(source, 4, 200, content_bytes=600)
    execute(source, "DELETE FROM messages WHERE id BETWEEN 100 AND 300")
    connection = apsw.Connection(str(source))
    connection.execute(f"PRAGMA auto_vacuum = {vacuum}; PRAGMA page_size = {page_size}; VACUUM;")
    connection.execute("VACUUM INTO ?", (str(path),))
    connection.close()
    execute(path, "DELETE FROM messages WHERE id > 600")
    found = weighed(path).file
    assert accounted(found) == found.bytes == path.stat().st_size
    assert found.lost == 0
    assert (found.reserved > 0) == (vacuum != "NONE")
    assert found.page_size == page_size


def test_free_pages_are_free(tmp_path: Path) -> None:
    path = make(tmp_path / "state.db", "22")
    fill_many(path, 4, 200, content_bytes=900)
    before = weighed(path).file
    execute(path, "DELETE FROM messages")
    after = weighed(path).file
    assert (before.free, after.bytes) == (0, before.bytes)
    assert after.free > 200_000
    assert accounted(after) == after.bytes


@pytest.mark.parametrize("content_bytes", [40, 600, 3000, 9000])
def test_the_estimate_is_what_vacuum_gives(content_bytes: int, tmp_path: Path) -> None:
    path, packed = make(tmp_path / "state.db", "22"), tmp_path / "packed.db"
    fill_many(path, 10, min(180, 300_000 // content_bytes), content_bytes=content_bytes)
    execute(path, "DELETE FROM messages WHERE id % 3 = 0 OR id BETWEEN 100 AND 150")
    estimate = weighed(path).file.packed
    connection = apsw.Connection(str(path))
    connection.execute("VACUUM INTO ?", (str(packed),))
    connection.close()
    assert packed.stat().st_size < 0.95 * path.stat().st_size
    assert estimate == pytest.approx(packed.stat().st_size, rel=0.05)


def test_values_are_summed_by_session_and_source(tmp_path: Path) -> None:
    path = make(tmp_path / "state.db", "22")
    execute(
        path, "INSERT INTO sessions (id, source, started_at) VALUES ('one', 'cli', 1), ('two', 'telegram', 1)"
    )
    for session, content in (
        ("one", "a" * 100), ("one", "\0json:" + "€" * 50), ("two", "b"), ("lost", "c" * 1000), ("lost", "c"),
    ):  # fmt: skip
        execute(
            path,
            "INSERT INTO messages (session_id, role, content, timestamp) VALUES (?, 'user', ?, 1)",
            (session, content),
        )
    found = weighed(path)
    rows = {one.session: (one.source, one.messages, one.row) for one in found.sessions}
    assert rows == {
        "lost": ("(no session)", 2, False),
        "one": ("cli", 2, True),
        "two": ("telegram", 1, True),
    }
    assert [one.session for one in found.sessions] == ["lost", "one", "two"]
    sizes = {one.session: one.bytes for one in found.sessions}
    assert 100 + 156 < sizes["one"] < 100 + 156 + 100
    assert {one.source: (one.sessions, one.messages) for one in found.sources} == {
        "(no session)": (0, 2), "cli": (1, 2), "telegram": (1, 1),
    }  # fmt: skip
    assert sum(one.bytes for one in found.sources) == sum(sizes.values())
    assert found.session_total == 2
    assert [(one.table, one.rows) for one in found.orphans] == [("messages", 2)]
    assert [one.session for one in weighed(path, SpaceOptions(top=1, repairs=False)).sessions] == ["lost"]


def test_rows_of_other_tables_without_a_session(tmp_path: Path) -> None:
    path = make(tmp_path / "state.db", "22")
    fill(path)
    execute(path, "DELETE FROM sessions WHERE id = (SELECT MIN(session_id) FROM session_model_usage)")
    found = {one.table: one.rows for one in weighed(path).orphans}
    assert found["session_model_usage"] > 0
    assert found["messages"] > 0


def test_what_each_repair_would_free(tmp_path: Path) -> None:
    path = make(tmp_path / "state.db", "25")
    fill(path)
    execute(
        path,
        "INSERT INTO messages (session_id, role, content, timestamp) VALUES ('gone', 'user', ?, 1780000000.0)",
        ("x" * 5000,),
    )
    execute(path, "INSERT INTO system_prompts VALUES (?, ?)", ("0" * 64, "unused " * 100))
    found = weighed(path, SpaceOptions(now=NOW))
    gains = {(one.slug, one.answer): one for one in found.gains}
    assert gains["orphaned-messages", "purge"].rows >= 5000
    assert gains["orphaned-messages", "purge"].safety == "lossy"
    assert gains["unreferenced-system-prompts", "drop"].rows == 700
    assert all(one.rows or one.files for one in found.gains)
    (command,) = space_next(found)
    assert "--select orphaned-messages --choose orphaned-messages=purge --allow-lossy" in command
    planned = tool_here(*command.split("   ")[0].split()[1:])
    assert planned.code == 1
    assert "1 row removed" in planned.out


def test_files_beside_the_database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HERMES_DESKTOP_USER_DATA_DIR", str(tmp_path / "desktop"))
    home = media_home(tmp_path / "home")
    root = home.home.root
    kept, free = home.store(b"kept" * 100), home.store(b"free" * 200)
    home.admit(kept)
    for name, size in (
        ("state.db.malformed-backup-20260101", 1000),
        ("state.db.retired-wal-1/state.db-wal", 200),
        ("state-snapshots/1/state.db", 3000),
        ("dbtools/20260101T000000Z-1/backup.db", 400),
        ("dbtools/20260101T000000Z-1/undo", 50),
        ("dbtools/20260101T000000Z-1/trash/1", 7),
        ("dbtools/backups/20260101.db", 600),
        ("cache/images/img_1.png", 90),
        ("sessions/one.jsonl", 30),
        ("other.txt", 5),
    ):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(b"x" * size)
    os.link(root / "sessions/one.jsonl", root / "sessions/two.jsonl")
    (root / "sessions/link").symlink_to("/etc")
    found = weighed(home.database, SpaceOptions(now=time.time() + 2 * 86400))
    groups = {(one.group, one.name): (one.files, one.bytes) for one in found.beside}
    assert groups["copies", "state.db.malformed-backup-20260101"] == (1, 1000)
    assert groups["copies", "state.db.retired-wal-1"] == (1, 200)
    assert groups["copies", "state-snapshots"] == (1, 3000)
    assert groups["dbtools", "backups"] == (2, 1000)
    assert groups["dbtools", "receipts"] == (1, 50)
    assert groups["dbtools", "trash"] == (1, 7)
    assert groups["media", "cache/images"] == (1, 90)
    assert groups["media", "cache/documents/native-inputs"] == (2, 1200)
    assert groups["transcripts", "sessions"] == (1, 30)
    assert ("media", "cache/documents") not in groups
    images = found.images
    assert (images.on_disk, images.referenced, images.unreferenced, images.cached) == (1200, 400, 800, 90)
    assert free["size"] == 800
    gains = {(one.slug, one.answer): one for one in found.gains}
    assert (gains["unreferenced-images", "trash"].files, gains["unreferenced-images", "trash"].rows) == (
        800,
        0,
    )


def test_images_inside_messages(tmp_path: Path) -> None:
    path = make(tmp_path / "state.db", "22")
    fill(path)
    image = base64.b64encode(b"\x89PNG\r\n\x1a\n" + bytes(1500)).decode()
    parts = [{"type": "image_url", "image_url": {"url": f"data:image/png;base64,{image}"}}]
    execute(path, "UPDATE messages SET content = ? WHERE id = 1", ("\0json:" + json.dumps(parts),))
    images = weighed(path, SpaceOptions(now=NOW)).images
    assert (images.inline_count, images.inline) == (1, len(image))


def test_sidecars_count_beside(tmp_path: Path) -> None:
    path = make(tmp_path / "state.db", "22")
    fill(path)
    writer = apsw.Connection(str(path))
    writer.execute("PRAGMA wal_autocheckpoint = 0")
    writer.execute("INSERT INTO state_meta VALUES ('goal:big', ?)", ("x" * 50_000,))
    found = tool_here("space", str(path), "--format", "json", "--no-repairs")
    writer.close()
    document = json.loads(found.out)
    sidecars = {one["name"]: one["bytes"] for one in document["beside"] if one["group"] == "sidecars"}
    assert sidecars["-wal"] > 50_000
    assert sum(tree["bytes"] for tree in document["file"]["trees"]) == document["file"]["bytes"]


def test_the_command_prints_a_table_without_bars_where_nobody_looks(tmp_path: Path) -> None:
    path = make(tmp_path / "state.db", "22")
    fill(path)
    said = tool_here("space", str(path))
    assert said.code == 0
    assert "in the file" in said.out
    assert "█" not in said.out
    assert said.out == tool_here("space", str(path)).out
    document = msgspec.json.decode(tool_here("space", str(path), "--format", "json").out, type=SpaceDocument)
    assert accounted(document.file) == path.stat().st_size


def test_a_bar_per_line_on_a_terminal(tmp_path: Path) -> None:
    path = make(tmp_path / "state.db", "22")
    fill_many(path, 4, 100)
    found = weighed(path)
    plain, bars = space_text(found).splitlines(), space_text(found, bars=20).splitlines()
    assert len(plain) == len(bars)
    lines = [line for line in bars if "%" in line]
    assert lines
    assert any("█" in line for line in lines)
    for one, other in zip(plain, bars, strict=True):
        assert other.replace("█", "").split() == one.split() or any(part in other for part in "▏▎▍▌▋▊▉")


@pytest.mark.parametrize("what", ["no store", "nothing", "damaged"])
def test_what_cannot_be_weighed_is_one_clear_line(what: str, tmp_path: Path) -> None:
    path = make(tmp_path / "state.db", "22")
    fill(path)
    if what == "damaged":
        ((page, size),) = execute(
            path, "SELECT pageno, pgsize FROM dbstat WHERE name = 'messages' AND pagetype = 'leaf' LIMIT 1"
        )
        data = bytearray(path.read_bytes())
        for place in range((page - 1) * size, (page - 1) * size + 8):
            data[place] ^= 0xFF
        path.write_bytes(data)
    else:
        path.unlink()
        if what == "no store":
            apsw.Connection(str(path)).execute("CREATE TABLE t (a)")
    with pytest.raises(CouldNotLook) as raised:
        weighed(path)
    assert "state.db" in str(raised.value)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("shape", ["22", SHAPES[-1]])
def test_bad_values_stop_nothing_and_no_value_is_printed(shape: str, tmp_path: Path) -> None:
    path = make(tmp_path / "state.db", shape)
    fill(path)
    mark(path)
    said = space_text(weighed(path, SpaceOptions(now=NOW)), bars=10)
    assert MARKER not in said
    damage_every_column(path)
    found = weighed(path, SpaceOptions(now=NOW))
    assert accounted(found.file) == found.file.bytes
    text = space_text(found) + encode(space_document(found, {})).decode()
    assert MARKER not in text.replace(f"{MARKER}-", "")
    assert json.loads(encode(space_document(found, {})))["path"] == str(path)


def test_reading_leaves_no_trace(tmp_path: Path) -> None:
    path = make(tmp_path / "state.db", "22")
    fill(path)
    contents = {one.name: one.read_bytes() for one in tmp_path.iterdir()}
    weighed(path, SpaceOptions(now=NOW))
    assert {one.name: one.read_bytes() for one in tmp_path.iterdir()} == contents
