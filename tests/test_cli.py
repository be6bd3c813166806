"""The command line: exit codes, documents, help, progress, and the very output, held against tests/golden/."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import sys
import types
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from hermes_dbtools import cli, demo
from hermes_dbtools.cli import options, progress, sessions
from hermes_dbtools.cli.groups import first_line
from hermes_dbtools.file_state import JOURNAL_MAGIC
from tests.running import Ran, environment, tool, tool_here
from tests.shapes.make import execute, fill, make

GOLDEN = Path(__file__).with_name("golden")
WRITE_GOLDEN = "HERMES_DBTOOLS_WRITE_GOLDEN"
"""Set it to write tests/golden/ anew; what changed is then for a reviewer to see."""

HELPERS = {"__init__", "groups", "options", "completing", "progress", "shells", "terminal"}
"""Modules of the command line that are no command."""

TASKS = cli.COMMANDS
SESSIONS = sessions.COMMANDS


def healthy(folder: Path, shape: str = "22") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = make(folder / "state.db", shape)
    fill(path)
    return path


def orphaned(folder: Path) -> Path:
    """One error, mended by default: a session row is gone, its messages are not."""
    path = healthy(folder)
    execute(path, "DELETE FROM sessions WHERE title = 'Plain session 1'")
    execute(path, "DELETE FROM session_model_usage")
    return path


def drifted(folder: Path) -> Path:
    """One warning."""
    path = healthy(folder)
    execute(path, "UPDATE sessions SET message_count = 99 WHERE title = 'Plain session 1'")
    return path


def noted(folder: Path) -> Path:
    """One note: a branched root whose branch was deleted as stores do."""
    path = healthy(folder)
    branch = "SELECT id FROM sessions WHERE title = 'Branch'"
    execute(path, f"DELETE FROM messages WHERE session_id IN ({branch})")
    execute(path, f"DELETE FROM session_model_usage WHERE session_id IN ({branch})")
    execute(path, "DELETE FROM sessions WHERE title = 'Branch'")
    return path


def missing(folder: Path) -> Path:
    return folder / "gone.db"


def empty(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "state.db").touch()
    return folder / "state.db"


def cut_off(folder: Path) -> Path:
    """A crash in rollback journal mode: one error, and no row is looked at."""
    folder.mkdir(parents=True, exist_ok=True)
    path = make(folder / "state.db", "22", journal_mode="delete")
    fill(path)
    path.with_name("state.db-journal").write_bytes(JOURNAL_MAGIC + bytes(504))
    return path


EXITS: tuple[tuple[Callable[[Path], Path], str, int], ...] = (
    (healthy, "warning", 0),
    (healthy, "note", 0),
    (noted, "warning", 0),
    (noted, "note", 1),
    (drifted, "error", 0),
    (drifted, "warning", 1),
    (orphaned, "error", 1),
    (orphaned, "never", 0),
    (missing, "warning", 3),
    (missing, "never", 3),
    (empty, "warning", 1),
    (empty, "never", 3),
    (cut_off, "error", 1),
    (cut_off, "never", 3),
)


@pytest.mark.parametrize("made", EXITS, ids=lambda made: f"{made[0].__name__} {made[1]}")
@pytest.mark.parametrize("command", ["scan", "repair"])
def test_exit_codes_of_scan_and_dry_run(
    tmp_path: Path, command: str, made: tuple[Callable[[Path], Path], str, int]
) -> None:
    make_it, fail_on, code = made
    path = make_it(tmp_path / "home")
    for format_ in ("table", "json"):
        ran = tool_here(command, path, "--fail-on", fail_on, "--format", format_)
        assert ran.code == code, ran
        assert "Traceback" not in ran.err


def test_findings_win_over_what_could_not_be_looked_at(tmp_path: Path) -> None:
    fine, bad, gone = healthy(tmp_path / "a"), orphaned(tmp_path / "b"), missing(tmp_path)
    assert tool_here("scan", fine, fine).code == 0
    assert tool_here("scan", fine, bad).code == 1
    assert tool_here("scan", fine, gone).code == 3
    ran = tool_here("scan", gone, fine, bad)
    assert ran.code == 1
    assert "could not look" in ran.out
    assert "orphaned-messages" in ran.out
    assert ran.out.count("state.db ·") == 2


def test_exit_codes_of_apply_history_and_undo(tmp_path: Path) -> None:
    path = orphaned(tmp_path / "home")
    assert tool_here("undo", path, "--apply", "--yes").code == 4, "nothing to undo"
    assert tool_here("history", path).code == 0
    assert tool_here("repair", path, "--apply", "--yes").code == 0
    assert tool_here("scan", path).code == 0
    assert tool_here("repair", path, "--apply", "--yes").code == 0, "nothing left to do"
    assert tool_here("undo", path).code == 0
    assert tool_here("scan", path).code == 0, "the dry run of an undo writes nothing"
    assert tool_here("undo", path, "--apply", "--yes").code == 0
    assert tool_here("scan", path).code == 1
    (receipt,) = json.loads(tool_here("history", path, "--format", "json").out)["receipts"]
    assert receipt["status"] == "undone"
    assert tool_here("undo", path, receipt["id"], "--apply", "--yes").code == 4
    for command in ("history", "undo"):
        assert tool_here(command, missing(tmp_path)).code == 3


@pytest.mark.parametrize("content", [b"", bytes(8192), b"not a database"])
def test_the_history_of_a_file_that_is_lost_names_its_backups(content: bytes, tmp_path: Path) -> None:
    path = orphaned(tmp_path / "home")
    assert tool_here("repair", path, "--apply", "--yes").code == 0
    listed = tool_here("history", path)
    path.with_name("state.db-wal").unlink()
    path.with_name("state.db-shm").unlink()
    path.write_bytes(content)
    ran = tool_here("history", path)
    assert (ran.code, ran.out) == (3, listed.out)
    assert f"{path.parent}/dbtools/RECEIPT/backup.db" in ran.err
    (receipt,) = json.loads(tool_here("history", path, "--format", "json").out)["receipts"]
    assert Path(receipt["backup"]).is_file()
    assert tool_here("undo", path).code == 3


def test_what_a_repair_left_that_its_plan_did_not_know_is_named(tmp_path: Path) -> None:
    path = healthy(tmp_path / "home")
    execute(path, "DELETE FROM sessions WHERE end_reason = 'compression'")
    words = ("--allow-lossy", "--choose", "orphaned-messages=purge", "--select", "HDB201,HDB202")
    ran = tool_here("repair", path, "--apply", "--yes", *words)
    assert ran.code == 1
    assert f"left: missing-parent-session (1 session): hermes-dbtools repair {path}" in ran.out


def test_an_apply_without_steps_is_no_dry_run(tmp_path: Path) -> None:
    ran = tool_here("repair", healthy(tmp_path / "home"), "--apply", "--yes")
    assert ran.code == 0
    assert ran.out.startswith("nothing was changed: the plan has no steps")


def test_apply_leaves_findings_that_it_may_not_mend(tmp_path: Path) -> None:
    path = orphaned(tmp_path / "home")
    choose = ("--choose", "orphaned-messages=purge")
    ran = tool_here("repair", path, "--apply", "--yes", *choose)
    assert ran.code == 1
    assert "--allow-lossy" in ran.out
    ran = tool_here("repair", path, "--apply", "--yes", *choose, "--allow-lossy", "--max-rows", "0")
    assert ran.code == 1
    assert "--max-rows" in ran.out
    assert execute(path, "SELECT COUNT(*) FROM sqlite_schema WHERE name = 'messages'") == [(1,)]
    assert not (path.parent / "dbtools").exists()
    assert tool_here("repair", path, "--apply", "--yes", *choose, "--allow-lossy").code == 0


def test_apply_beside_a_holder_is_refused(tmp_path: Path) -> None:
    path = orphaned(tmp_path / "home")
    with holding(path) as pid:
        ran = tool_here("repair", path, "--apply", "--yes")
        assert ran.code == 4
        assert f"(pid {pid})" in ran.err
        assert "nothing was changed" in ran.err
        dry = tool_here("repair", path)
        assert dry.code == 1
        assert "stop python" in dry.err
    assert tool_here("repair", path, "--apply", "--yes").code == 0


def test_apply_where_every_session_is_live(tmp_path: Path) -> None:
    path = healthy(tmp_path / "home", "runtime")
    (session,) = execute(path, "SELECT id FROM sessions WHERE title = 'Plain session 1'")[0]
    execute(path, "UPDATE sessions SET message_count = 99 WHERE id = ?", (session,))
    holder = f"pid={os.getpid()}:turn=t1"
    execute(
        path, "INSERT INTO session_turn_leases VALUES (?, ?, 1780000000.0, 4000000000.0)", (session, holder)
    )
    ran = tool_here("repair", path, "--apply", "--yes")
    assert ran.code == 1
    assert session in ran.err
    assert "nothing was changed" in ran.err
    assert "skipped, active: 1 session" in ran.out
    assert tool_here("repair", path).code == 1


def test_the_default_home(tmp_path: Path) -> None:
    orphaned(tmp_path / "told")
    healthy(tmp_path / "user" / ".hermes")
    assert tool_here("scan", env=environment(HERMES_HOME=str(tmp_path / "told"))).code == 1
    assert tool_here("scan", env=environment(HOME=str(tmp_path / "user"))).code == 0
    assert tool_here("scan", env=environment(HERMES_HOME="~/.hermes", HOME=str(tmp_path / "user"))).code == 0
    ran = tool_here("scan", env=environment(HERMES_HOME=str(tmp_path / "nowhere")))
    assert ran.code == 3
    assert "HERMES_HOME" in ran.out
    assert tool_here("scan", env=environment(HERMES_HOME="~nobody-of-this-name/x")).code == 2
    assert tool_here("scan", "--home", tmp_path / "told").code == 1


def paths(ran: Ran) -> list[str]:
    return [database["path"] for database in json.loads(ran.out)["databases"]]


def test_all_profiles(tmp_path: Path) -> None:
    home = tmp_path / "home"
    expected = [
        str(healthy(home)),
        str(healthy(home / "profiles" / "home-office")),
        str(orphaned(home / "profiles" / "work")),
    ]
    env = environment(HERMES_HOME=str(home))
    everything = ("scan", "--all-profiles", "--format", "json")
    for words in (everything, (*everything, "--home", str(home)), (*everything, str(home))):
        ran = tool(*words, env=env)
        assert (ran.code, paths(ran)) == (1, expected)
    assert paths(tool_here(*everything, home / "state.db")) == expected
    last_first = [expected[2], *expected[:2]]
    assert paths(tool_here(*everything, home / "profiles" / "work" / "state.db")) == last_first
    assert paths(tool_here(*everything, home, home / "state.db")) == expected, "each file once"
    assert paths(tool("scan", "--format", "json", env=env)) == expected[:1]


def test_all_profiles_hides_nothing(tmp_path: Path) -> None:
    named = healthy(tmp_path / "home" / "profiles" / "work")
    everything = ("scan", "--all-profiles", "--format", "json")
    assert paths(tool_here(*everything, tmp_path / "home")) == [str(named)], (
        "the root profile has no database"
    )
    copy = orphaned(tmp_path / "elsewhere").rename(tmp_path / "elsewhere" / "copy.db")
    ran = tool_here(*everything, copy)
    assert (ran.code, paths(ran)) == (1, [str(copy)])
    ran = tool_here(*everything, tmp_path / "gone", tmp_path / "home")
    assert ran.code == 3
    assert paths(ran)[1:] == [str(named)]
    (tmp_path / "bare").mkdir()
    assert tool_here(*everything, tmp_path / "bare").code == 3


REPORT = {"format", "format_version", "tool", "databases", "summary", "exit_code"}
DATABASE = {
    "path", "size", "shape", "journal_mode", "holders", "uninspected_processes", "live_sessions", "error", "results",
}  # fmt: skip
RESULT = {
    "code", "slug", "family", "severity", "status", "reason", "count", "found", "truncated", "findings",
}  # fmt: skip
FINDING = {"severity", "table", "key", "kind", "message", "evidence", "repair", "next"}
PLAN = {
    "format", "format_version", "database", "fingerprint", "steps", "skipped", "skipped_active", "totals", "choices",
    "allow_lossy", "max_rows",
}  # fmt: skip
STEP = {"code", "slug", "session_ids", "sql", "bindings", "expect", "title"}
TOTALS = {"sessions_added", "rows_changed", "rows_removed", "files_moved", "bytes_freed"}


def test_the_fields_of_a_report(tmp_path: Path) -> None:
    path = orphaned(tmp_path / "home")
    report = json.loads(tool_here("scan", path, "--format", "json").out)
    assert set(report) == REPORT
    assert (report["format"], report["format_version"]) == ("hermes-dbtools/report", 1)
    assert set(report["tool"]) == {"version", "sqlite", "apsw"}
    assert set(report["summary"]) == {"errors", "warnings", "notes", "could_not_look"}
    (database,) = report["databases"]
    assert set(database) == DATABASE | {"search_indexes"}
    assert set(database["shape"]) == {"schema_version", "known", "features", "search_layout"}
    assert all(set(result) == RESULT for result in database["results"])
    (result,) = (result for result in database["results"] if result["findings"])
    assert all(set(finding) == FINDING for finding in result["findings"])
    statuses = {result["status"] for result in database["results"]}
    assert statuses <= {"clean", "damaged", "could-not-look", "not-applicable", "skipped"}
    timed = json.loads(tool_here("scan", path, "--format", "json", "--timings").out)
    assert set(timed["databases"][0]) == DATABASE | {"search_indexes", "gate_seconds"}
    assert all(set(result) == RESULT | {"seconds"} for result in timed["databases"][0]["results"])


def test_the_fields_of_a_plan_and_a_receipt(tmp_path: Path) -> None:
    path = orphaned(tmp_path / "home")
    saved = tmp_path / "plan.json"
    ran = tool_here("repair", path, "--format", "json", "--save-plan", saved)
    plan = json.loads(ran.out)
    assert ran.err == ""
    assert plan == json.loads(saved.read_bytes())
    assert set(plan) == PLAN
    assert all(set(step) >= STEP for step in plan["steps"])
    assert set(plan["totals"]) == TOTALS
    ran = tool_here("repair", path, "--plan", saved, "--apply", "--yes", "--format", "json")
    receipt = json.loads(ran.out)
    assert set(receipt) >= {
        "format", "format_version", "id", "status", "changed", "dbhash_before", "dbhash_after", "undo", "backup",
        "lock_seconds",
    }  # fmt: skip
    assert (receipt["format"], receipt["status"]) == ("hermes-dbtools/receipt", "committed")
    assert ran.err.startswith("after: "), "a summary is no part of the document"
    again = tool_here("repair", path, "--apply", "--yes", "--format", "json")
    assert json.loads(again.out)["steps"] == []
    rehearsed = tool_here("repair", path, "--rehearse", "--format", "json")
    assert json.loads(rehearsed.out)["format"] == "hermes-dbtools/plan"


def test_a_report_in_a_file_is_the_report(tmp_path: Path) -> None:
    path = orphaned(tmp_path / "home")
    for format_ in ("table", "json"):
        file = tmp_path / f"report.{format_}"
        ran = tool_here("scan", path, "--format", format_, "--output", file)
        assert (ran.code, ran.out, ran.err) == (1, "", "")
        assert settled(file.read_text("utf-8"), tmp_path) == settled(
            tool_here("scan", path, "--format", format_).out, tmp_path
        )


SELECT = ("--select", "HDB001,HDB002,HDB003,HDB201,HDB202,HDB203,HDB501")
"""Golden output is of these classes, so that a new class changes none of it."""


def golden_clean(folder: Path) -> Iterator[tuple[str, Ran]]:
    yield from scans(healthy(folder / "home"))


def golden_damaged(folder: Path) -> Iterator[tuple[str, Ran]]:
    (folder / "home").mkdir()
    path = demo.make_home(folder / "home").database
    yield from scans(path)
    yield "verbose.txt", tool_here("scan", path, "--verbose", *SELECT)
    yield "plan.txt", tool_here("repair", path, *SELECT)
    yield "plan-verbose.txt", tool_here("repair", path, "--verbose", *SELECT)
    yield "plan.json", tool_here("repair", path, "--format", "json", *SELECT)


def golden_could_not_look(folder: Path) -> Iterator[tuple[str, Ran]]:
    yield from scans(cut_off(folder / "home"), missing(folder))


def golden_repaired(folder: Path) -> Iterator[tuple[str, Ran]]:
    (folder / "home").mkdir()
    path = demo.make_home(folder / "home").database
    yield "apply.txt", tool_here("repair", path, "--apply", "--yes", "--allow-lossy", *SELECT)
    yield "history.txt", tool_here("history", path)
    yield "history.json", tool_here("history", path, "--format", "json")
    yield from scans(path)
    yield "undo.txt", tool_here("undo", path)


def golden_newer(folder: Path) -> Iterator[tuple[str, Ran]]:
    path = orphaned(folder / "home")
    execute(path, "UPDATE schema_version SET version = 99")
    yield from scans(path)
    yield "plan.txt", tool_here("repair", path, *SELECT)


SITUATIONS = (golden_clean, golden_damaged, golden_could_not_look, golden_repaired, golden_newer)


@pytest.mark.parametrize("situation", SITUATIONS, ids=lambda made: made.__name__.removeprefix("golden_"))
def test_the_very_output(tmp_path: Path, situation: Callable[[Path], Iterator[tuple[str, Ran]]]) -> None:
    word = situation.__name__.removeprefix("golden_").replace("_", "-")
    for name, ran in situation(tmp_path):
        file = GOLDEN / f"{word}-{name}"
        assert "Traceback" not in ran.err
        out = selected(ran.out) if name == "scan.json" else ran.out
        text = settled(f"{out}{ran.err}exit code {ran.code}\n", tmp_path)
        if os.environ.get(WRITE_GOLDEN):
            file.write_text(text, "utf-8")
        assert text == file.read_text("utf-8"), f"{file.name}; {WRITE_GOLDEN}=1 writes it anew"


def test_no_golden_file_is_left_over() -> None:
    words = {made.__name__.removeprefix("golden_").replace("_", "-") for made in SITUATIONS}
    for file in GOLDEN.iterdir():
        assert any(file.name.startswith(f"{word}-") for word in words), file.name


def test_two_runs_say_the_same_bytes(tmp_path: Path) -> None:
    path = orphaned(tmp_path / "home")
    for words in (
        ("scan", path),
        ("scan", path, "--format", "json"),
        ("repair", path, "--format", "json"),
        ("checks",),
    ):
        first, second = tool_here(*words), tool_here(*words)
        assert settled(first.out, tmp_path) == settled(second.out, tmp_path)
        assert first.code == second.code


def scans(*databases: Path) -> Iterator[tuple[str, Ran]]:
    yield "scan.txt", tool_here("scan", *databases, *SELECT)
    yield "scan.json", tool_here("scan", *databases, "--format", "json", *SELECT)


SETTLED: tuple[tuple[str, str], ...] = (
    (r" · \d+ process(es)? of other users not inspected", ""),
    (r"^((?:next:|     )  hermes-dbtools .*?) {3,}", r"\1   "),
    (r"\d+ not selected", "N not selected"),
    (r'"uninspected_processes": \d+', '"uninspected_processes": 0'),
    (r"^((?:/FOLDER/.*)?state\.db) · [\d.,]+ [KMG]?B", r"\1 · SIZE"),
    (r'"size": \d+', '"size": 0'),
    (r'"(version|apsw|sqlite)": "[\d.]+"', r'"\1": "N"'),
    (r"\d{8}T\d{6}Z-[0-9a-f]{8}", "RECEIPT"),
    (r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\dZ", "WHEN"),
    (r'"(created_at|lock_seconds)": [\d.e-]+', r'"\1": 0'),
    (r"\d+\.\d+ s under the write lock", "0 s under the write lock"),
    (r'"(undo_sha256|fingerprint|violations|touched)": "[0-9a-f]{64}"', r'"\1": "DIGEST"'),
)
"""What differs between machines, moments or releases of SQLite, and stands in no golden file."""


def selected(report: str) -> str:
    """A report without the classes that were not selected."""
    document = json.loads(report)
    for database in document["databases"]:
        database["results"] = [r for r in database["results"] if r["status"] != "skipped"]
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def settled(text: str, folder: Path) -> str:
    text = text.replace(str(folder), "/FOLDER")
    for pattern, replacement in SETTLED:
        text = re.sub(pattern, replacement, text, flags=re.MULTILINE)
    return re.sub(r" +$", "", text, flags=re.MULTILINE)


@pytest.mark.parametrize("name", [*TASKS, *(f"sessions {name}" for name in SESSIONS)])
def test_every_help_ends_with_exit_codes_and_an_example(name: str) -> None:
    ran = tool_here(*name.split(), "--help")
    assert (ran.code, ran.err) == (0, "")
    _before, codes, after = ran.out.partition("\n  Exit codes:\n")
    assert codes
    numbers, example, command = after.partition("\n  Example:\n")
    assert example
    assert [int(line.split()[0]) for line in numbers.splitlines()] == sorted(
        int(line.split()[0]) for line in numbers.splitlines()
    )
    assert numbers.startswith("    0  ")
    (line,) = command.splitlines()
    assert line.startswith(f"    hermes-dbtools {name}")
    assert max(map(len, ran.out.splitlines())) <= 80


def test_the_help_lists_every_command_in_one_line() -> None:
    ran = tool_here("--help")
    assert (ran.code, ran.err) == (0, "")
    modules = {path.stem for path in Path(cli.__file__).parent.glob("*.py")} - HELPERS
    assert {name for name in modules if not name.startswith("sessions_")} == set(TASKS)
    assert {name.removeprefix("sessions_") for name in modules if name.startswith("sessions_")} == set(
        SESSIONS
    )
    listed = ran.out.partition("Commands:\n")[2].partition("\n\n")[0].splitlines()
    assert [line.split()[0] for line in listed] == list(TASKS)
    group = cli.cli
    for line, name in zip(listed, TASKS, strict=True):
        command = group.get_command(None, name)  # type: ignore[arg-type]
        assert command is not None
        assert line.split(maxsplit=1)[1] == first_line(command)
    assert "Exit codes" in ran.out
    assert ran.out.splitlines()[-1].startswith("    hermes-dbtools ")


def test_every_example_is_a_call_that_is_understood(tmp_path: Path) -> None:
    store = healthy(tmp_path / ".hermes")
    (tmp_path / "before.db").write_bytes(store.read_bytes())
    env = environment(HOME=str(tmp_path))
    (tmp_path / "reports").mkdir()
    for host in ("web1", "web2"):
        report = tmp_path / "reports" / f"{host}.json"
        assert tool("scan", "--format", "json", "--output", report, env=env).code == 0
    for name in TASKS:
        words = tool_here(name, "--help").out.splitlines()[-1].split()[1:]
        words = [word.replace("~", str(tmp_path)) for word in words]
        more = ["--yes"] if "--apply" in words else []
        ran = tool(*words, *more, env=env, cwd=tmp_path)
        nothing_to_undo = 4 if name == "undo" else 0
        assert ran.code in (0, nothing_to_undo), (name, ran)
        assert "Usage:" not in ran.err


LOADED = """
import sys
from hermes_dbtools.__main__ import main
sys.argv = ["hermes-dbtools", *sys.argv[1:]]
try:
    main()
