"""A restore puts a verified copy in place of a file that nobody holds, and that file can be put back."""

from __future__ import annotations

import json
import os
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from hermes_dbtools import database
from hermes_dbtools.backups import restoring, shelf, swapping, taking, whole_files
from hermes_dbtools.backups.documents import RestoreDocument
from hermes_dbtools.home import Home, resolve
from hermes_dbtools.model import CouldNotLook, Refused, UsageError
from tests.live_writers import crashed, files_of, unprivileged, writer, written
from tests.old_files import MORE, OLD, TITLED, backed_up, read_in_place
from tests.printed import commands, typed
from tests.repairs import COUNTERS, NOW, digests, new_home, repair
from tests.running import tool
from tests.shapes.make import execute

ONE_MORE = """
    INSERT INTO messages (session_id, role, content, timestamp) SELECT id, 'user', 'x', 1 FROM sessions LIMIT 1
"""
KEEPING = {"dbtools", "state.db", "state.db.repair.lock"}


@pytest.fixture
def shared_folder() -> Iterator[Path]:
    """A folder that other users can enter: those of pytest they cannot."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        yield Path(name)


def restore(home: Home, word: str | Path, at: float = 1) -> RestoreDocument:
    return restoring.restore(home, restoring.prepare(home, str(word)), NOW + at)


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def everything(folder: Path) -> dict[str, bytes]:
    """Every file below a folder; `dbtools` may be made for a lock."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def pragma(path: Path, name: str) -> object:
    return execute(path, f"PRAGMA {name}")[0][0]


@pytest.mark.parametrize("old", OLD)
def test_the_backup_is_in_place_and_the_old_file_can_come_back(old: str, tmp_path: Path) -> None:
    home, copy = backed_up(tmp_path / "home")
    OLD[old](home.database)
    check = tmp_path / "check"
    before, new = read_in_place(home.database, check), read_in_place(copy, check)
    seen = everything(home.root)
    document = restoring.prepare(home, copy.stem).document()
    assert not document.applied
    assert everything(home.root) == seen, "a dry run writes nothing"
    done = restore(home, copy.stem)
    assert done.applied
    assert read_in_place(home.database, check) == new
    assert names(home.root) == KEEPING
    assert stat.S_IMODE(Path(done.replaced).stat().st_mode) == 0o600
    assert [(one.kind, one.verified) for one in shelf.kept(home)] == [("backup", True), ("replaced", False)]
    again = restore(home, Path(done.replaced).stem, 2)
    assert read_in_place(home.database, check) == before
    assert names(home.root) == KEEPING
    assert Path(again.replaced).exists()


def test_the_sidecars_of_the_old_file_would_ruin_the_new_one(tmp_path: Path) -> None:
    """What the order of a restore is for: the same files, put in place by hand."""
    home, copy = backed_up(tmp_path / "home")
    OLD["with_wal"](home.database)
    new = read_in_place(copy, tmp_path / "check")
    shutil.copyfile(copy, home.database)
    assert read_in_place(home.database, tmp_path / "check") != new


@pytest.mark.parametrize("mode", ["wal", "delete"])
def test_a_file_that_somebody_holds_stays(mode: str, tmp_path: Path) -> None:
    home, copy = backed_up(tmp_path / "home")
    with writer(home.database, f"PRAGMA journal_mode={mode}", MORE) as live:
        before = files_of(home.database)
        ran = tool("restore", copy.stem, str(home.root))
        assert ran.code == 0
        assert f"(pid {live.pid}), then" in ran.err
        ran = tool("restore", copy.stem, str(home.root), "--apply", "--yes")
        assert ran.code == 4
        assert ran.err.count("\n") == 1
        assert f"(pid {live.pid})" in ran.err
        assert "nothing was changed" in ran.err
        assert files_of(home.database) == before
        assert names(home.root) == {
            name for name in names(home.root) if not name.startswith("state.db.restore")
        }
        live.sql(TITLED)
    assert tool("restore", copy.stem, str(home.root), "--apply", "--yes").code == 0


