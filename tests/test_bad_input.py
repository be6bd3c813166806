"""Whatever a path or a file holds: one clear line, the right exit code, never a traceback, never a hang."""

from __future__ import annotations

import json
import os
import secrets
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.hostile import damage_every_column
from tests.published import checked
from tests.running import COMMAND, Ran, environment, tool, tool_here
from tests.shapes.make import execute, execute_many, fill, make

NOBODY = 65534
AWKWARD = (
    b"what?.db",
    b"a#b.db",
    b"100%25.db",
    b"with space.db",
    b"line\nbreak.db",
    b"not-utf8-\xff.db",
    b"quote'\".db",
    b"-dash.db",
    "späß.db".encode(),
)


@pytest.fixture
def store(tmp_path: Path) -> Path:
    path = make(tmp_path / "state.db", "22")
    fill(path)
    return path


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that every user may enter; pytest's own are for one user only."""
    with tempfile.TemporaryDirectory(prefix="hermes-dbtools-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        yield folder
        for path in (folder, *(entry for entry in folder.rglob("*") if entry.is_dir())):
            path.chmod(0o755)


AS_A_USER = """
import contextlib, importlib, io, os, pkgutil, sys
import hermes_dbtools
from hermes_dbtools.__main__ import main
from hermes_dbtools.cli import cli

warm, user, words = sys.argv[1], int(sys.argv[2]), sys.argv[3:]
for module in pkgutil.walk_packages(hermes_dbtools.__path__, "hermes_dbtools."):
    importlib.import_module(module.name)  # that user may not read this Python
for command in ("scan", "repair"):  # nor the files that are read when they are needed
    with contextlib.redirect_stdout(io.TextIOWrapper(io.BytesIO())), contextlib.suppress(SystemExit):
        with contextlib.redirect_stderr(io.StringIO()):
            cli.main([command, warm], standalone_mode=False)
if user:
    os.setgroups([])
    os.setgid(user)
    os.setuid(user)
sys.argv = ["hermes-dbtools", *words]
main()
"""


def as_a_user(*arguments: str | Path, folder: Path) -> Ran:
    """Run the tool as somebody to whom permissions apply: under root, as nobody."""
    with tempfile.TemporaryDirectory() as name:
        warm = make(Path(name) / "state.db", "22")
        fill(warm)
        execute(warm, "DELETE FROM sessions WHERE title = 'Plain session 1'")
        user = 0 if os.geteuid() else NOBODY
        words = [str(argument) for argument in arguments]
        done = subprocess.run(
            [sys.executable, "-c", AS_A_USER, str(warm), str(user), *words],
            env=environment(HOME=str(folder), TMPDIR=None),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=60,
            check=False,
        )
    return Ran(done.returncode, done.stdout.decode(), done.stderr.decode())


def one_clear_line(ran: Ran) -> str:
    """The only line on stderr, from the tool itself."""
    lines = ran.err.splitlines()
    assert len(lines) == 1, ran
    assert lines[0].startswith("hermes-dbtools: ")
    assert ran.out == ""
    return lines[0]


def test_no_such_file(tmp_path: Path) -> None:
    ran = tool_here("scan", tmp_path / "gone.db")
    assert (ran.code, ran.err) == (3, "")
    assert ran.out.splitlines() == [
        f"could not look: {tmp_path / 'gone.db'}: no such file or folder; check the path"
    ]
    for command in ("repair", "history", "undo"):
        ran = tool_here(command, tmp_path / "gone.db")
        assert ran.code == 3
        assert "no such file" in one_clear_line(ran)


def test_a_folder_that_is_no_home(tmp_path: Path) -> None:
    ran = tool_here("scan", tmp_path)
    assert (ran.code, ran.err) == (3, "")
    assert "a folder without state.db" in ran.out
    for command in ("repair", "history", "undo"):
        ran = tool_here(command, tmp_path)
        assert ran.code == 3
        assert "a folder without state.db" in one_clear_line(ran)


def test_a_folder_named_as_the_database(tmp_path: Path) -> None:
    (tmp_path / "state.db").mkdir()
    ran = tool_here("scan", tmp_path)
    assert (ran.code, ran.err) == (3, "")
    assert "a folder, not a database" in ran.out


@pytest.mark.parametrize("command", ["scan", "repair"])
def test_a_fifo_is_not_waited_for(tmp_path: Path, command: str) -> None:
    os.mkfifo(tmp_path / "state.db")
    ran = tool(command, tmp_path / "state.db")
    assert ran.code == 3
    assert "a FIFO" in ran.out + ran.err
    assert len((ran.out + ran.err).splitlines()) == 1


BROKEN: dict[str, tuple[str, Callable[[Path], object]]] = {
    "empty": ("empty", lambda path: path.write_bytes(b"")),
    "zeroes": ("zeroes", lambda path: path.write_bytes(bytes(path.stat().st_size))),
    "text": ("wrong-header", lambda path: path.write_text("CREATE TABLE sessions (id TEXT);\n" * 200)),
    "short text": ("wrong-header", lambda path: path.write_text("hello\n")),
    "encrypted": ("wrong-header", lambda path: path.write_bytes(secrets.token_bytes(path.stat().st_size))),
    "truncated": ("truncated", lambda path: os.truncate(path, path.stat().st_size // 2)),
    "cut in its header": ("truncated", lambda path: os.truncate(path, 60)),
}


@pytest.mark.parametrize("kind", BROKEN)
def test_a_file_that_is_no_database_is_a_finding(store: Path, kind: str) -> None:
    known_as, break_it = BROKEN[kind]
    break_it(store)
    before = store.read_bytes()
    ran = tool_here("scan", store, "--verbose")
    assert (ran.code, ran.err) == (1, "")
    assert "HDB001" in ran.out
    document = json.loads(tool_here("scan", store, "--format", "json").out)
    assert document["exit_code"] == 1
    results = {result["code"]: result for result in document["databases"][0]["results"]}
    assert [finding["kind"] for finding in results["HDB001"]["findings"]] == [known_as]
    assert results["HDB201"]["status"] == "could-not-look"
    assert document["summary"]["could_not_look"] > 0
    dry = tool_here("repair", store)
    assert dry.code == 1
    assert "unreadable-file" in dry.out
    assert "nothing is known of" in dry.out
    assert tool_here("repair", store, "--apply", "--yes").code == 1
    assert store.read_bytes() == before
    assert [path.name for path in store.parent.iterdir()] == ["state.db"]


def test_selected_away_it_is_still_not_clean(store: Path) -> None:
    store.write_bytes(b"")
    assert tool_here("scan", store, "--select", "references").code == 3
    assert tool_here("scan", store, "--ignore", "storage").code == 3


def test_a_database_of_somebody_else(tmp_path: Path) -> None:
    path = tmp_path / "places.db"
    execute(path, "CREATE TABLE visits (url TEXT)")
    ran = tool_here("scan", path)
    assert (ran.code, ran.err) == (3, "")
    assert ran.out.startswith(f"could not look: {path}: not a Hermes store: it has no ")
    ran = tool_here("repair", path, "--apply", "--yes")
    assert ran.code == 3
    assert "not a Hermes store" in one_clear_line(ran)


def test_a_schema_that_is_not_text(store: Path) -> None:
    data = store.read_bytes()
    assert b"rewind_count" in data
    store.write_bytes(data.replace(b"rewind_count", b"rewind\xff\xfe_nt"))
    ran = tool_here("scan", store)
    assert "Traceback" not in ran.err
    assert (ran.code, ran.err) == (1, "")
    assert "HDB002" in ran.out


def test_no_permission(open_folder: Path) -> None:
    path = make(open_folder / "state.db", "22")
    path.chmod(0)
    ran = as_a_user("scan", path, folder=open_folder)
    assert (ran.code, ran.err) == (3, "")
    assert "may not be read by this user" in ran.out
    ran = as_a_user("repair", path, folder=open_folder)
    assert ran.code == 3
    assert "may not be read by this user" in one_clear_line(ran)


def test_no_permission_for_the_folder(open_folder: Path) -> None:
    inner = open_folder / "home"
    inner.mkdir()
    make(inner / "state.db", "22")
    inner.chmod(0)
    for target in (inner, inner / "state.db"):
        for more in ((), ("--all-profiles",)):
            ran = as_a_user("scan", target, *more, folder=open_folder)
            assert ran.code == 3
            assert "run as the user who owns" in ran.out + ran.err
            assert len((ran.out + ran.err).splitlines()) == 1


@pytest.mark.parametrize("left", ["nothing", "wal", "wal and shm"])
def test_a_read_only_folder(open_folder: Path, left: str) -> None:
    path = make(open_folder / "state.db", "22")
    fill(path)
    if left != "nothing":
        _leave_wal(path)
    if left == "wal":
        path.with_name("state.db-shm").unlink()
    for entry in open_folder.iterdir():
        entry.chmod(0o444)
    open_folder.chmod(0o555)
    before = {entry.name: entry.read_bytes() for entry in open_folder.iterdir()}
    ran = as_a_user("scan", path, folder=open_folder)
    assert (ran.code, ran.err) == (0, "")
    execute_it = as_a_user("repair", path, "--apply", "--yes", folder=open_folder)
    assert execute_it.code == 0, "a plan without steps writes nothing"
    assert {entry.name: entry.read_bytes() for entry in open_folder.iterdir()} == before


def test_a_repair_in_a_read_only_folder_is_refused(open_folder: Path) -> None:
    path = make(open_folder / "state.db", "22")
    ids = fill(path)
    execute(path, "DELETE FROM sessions WHERE id = ?", (ids.plain[1],))
    open_folder.chmod(0o555)
    ran = as_a_user("repair", path, "--apply", "--yes", folder=open_folder)
    assert ran.code == 4
    one_clear_line(ran)


def test_one_locked_exclusively_names_who_holds_it(tmp_path: Path) -> None:
    path = make(tmp_path / "state.db", "22", journal_mode="delete")
    fill(path)
    with _holder(path, "BEGIN EXCLUSIVE", "DELETE FROM state_meta") as pid:
        ran = tool("scan", path)
        assert (ran.code, ran.err) == (3, "")
        assert f"(pid {pid})" in ran.out
        assert "locked" in ran.out
        ran = tool("repair", path, "--apply", "--yes")
        assert ran.code == 3
        assert f"(pid {pid})" in one_clear_line(ran)


def test_one_locked_in_wal_mode_is_read_as_it_was_committed(store: Path) -> None:
    with _holder(store, "PRAGMA locking_mode = EXCLUSIVE", "BEGIN EXCLUSIVE", "DELETE FROM messages") as pid:
        ran = tool("scan", store)
        assert (ran.code, ran.err) == (0, "")
        assert f"(pid {pid})" in ran.out


@pytest.mark.parametrize("name", AWKWARD, ids=repr)
def test_awkward_names(store: Path, name: bytes) -> None:
    folder = store.parent / "home of one"
    folder.mkdir()
    path = os.path.join(os.fsencode(folder), name)  # noqa: PTH118 - bytes
    os.rename(store, path)  # noqa: PTH104 - bytes
    for more in ((), ("--format", "json")):
        ran = tool_here("scan", *more, path)
        assert (ran.code, ran.err) == (0, "")
        assert len(ran.out.splitlines()) == 3 or more
    ran = tool_here("scan", "--", name, cwd=folder)
    assert ran.code == 0
    assert os.listdir(os.fsencode(folder)) == [name], "no other file was made"  # noqa: PTH208 - bytes
    os.rename(path, store)  # noqa: PTH104 - bytes
    execute(store, "DELETE FROM sessions WHERE title = 'Plain session 1'")
    os.rename(store, path)  # noqa: PTH104 - bytes
    assert tool_here("repair", path, "--apply", "--yes").code == 0
    assert "committed" in tool_here("history", path).out
    assert tool_here("undo", path, "--apply", "--yes").code == 0
    assert tool_here("scan", path).code == 1


def test_the_next_command_can_be_pasted(store: Path) -> None:
    folder = store.parent / "it's a home"
    folder.mkdir()
    path = store.rename(folder / "state.db")
    execute(path, "DELETE FROM sessions WHERE title = 'Plain session 1'")
    ran = tool_here(
        "repair", path, "--choose", "orphaned-messages=purge", "--allow-lossy", "--max-rows", "50"
    )
    command = ran.err.strip().removeprefix("next:").strip()
    assert command.startswith("hermes-dbtools repair ")
    words = command.removeprefix("hermes-dbtools ")
    shown = subprocess.run(
        ["sh", "-c", f"printf '%s\\n' {words}"], capture_output=True, text=True, check=True
    ).stdout.splitlines()
    assert shown == [
        "repair", str(path), "--choose", "orphaned-messages=purge", "--allow-lossy", "--max-rows", "50", "--apply",
    ]  # fmt: skip
    assert tool_here(*shown, "--yes").code == 0
    assert execute(path, "SELECT COUNT(*) FROM sessions WHERE source = 'recovered'") == [(0,)]


def test_a_link_to_a_database_and_a_loop(store: Path) -> None:
    link = store.parent / "link.db"
    link.symlink_to(store)
    assert tool_here("scan", link).code == 0
    loop = store.parent / "loop.db"
    loop.symlink_to(loop)
    ran = tool_here("scan", loop)
    assert (ran.code, ran.err) == (3, "")
    assert "symbolic links" in ran.out
    dangling = store.parent / "dangling.db"
    dangling.symlink_to(store.parent / "gone.db")
    ran = tool_here("scan", dangling)
    assert (ran.code, ran.err) == (3, "")
    assert len(ran.out.splitlines()) == 1


@pytest.mark.parametrize("spare", [(), ("sessions.id", "messages.id")], ids=["keys too", "keys spared"])
@pytest.mark.parametrize("shape", ["22", "25", "runtime"])
def test_values_of_every_wrong_kind_in_every_column(
    tmp_path: Path, shape: str, spare: tuple[str, ...]
) -> None:
    path = make(tmp_path / "state.db", shape)
    fill(path)
    assert damage_every_column(path, spare=spare) > 1000
    ran = tool_here("scan", path, "--format", "json")
    assert (ran.code, ran.err) == (1, "")
    (database,) = json.loads(ran.out)["databases"]
    unseen = [r["code"] + r["reason"] for r in database["results"] if r["status"] == "could-not-look"]
    assert unseen == []
    assert all(line.isprintable() for line in tool_here("scan", path, "--verbose").out.splitlines())
    for more in (("--verbose",), ("--format", "json"), ("--rehearse", "--allow-lossy")):
        assert "Traceback" not in tool_here("repair", path, *more).err
    listed = tool_here("sessions", "list", path, "--limit", "0", "--format", "json")
    ids = [one["id"] for one in json.loads(listed.out)["sessions"] if isinstance(one["id"], str)]
    assert len(ids) > 100
    for words in (("show", ids[0]), ("delete", ids[50], ids[100]), ("prune", "--older-than", "1d")):
        ran = tool_here("sessions", *words, "--home", path, "--format", "json")
        assert (ran.code in (0, 1, 2), "Traceback" in ran.err) == (True, False), words
    broken = [one for one in ids if one.endswith("not-utf8")]
    asked = ("sessions", "export", *broken, "--home", str(path), "--format", "json", "-o")
    assert tool_here(*asked, str(tmp_path / "out.json")).code == 0
    assert checked((tmp_path / "out.json").read_bytes())[0] == "export"
    ran = tool_here("repair", path, "--apply", "--yes", "--allow-lossy")
    assert ran.code in (0, 1, 4), ran.err
    assert "Traceback" not in ran.err
    if ran.code != 4:
        assert tool_here("undo", path, "--apply", "--yes").code == 0
        assert (
            json.loads(tool_here("scan", path, "--format", "json").out)["databases"][0]["results"]
            == (database["results"])
        )


def test_a_hundred_thousand_findings(tmp_path: Path) -> None:
    path = make(tmp_path / "state.db", "22")
    fill(path)
    rows = [(f"gone-{number:06}", "user", "x", 1_780_000_000.0) for number in range(100_000)]
    execute(path, "DROP TRIGGER messages_fts_insert")
    execute(path, "DROP TRIGGER messages_fts_trigram_insert")
    execute_many(
        path, "INSERT INTO messages (session_id, role, content, timestamp) VALUES (?, ?, ?, ?)", rows
    )
    table = tool_here("scan", path, "--verbose")
    assert table.code == 1
    assert "100,000 missing sessions · 100,000 messages" in table.out
    assert "… and 99,000 more of orphaned-messages" in table.out
    assert len(table.out.splitlines()) < 1100
    (database,) = json.loads(tool_here("scan", path, "--format", "json").out)["databases"]
    (result,) = (result for result in database["results"] if result["code"] == "HDB201")
    assert (result["count"], len(result["findings"]), result["truncated"]) == (100_000, 1000, True)
    dry = tool_here("repair", path)
    assert dry.code == 1
    assert len(dry.out.splitlines()) < 25
    assert "100,002 steps" in dry.out, "the sessions, and both indexes, which were not told of their messages"


USAGE: tuple[tuple[str, ...], ...] = (
    ("scan", "--select", "nonsense"),
    ("scan", "--ignore", "HDB999"),
    ("scan", "--select", ""),
    ("scan", "--select", ","),
    ("scan", "--format", "yaml"),
    ("scan", "--fail-on", "fatal"),
    ("scan", "--output", "no/such/folder/report.json"),
    ("scan", "--output", "."),
    ("scan", ""),
    ("scan", "--home", "", "--all-profiles"),
    ("scan", "--nonsense"),
    ("repair", "--choose", "orphaned-messages"),
    ("repair", "--choose", "nonsense=adopt"),
    ("repair", "--choose", "orphaned-messages=nonsense"),
    ("repair", "--choose", "HDB201=adopt", "--choose", "HDB201=purge"),
    ("repair", "--max-rows", "-1"),
    ("repair", "--max-rows", "many"),
    ("repair", "--max-rows", "1e9"),
    ("repair", "--save-plan", "no/such/folder/plan.json"),
    ("repair", "--plan", "no-such-plan.json"),
    ("repair", "--plan", "."),
    ("repair", "--apply"),
    ("repair", "--apply", "--yes", "--rehearse"),
    ("repair", "--plan", "plan.json", "--allow-lossy"),
    ("undo", "--apply"),
    ("undo", "state.db", "no-such-receipt"),
    ("checks", "nonsense"),
    ("runbook", "nonsense"),
    ("nonsense",),
)


@pytest.mark.parametrize("words", USAGE, ids=" ".join)
def test_usage(store: Path, words: tuple[str, ...]) -> None:
    ran = tool_here(*words, env=environment(HERMES_HOME=str(store.parent)), cwd=store.parent)
    assert ran.code == 2
    assert "Traceback" not in ran.err
    assert ran.out == ""
    told = [line for line in ran.err.splitlines() if line and not line.startswith(("Usage: ", "Try '"))]
    assert len(told) == 1
    assert [path.name for path in store.parent.iterdir()] == ["state.db"]


@pytest.mark.parametrize("command", ["scan", "repair", "history", "undo"])
def test_a_database_and_a_home(store: Path, command: str) -> None:
    ran = tool_here(command, store, "--home", store.parent)
    assert ran.code == 2
    assert "not both" in one_clear_line(ran)


def test_a_plan_of_another_file(store: Path, tmp_path: Path) -> None:
    other = make(tmp_path / "other.db", "22")
    ids = fill(other)
    execute(other, "DELETE FROM sessions WHERE id = ?", (ids.plain[1],))
    plan = tmp_path / "plan.json"
    assert tool_here("repair", other, "--save-plan", plan).code == 1
    for more in ((), ("--apply", "--yes"), ("--rehearse",)):
        ran = tool_here("repair", store, "--plan", plan, *more)
        assert ran.code == 2
        assert "other.db" in one_clear_line(ran)


PLANS: dict[str, Callable[[dict[str, Any]], object]] = {
    "other SQL": lambda plan: plan["steps"][0].update(sql="DELETE FROM sessions;"),
    "other block": lambda plan: plan["steps"][0].update(block="nonsense"),
    "other class": lambda plan: plan["steps"][0].update(code="HDB999"),
    "other operation": lambda plan: plan["steps"][0].update(operation="drop"),
    "odd value": lambda plan: plan["steps"][0].update(bindings={"id": {"hex": "zz"}}),
    "odd list": lambda plan: plan["steps"][0].update(bindings={"id": [1]}),
    "later format": lambda plan: plan.update(format_version=99),
    "not a plan": lambda plan: plan.clear(),
    "unknown field": lambda plan: plan.update(more=1),
    "an id of more than 64 bits": lambda plan: plan["steps"][0]["bindings"].update(id=2**64),
    "an expectation of more than 64 bits": lambda plan: plan["steps"][0].update(expect=2**80),
}


@pytest.mark.parametrize("name", PLANS)
def test_a_plan_that_was_changed(store: Path, name: str) -> None:
    execute(store, "DELETE FROM sessions WHERE title = 'Plain session 1'")
    file = store.parent / "plan.json"
    assert tool_here("repair", store, "--save-plan", file).code == 1
    plan = json.loads(file.read_bytes())
    PLANS[name](plan)
    file.write_text(json.dumps(plan))
    before = store.read_bytes()
    ran = tool_here("repair", store, "--plan", file, "--apply", "--yes")
    assert ran.code == 2
    one_clear_line(ran)
    assert store.read_bytes() == before


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"null", b"\xff\xfe", b"[" * 5000])
def test_a_plan_file_that_is_none(store: Path, content: bytes) -> None:
    file = store.parent / "plan.json"
    file.write_bytes(content)
    ran = tool_here("repair", store, "--plan", file)
    assert ran.code == 2
    assert "plan.json" in one_clear_line(ran)


def test_stdout_closed_by_its_reader(store: Path) -> None:
    for words in (("scan", str(store)), ("scan", str(store), "--format", "json"), ("checks",), ("demo",)):
        reading, writing = os.pipe()
        os.close(reading)
        with subprocess.Popen(
            [*COMMAND, *words], stdout=writing, stderr=subprocess.PIPE, env=environment()
        ) as process:
            os.close(writing)
            _out, err = process.communicate(timeout=60)
        assert (process.returncode, err) == (141, b"")


FULL = Path("/dev/full")
"""A device that takes nothing, as a file on a full disk does."""


@pytest.mark.skipif(not FULL.exists(), reason="this system has no device that is full")
@pytest.mark.parametrize(
    "words",
    [("scan",), ("scan", "--format", "json"), ("sessions", "list"), ("checks",), ("--help",), ("--version",)],
)
def test_an_answer_that_cannot_be_written_is_one_clear_line(store: Path, words: tuple[str, ...]) -> None:
    where = [str(store)] if words[0] in ("scan", "sessions") else []
    with FULL.open("wb") as full:
        done = subprocess.run(
            [*COMMAND, *words, *where], stdout=full, stderr=subprocess.PIPE, env=environment(), check=False
        )
    (line,) = done.stderr.decode().splitlines()
    assert (done.returncode, line.startswith("hermes-dbtools: stdout: No space left on device")) == (2, True)


@pytest.mark.skipif(not FULL.exists(), reason="this system has no device that is full")
def test_what_was_applied_is_not_called_refused_where_that_cannot_be_written(store: Path) -> None:
    execute(store, "DELETE FROM sessions WHERE title = 'Plain session 1'")
    with FULL.open("wb") as full:
        command = [*COMMAND, "repair", str(store), "--apply", "--yes"]
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, env=environment(), check=False)
        assert (done.returncode, b"stays applied" in done.stderr) == (2, True)
        silent = subprocess.run(
            [*COMMAND, "scan", str(store)], stderr=full, stdout=full, env=environment(), check=False
        )
    assert silent.returncode == 2
    assert tool("scan", store).code == 0