finally:
    print(*sorted(sys.modules), file=sys.stderr)
"""


def loaded(*words: str) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-c", LOADED, *words], capture_output=True, text=True, check=True, env=environment()
    )
    return set(done.stderr.split())


@pytest.mark.parametrize("words", [("--help",), *((name, "--help") for name in TASKS)], ids=" ".join)
def test_help_imports_no_engine(words: tuple[str, ...]) -> None:
    assert not loaded(*words) & {"apsw", "psutil", "msgspec", "tabulate", "hermes_dbtools.scanning"}


def test_the_version_imports_the_library_and_nothing_else_of_ours() -> None:
    modules = loaded("--version")
    assert "apsw" in modules
    ours = {name for name in modules if name.startswith("hermes_dbtools.") and ".cli" not in name}
    assert ours == {"hermes_dbtools.__main__", "hermes_dbtools.engine"}


def test_the_api_is_functions_whatever_was_imported_before() -> None:
    script = """
import types
import hermes_dbtools.scanning, hermes_dbtools.undoing, hermes_dbtools.apply, hermes_dbtools.plan
import hermes_dbtools.cli.scan, hermes_dbtools.cli.undo
from hermes_dbtools import apply_plan, make_plan, scan, undo
import hermes_dbtools
for name in ("apply_plan", "make_plan", "scan", "undo"):
    assert isinstance(getattr(hermes_dbtools, name), types.FunctionType), name
    assert name in dir(hermes_dbtools)