@pytest.mark.parametrize("old", ["closed", "with_wal", "with_hot_journal"])
@pytest.mark.parametrize("place", ["keep", "remove_sidecars", "rename"])
def test_who_opens_the_file_in_the_middle_gets_it_back(
    old: str, place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, copy = backed_up(tmp_path / "home")
    OLD[old](home.database)
    before = read_in_place(home.database, tmp_path / "check")
    real: Callable[..., object] = getattr(swapping, place)
    strangers: list[Any] = []

    def open_first(*arguments: object) -> object:
        if not strangers:
            strangers.append(stack.enter_context(writer(home.database)))
        return real(*arguments)

    from contextlib import ExitStack

    with ExitStack() as stack:
        monkeypatch.setattr(swapping, place, open_first)
        with pytest.raises(Refused, match=r"was opened by .* meanwhile; nothing was changed"):
            restore(home, copy.stem)
        (stranger,) = strangers
        rows = stranger.run("answer = connection.execute('SELECT count(*) FROM messages').fetchone()[0]")
        stranger.sql(
            "INSERT INTO messages (session_id, role, content, timestamp) SELECT id, 'user', 'x', 1 FROM sessions LIMIT 1"
        )
        after = execute(home.database, "SELECT count(*) FROM messages")
        assert after == [(rows + 1,)], "it writes to the file that is in place"
    monkeypatch.undo()
    execute(home.database, "DELETE FROM messages WHERE content = 'x'")
    found = read_in_place(home.database, tmp_path / "check")
    assert {table: found[table] for table in found if table != "sqlite_sequence"} == before
    assert [one.kind for one in shelf.kept(home)] == ["backup"]
    assert names(home.root) <= {*KEEPING, "state.db-wal", "state.db-shm"}


@pytest.mark.parametrize("damage", ["a page", "a row", "cut off", "its header", "nothing", "empty"])
def test_a_damaged_backup_is_refused(damage: str, tmp_path: Path) -> None:
    home, copy = backed_up(tmp_path / "home")
    execute(home.database, TITLED)
    content = bytearray(copy.read_bytes())
    (root,) = execute(copy, "SELECT rootpage FROM sqlite_schema WHERE name = 'sqlite_autoindex_sessions_1'")[
        0
    ]
    place = content.index(b"20260528_202640_5feceb")
    if damage == "a page":
        content[(root - 1) * 4096 : root * 4096] = b"\xff" * 4096
    elif damage == "a row":
        content[place] ^= 1
    elif damage == "cut off":
        del content[-8192:]
    elif damage == "its header":
        content[:100] = b"\x5a" * 100
    elif damage == "nothing":
        content[:] = bytes(len(content))
    else:
        content.clear()
    target = tmp_path / "damaged.db"
    for path in (copy, target):
        path.write_bytes(content)
    before = everything(home.root)
    ran = tool("restore", copy.stem, str(home.root), "--apply", "--yes")
    assert ran.code == 4, ran
    assert ran.err.count("\n") == 1
    assert "nothing was changed" in ran.err
    assert everything(home.root) == before
    if damage != "a row":
        assert tool("restore", str(target), str(home.root), "--apply", "--yes").code == 4, (
            "without a manifest too"
        )
        assert everything(home.root) == before
    ran = tool("restore", "latest", str(home.root))
    assert (ran.code, "no verified backup" in ran.err) == (2, True)


def test_what_is_no_backup_is_said(tmp_path: Path) -> None:
    home, copy = backed_up(tmp_path / "home")
    written(tmp_path / "other.db", "CREATE TABLE item (text)", "INSERT INTO item VALUES ('x')")
    before = everything(home.root)
    with pytest.raises(CouldNotLook, match="not a Hermes store"):
        restore(home, tmp_path / "other.db")
    with pytest.raises(CouldNotLook, match="no such file"):
        restore(home, tmp_path / "missing.db")
    with pytest.raises(CouldNotLook, match="a folder, not a database"):
        restore(home, tmp_path)
    with pytest.raises(Refused, match="is the database itself"):
        restore(home, home.database)
    with pytest.raises(UsageError, match="0 backups begin with"):
        restore(home, "20991231")
    with pytest.raises(Refused, match="belongs to another program"):
        restore(resolve(tmp_path / "other.db"), copy)
    assert tool("restore", "--apply", "latest", str(home.root)).code == 2, "without a terminal it needs --yes"
    assert everything(home.root) == before


def test_what_is_of_another_database_or_shape_is_put_in_place_and_said(tmp_path: Path) -> None:
    home = new_home(tmp_path / "home", "22")
    (home.root / "profiles").mkdir()
    other, copy = backed_up(home.root / "profiles" / "second", "31")
    ran = tool("restore", str(copy), str(home.root), "--apply", "--yes")
    assert ran.code == 0, ran.err
    assert f"note: the backup is of another database: {other.database}" in ran.out
    assert "note: the backup has another shape: schema 31, " in ran.out
    assert digests(home.database) == digests(other.database)
    loose = tmp_path / "loose.db"
    shutil.copyfile(copy, loose)
    seen = restoring.prepare(home, str(loose)).document()
    assert (seen.kind, seen.created_at) == ("unknown", None)
    assert "nothing lies beside the backup that tells which database it is of" in seen.notes


def test_what_the_present_file_has_more_is_said(tmp_path: Path) -> None:
    home, copy = backed_up(tmp_path / "home")
    execute(home.database, MORE)
    execute(
        home.database, "INSERT INTO sessions (id, source, started_at) VALUES ('newer', 'cli', 1790000000)"
    )
    seen = restoring.prepare(home, copy.stem).document()
    assert seen.notes == (
        "the present file has 1 session and 400 messages more; they stay in the file that is kept",
    )
    answer = tool("restore", copy.stem, str(home.root), "--format", "json").out
    assert msgspec.json.decode(answer, type=RestoreDocument) == seen


def test_owner_mode_application_id_and_journal_mode_stay(tmp_path: Path) -> None:
    home, copy = backed_up(tmp_path / "home")
    execute(home.database, "INSERT INTO state_meta VALUES ('db_file_generation', '0badcafe00000000')")
    execute(home.database, f"PRAGMA application_id = {0x0BADCAFE}")
    execute(home.database, "PRAGMA journal_mode = DELETE")
    home.database.chmod(0o640)
    if os.geteuid() == 0:
        os.chown(home.database, 1234, 4321)
    owner = home.database.stat()
    restore(home, copy.stem)
    found = home.database.stat()
    assert (found.st_uid, found.st_gid, stat.S_IMODE(found.st_mode)) == (owner.st_uid, owner.st_gid, 0o640)
    assert pragma(home.database, "application_id") == 0x0BADCAFE
    assert pragma(home.database, "journal_mode") == "delete"
    assert execute(home.database, "SELECT value FROM state_meta WHERE key = 'db_file_generation'") == [
        ("0badcafe00000000",)
    ]
    new, expected = digests(home.database), digests(copy)
    assert {name for name in new if new[name] != expected[name]} == {"state_meta"}
    assert names(home.root) == KEEPING


def test_the_application_id_of_a_file_with_a_hot_journal_stays(tmp_path: Path) -> None:
    home, copy = backed_up(tmp_path / "home")
    execute(home.database, "PRAGMA application_id = 77")
    OLD["with_hot_journal"](home.database)
    seen = restoring.prepare(home, copy.stem).document()
    assert (seen.database.problem, seen.database.application_id) == ("", 77)
    assert seen.database.path == str(home.database)
    restore(home, copy.stem)
    assert pragma(home.database, "application_id") == 77


def test_a_terminal_is_asked(tmp_path: Path) -> None:
    home, copy = backed_up(tmp_path / "home")
    execute(home.database, TITLED)
    command = f"hermes-dbtools restore {copy.stem} {home.root} --apply"
    before = digests(home.database)
    ran = typed(command, tmp_path, "n\n")
    assert (ran.code, "put it in place? [y/N]" in ran.err) == (130, True)
    assert digests(home.database) == before
    assert typed(command, tmp_path, "y\n").code == 0
    assert digests(home.database) == digests(copy)


def test_what_is_printed_to_be_run_next_is_the_restore_and_the_way_back(tmp_path: Path) -> None:
    home = new_home(tmp_path / "home ?#%", "22")
    made = tool("backup", str(home.root))
    execute(home.database, TITLED)
    before = digests(home.database)
    (shown,) = commands(made)
    (apply,) = commands(typed(shown, tmp_path))
    done = typed(f"{apply} --yes", tmp_path)
    assert done.code == 0
    scan, back = commands(done)
    assert typed(scan, tmp_path).code == 0
    assert digests(home.database) != before
    (apply,) = commands(typed(back, tmp_path))
    assert typed(apply, tmp_path).code == 0
    assert digests(home.database) == before


def test_a_backup_with_an_application_id_of_its_own_keeps_it_where_there_was_none(tmp_path: Path) -> None:
    home, copy = backed_up(tmp_path / "home")
    execute(copy, "PRAGMA application_id = 77")
    shutil.copyfile(copy, tmp_path / "named.db")
    restore(home, tmp_path / "named.db")
    assert pragma(home.database, "application_id") == 77
    assert pragma(home.database, "journal_mode") == "wal"


@pytest.mark.parametrize(
    "lost", ["missing", "empty", "zeroes", "cut off", "its header", "its header and a wal"]
)
def test_a_file_that_is_lost_or_damaged_is_replaced_and_kept(lost: str, tmp_path: Path) -> None:
    home, copy = backed_up(tmp_path / "home")
    if "wal" in lost:
        crashed(home.database, MORE)
    content, wal = home.database.read_bytes(), home.database.with_name("state.db-wal")
    stale = wal.read_bytes() if wal.exists() else b""
    broken = {
        "empty": b"",
        "zeroes": bytes(8192),
        "cut off": content[:5000],
        "its header": b"\x5a" * 100 + content[100:],
        "its header and a wal": b"\x5a" * 100 + content[100:],
    }
    home.database.unlink()
    if lost != "missing":
        home.database.write_bytes(broken[lost])
    ran = tool("restore", "latest", str(home.root), "--apply", "--yes", "--format", "json")
    assert ran.code == 0, ran.err
    check = tmp_path / "check"
    assert read_in_place(home.database, check) == read_in_place(copy, check)
    replaced = json.loads(ran.out)["replaced"]
    assert names(home.root) == KEEPING - ({"state.db.repair.lock"} if lost == "missing" else set())
    if lost == "missing":
        assert replaced == ""
        return
    assert Path(replaced).read_bytes() == broken[lost]
    kept = Path(f"{replaced}-wal")
    assert (kept.read_bytes() if kept.exists() else b"") == stale
    assert tool("restore", replaced, str(home.root), "--apply", "--yes").code == 4, "it is still what it was"


def test_a_wal_without_its_database_is_kept_and_not_applied(tmp_path: Path) -> None:
    home, copy = backed_up(tmp_path / "home")
    OLD["with_wal"](home.database)
    wal = home.database.with_name("state.db-wal").read_bytes()
    home.database.unlink()
    restore(home, copy.stem)
    assert read_in_place(home.database, tmp_path / "check") == read_in_place(copy, tmp_path / "check")
    (kept,) = (home.dbtools_dir / "backups").glob("*-wal")
    assert kept.read_bytes() == wal


@pytest.mark.parametrize("name", ["state.db", "a ?#% %41\nname.db"])
def test_names_and_links(name: str, tmp_path: Path) -> None:
    real = new_home(tmp_path / "real", "22")
    strange = real.database.rename(real.root / name)
    (tmp_path / "home").mkdir()
    link = tmp_path / "home" / "state.db"
    link.symlink_to(strange)
    home = resolve(link)
    copy = Path(taking.back_up(home, taking.BackupOptions(now=NOW)).path)
    new = read_in_place(strange, tmp_path / "check")
    crashed(strange, MORE, TITLED)
    loose = tmp_path / "b ?#% %41\nname.db"
    shutil.copyfile(copy, loose)
    done = restore(home, loose)
    assert link.is_symlink()
    assert read_in_place(strange, tmp_path / "check") == new
    assert names(real.root) == {name, f"{name}.repair.lock"}
    assert Path(done.replaced).parent == home.dbtools_dir / "backups"
    ran = tool("restore", str(loose), str(link))
    assert (ran.code, "\nname" in ran.out) == (0, False)


def test_a_backup_behind_a_link_and_a_backup_with_a_wal(tmp_path: Path) -> None:
    home, _copy = backed_up(tmp_path / "home")
    other = tmp_path / "other"
    shutil.copytree(home.root, other)
    crashed(other / "state.db", MORE, TITLED)
    before = files_of(other / "state.db")
    expected = read_in_place(other / "state.db", tmp_path / "check")
    (tmp_path / "link.db").symlink_to(other / "state.db")
    restore(home, tmp_path / "link.db")
    assert read_in_place(home.database, tmp_path / "check") == expected
    assert files_of(other / "state.db") == before, "the backup is only read"


def test_backups_on_another_file_system_and_on_one_without_second_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, copy = backed_up(tmp_path / "home")
    OLD["with_wal"](home.database)
    before = read_in_place(home.database, tmp_path / "check")

    def no_second_names(*_arguments: object, **_named: object) -> None:
        raise OSError(18, "Invalid cross-device link")

    monkeypatch.setattr(os, "link", no_second_names)
    done = restore(home, copy.stem)
    assert read_in_place(Path(done.replaced), tmp_path / "check") == before
    assert read_in_place(home.database, tmp_path / "check") == read_in_place(copy, tmp_path / "check")
    assert names(home.root) == KEEPING


def test_a_folder_that_may_not_be_written_to(shared_folder: Path) -> None:
    home, copy = backed_up(shared_folder / "home")
    loose = shared_folder / "copy.db"
    shutil.copyfile(copy, loose)
    shutil.rmtree(home.dbtools_dir)
    for path, mode in ((home.database, 0o644), (loose, 0o644), (home.root, 0o555)):
        path.chmod(mode)
        if os.geteuid() == 0:
            os.chown(path, 65534, 65534)
    code = f"""
found = home.resolve(target)
try:
    restoring.restore(found, restoring.prepare(found, {str(loose)!r}))
except ToolError as error:
    answer = [error.exit_code, str(error)]
"""
    before = everything(home.root)
    code_number, line = unprivileged(home.root, code)
    assert code_number == 4
    assert "permission denied" in line
    assert everything(home.root) == before


def test_an_owner_that_cannot_be_kept_is_refused(shared_folder: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("needs files of two users")
    home, copy = backed_up(shared_folder / "home")
    loose = shared_folder / "copy.db"
    shutil.copyfile(copy, loose)
    shutil.rmtree(home.dbtools_dir)
    os.chown(home.database, 1234, 4321)
    for path, mode in ((home.database, 0o666), (loose, 0o644), (home.root, 0o777)):
        path.chmod(mode)
    code = f"""
found = home.resolve(target)
try:
    restoring.restore(found, restoring.prepare(found, {str(loose)!r}))
except ToolError as error:
    answer = [error.exit_code, str(error)]
"""
    before = home.database.read_bytes()
    code_number, line = unprivileged(home.root, code)
    assert (code_number, home.database.read_bytes()) == (4, before)
    assert "belongs to user 1234 and group 4321, which could not be kept" in line
    assert names(home.root) == KEEPING


def test_a_failure_after_the_file_is_in_place_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, copy = backed_up(tmp_path / "home")
    execute(home.database, TITLED)

    def failing(_one: object) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(swapping, "give_back_if_held", failing)
    with pytest.raises(restoring.InPlace, match="the backup is in place, the file before it is") as caught:
        restore(home, copy.stem)
    assert caught.value.exit_code == 1
    assert digests(home.database) == digests(copy)
    assert [one.kind for one in shelf.kept(home)] == ["backup", "replaced"]


def test_a_backup_of_a_repair_is_restored_by_the_name_of_its_receipt(tmp_path: Path) -> None:
    home = new_home(tmp_path / "home", "22", COUNTERS)
    before = digests(home.database)
    receipt = repair(home)
    assert digests(home.database) != before
    done = restore(home, receipt.id)
    assert done.kind == "repair"
    assert done.notes == ()
    assert digests(home.database) == before


def test_another_repair_or_backup_is_waited_for(tmp_path: Path) -> None:
    home, copy = backed_up(tmp_path / "home")
    state = database.examine(home.database)
    with database.repair_lock(home.database):
        assert (
            "another repair is running" in tool("restore", copy.stem, str(home.root), "--apply", "--yes").err
        )
    with shelf.opened(home, state):
        ran = tool("restore", copy.stem, str(home.root), "--apply", "--yes")
    assert (ran.code, "another backup or restore is running" in ran.err) == (4, True)


def test_too_little_room_is_said_before_anything_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, copy = backed_up(tmp_path / "home")
    OLD["with_wal"](home.database)
    before = everything(home.root)
    monkeypatch.setattr("hermes_dbtools.database.free_bytes", lambda _folder: copy.stat().st_size + 2**24)
    with pytest.raises(Refused, match="needed for the copy; nothing was changed; make room"):
        restore(home, copy.stem)
    assert {name: content for name, content in everything(home.root).items() if "lock" not in name} == before


def test_sqlite_itself_respects_the_lock_of_a_swap(tmp_path: Path) -> None:
    home = new_home(tmp_path / "home", "22")
    with writer(home.database) as other:
        with whole_files.alone(home.database):
            busy = """
connection.execute("PRAGMA busy_timeout=1")
try:
    connection.execute("SELECT count(*) FROM sessions").fetchone()
    answer = "read"
except sqlite3.OperationalError as error:
    answer = str(error)
"""
            assert other.run(busy) == "database is locked"
        other.sql("SELECT count(*) FROM sessions")
        with pytest.raises(Refused, match="held by"), whole_files.alone(home.database):
            pytest.fail("locked beside a reader")