def test_stdout_and_stderr_not_there_at_all(store: Path) -> None:
    line = ' "$@" >&- 2>&-; echo $? >code'
    for words, code in ((("scan", str(store)), 0), (("scan", "gone.db"), 3), (("repair", "gone.db"), 3)):
        script = [*COMMAND, *words]
        subprocess.run(
            ["sh", "-c", line.strip(), "sh", *script],
            cwd=store.parent,
            env=environment(),
            check=True,
            timeout=60,
        )
        assert (store.parent / "code").read_text() == f"{code}\n"


def test_interrupted(tmp_path: Path) -> None:
    path = make(tmp_path / "state.db", "22", journal_mode="delete")
    fill(path)
    with _holder(path, "BEGIN EXCLUSIVE", "DELETE FROM state_meta"):
        # The lock makes the scan wait; it has it open as soon as /proc says so.
        process = subprocess.Popen(
            [*COMMAND, "scan", str(path)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment()
        )
        _until(lambda: _has_open(process.pid, path) or process.poll() is not None)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert b"Traceback" not in err
    assert process.returncode == 130
    assert (out, err.decode().strip()) == (b"", "hermes-dbtools: interrupted; nothing more was changed")


def test_a_locale_that_is_not_utf8(store: Path) -> None:
    execute(store, "DELETE FROM sessions WHERE title = 'Plain session 1'")
    path = store.rename(store.with_name("späß.db"))
    env = environment(LC_ALL="C", LANG=None, PYTHONUTF8="0", PYTHONCOERCECLOCALE="0", PYTHONIOENCODING=None)
    plain = tool("scan", path)
    for words in (
        ("scan", path), ("scan", path, "--format", "json"), ("repair", path), ("checks",), ("history", path),
        ("scan", path.with_name("gone-ü.db")), ("repair", path.with_name("gone-ü.db")), ("repair", path, "--choose", "ü=ü"),
    ):  # fmt: skip
        ran = tool(*words, env=env)
        assert "Traceback" not in ran.err
        assert ran.code == tool(*words).code
    ran = tool("scan", path, env=env)
    assert ran.out == plain.out.replace("·", "-")
    assert "späß.db" in ran.out, "the names of files stay what they are"
    assert tool("repair", path, "--apply", "--yes", env=env).code == 0


@pytest.mark.parametrize("columns", ["1", "20", "40"])
def test_a_narrow_terminal(store: Path, columns: str) -> None:
    env = environment(COLUMNS=columns)
    for words in (("--help",), ("scan", "--help"), ("repair", "--help"), ("checks",), ("scan", str(store))):
        ran = tool_here(*words, env=env)
        assert (ran.code, ran.err) == (0, "")


def _leave_wal(path: Path) -> None:
    """Leave a `-wal` with content and its `-shm` behind, as a process does that was killed."""
    script = (
        "import sqlite3, os, sys; c = sqlite3.connect(sys.argv[1]);"
        "c.execute(\"INSERT INTO state_meta (key, value) VALUES ('left', '1')\"); c.commit(); os._exit(0)"
    )
    subprocess.run([sys.executable, "-c", script, str(path)], check=True)
    assert path.with_name(path.name + "-wal").stat().st_size


@contextmanager
def _holder(path: Path, *statements: str) -> Iterator[int]:
    """A process that has run these statements on the file and keeps it open; gives its pid."""
    script = (
        "import sqlite3, sys; c = sqlite3.connect(sys.argv[1], isolation_level=None);"
        "[c.execute(s).fetchall() for s in sys.argv[2:]]; print('ready', flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", script, str(path), *statements], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        try:
            yield process.pid
        finally:
            process.communicate()


def _has_open(pid: int, path: Path) -> bool:
    try:
        links = [str(entry.readlink()) for entry in Path(f"/proc/{pid}/fd").iterdir()]
    except OSError:
        return False
    return str(path) in links


def _until(condition: Callable[[], bool], seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