try:
    hermes_dbtools.nonsense
except AttributeError as error:
    print(error)
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, env=environment()
    )
    assert done.stdout == "module 'hermes_dbtools' has no attribute 'nonsense'\n"
    import hermes_dbtools

    stems = {path.stem for path in Path(hermes_dbtools.__file__).parent.iterdir()}
    assert not stems & set(hermes_dbtools.__all__)


@contextmanager
def terminal(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], str]]:
    """Puts stderr on a terminal; gives what was written there so far. Not a fixture: pytest sets stderr after those."""
    ours, theirs = pty.openpty()
    os.set_blocking(ours, False)
    stream = os.fdopen(theirs, "w", encoding="utf-8")

    def written() -> str:
        stream.flush()
        read = bytearray()
        try:
            while True:
                read += os.read(ours, 1 << 16)
        except BlockingIOError:
            return read.decode("utf-8")

    with monkeypatch.context() as patch:
        patch.setattr(sys, "stderr", stream)
        yield written
    stream.close()
    os.close(ours)


class Clock:
    """A clock that goes on by `step` seconds whenever it is looked at; nobody else looks at it meanwhile."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, step: float) -> None:
        self.now = 100.0
        self.step = step
        monkeypatch.setattr(progress, "time", types.SimpleNamespace(monotonic=self.look))
        monkeypatch.setattr(progress, "EVERY", 3600)

    def look(self) -> float:
        self.now += self.step
        return self.now


def test_progress_is_shown_on_a_terminal_after_a_second(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    path = healthy(tmp_path / "home")
    Clock(monkeypatch, 3.2)
    with terminal(monkeypatch) as written:
        with pytest.raises(SystemExit):
            # Of one class, for nobody reads the terminal meanwhile and it holds 4 KB.
            cli.cli.main(["scan", str(path), "--select", "HDB201"], standalone_mode=False)
        shown = written()
    assert shown.startswith("\r\x1b[K3 s  ")
    assert shown.endswith("\r\x1b[K"), "the line is cleared"
    assert "\n" not in shown
    assert b"3 s  " not in capfdbinary.readouterr().out


def test_progress_is_not_shown_within_a_second(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = healthy(tmp_path / "home")
    Clock(monkeypatch, 0.001)
    with terminal(monkeypatch) as written:
        with pytest.raises(SystemExit):
            cli.cli.main(["scan", str(path)], standalone_mode=False)
        assert written() == ""


def test_progress_is_not_shown_where_stderr_is_no_terminal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = healthy(tmp_path / "home")
    Clock(monkeypatch, 9.0)
    with pytest.raises(SystemExit):
        cli.cli.main(["scan", str(path)], standalone_mode=False)
    assert capsys.readouterr().err == ""


def test_the_progress_line_is_cleared_before_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def break_off() -> None:
        with options.Progress() as told:
            told("structure")
            raise LookupError

    Clock(monkeypatch, 2.0)
    with terminal(monkeypatch) as written:
        with pytest.raises(LookupError):
            break_off()
        assert written() == "\r\x1b[K2 s  structure\r\x1b[K"


def test_apply_asks_on_a_terminal(tmp_path: Path) -> None:
    path = orphaned(tmp_path / "home")
    before = path.read_bytes()
    refused = answered(path, b"n\n")
    assert refused.code == 130
    assert "apply 1 step? [y/N]" in refused.err
    assert path.read_bytes() == before
    assert not (path.parent / "dbtools").exists()
    agreed = answered(path, b"y\n")
    assert agreed.code == 0
    assert "applied: receipt" in agreed.out


def answered(path: Path, answer: bytes) -> Ran:
    ours, theirs = pty.openpty()
    try:
        os.write(ours, answer)
        with os.fdopen(theirs, "rb") as stdin:
            return tool("repair", path, "--apply", stdin=stdin)
    finally:
        os.close(ours)


@contextmanager
def holding(path: Path) -> Iterator[int]:
    """A process that has the file open and does nothing with it; gives its pid."""
    script = (
        "import sqlite3, sys; c = sqlite3.connect(sys.argv[1]); c.execute('SELECT 1 FROM sessions').fetchall();"
        "print('ready', flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", script, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        try:
            yield process.pid
        finally:
            process.communicate()
