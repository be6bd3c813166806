"""What a person sees: width, colours, letters and progress on a terminal, and nothing of that anywhere else."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import shutil
import struct
import subprocess
import termios
import threading
import types
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from hermes_dbtools import make_fixture, scan
from hermes_dbtools.apply import ApplyOptions, rehearse
from hermes_dbtools.cli import cli, progress
from hermes_dbtools.cli.progress import Progress, duration, share_of
from hermes_dbtools.comparing.compare import CompareOptions, compare
from hermes_dbtools.home import resolve
from hermes_dbtools.pages_read import PagesRead
from hermes_dbtools.runbook_text import for_terminal, without_comments
from hermes_dbtools.scanning import ScanOptions
from hermes_dbtools.space import SpaceOptions, space
from hermes_dbtools.terminal_text import coloured, fitted, plain_letter
from hermes_dbtools.undoing import UndoOptions, choose_receipt, undo
from tests.repairs import COUNTERS, NOW, new_home, plan_of, repair
from tests.running import COMMAND, SECONDS, environment, tool

CODES = re.compile(r"\x1b\[[0-9;]*m")


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    damage = {"orphaned-messages": 3, "session-counter-drift": 1, "cut-lineages": 2}
    return make_fixture(tmp_path_factory.mktemp("store") / "state.db", damage=damage)


@contextmanager
def screen(columns: int) -> Iterator[tuple[int, list[bytes]]]:
    """A terminal of so many columns: its end for a program, and what was written there once it is left."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    written: list[bytes] = []

    def read() -> None:
        try:
            while part := os.read(ours, 1 << 16):
                written.append(part)
        except OSError:  # Linux: nobody has the other end any more
            return

    reader = threading.Thread(target=read)
    reader.start()
    try:
        yield theirs, written
    finally:
        os.close(theirs)
        reader.join(SECONDS)
        os.close(ours)


USUAL: Mapping[str, str | None] = {
    "NO_COLOR": None, "COLUMNS": None, "TERM": "xterm", "PAGER": "cat", "LC_ALL": "C.UTF-8"
}  # fmt: skip


def on_screen(*words: str | Path, columns: int = 80, env: Mapping[str, str] | None = None) -> str:
    """What a command shows on a terminal."""
    changes = {**USUAL, **(env or {})}
    with screen(columns) as (terminal, written):
        subprocess.run(
            [*COMMAND, *map(str, words)],
            env=environment(**changes),
            stdin=terminal,
            stdout=terminal,
            stderr=subprocess.DEVNULL,
            timeout=SECONDS,
            check=False,
        )
    return b"".join(written).decode("utf-8").replace("\r\n", "\n")


def prose(text: str) -> list[str]:
    """The lines that may be broken: commands stay whole, to be copied."""
    return [line for line in CODES.sub("", text).splitlines() if "hermes-dbtools " not in line]


@pytest.mark.parametrize("columns", [40, 80])
def test_a_table_fits_the_terminal_and_loses_no_word(store: Path, columns: int) -> None:
    shown = on_screen("scan", store, "--verbose", columns=columns)
    assert max(map(len, prose(shown))) <= columns
    whole = tool("scan", store, "--verbose", env=environment(LC_ALL="C.UTF-8")).out
    assert re.sub(r"\s", "", CODES.sub("", shown)).count("HDB201") == whole.count("HDB201")
    for word in ("HDB501", "adopt", "purge", "1 error", "1 note"):
        assert word in CODES.sub("", shown)
    assert f"hermes-dbtools repair {store}" in shown, "a command is not broken"


def test_columns_in_the_environment_say_the_width() -> None:
    assert max(map(len, prose(on_screen("checks", columns=200, env={"COLUMNS": "70"})))) <= 70


def test_what_is_no_terminal_is_as_wide_as_it_is_and_has_no_colour(store: Path) -> None:
    ran = tool("scan", store, "--verbose", env=environment(COLUMNS="40", TERM="xterm", NO_COLOR=None))
    assert max(map(len, ran.out.splitlines())) > 60
    assert "\x1b" not in ran.out + ran.err
    assert ran.err == ""


@pytest.mark.parametrize(
    ("words", "changes", "expected"),
    [
        ((), {}, True),
        ((), {"NO_COLOR": "1"}, False),
        ((), {"NO_COLOR": ""}, True),
        ((), {"TERM": "dumb"}, False),
        (("--color", "never"), {}, False),
        (("--color", "always"), {"NO_COLOR": "1"}, True),
    ],
)
def test_who_decides_about_colours(
    store: Path, words: tuple[str, ...], changes: dict[str, str], expected: bool
) -> None:
    shown = on_screen("scan", store, *words, env=changes)
    assert ("\x1b[31;1merror\x1b[0m" in shown) is expected
    assert ("\x1b[" in shown) is expected
    assert "error" in CODES.sub("", shown)


def test_colours_are_for_text_and_never_for_documents(store: Path) -> None:
    ran = tool("scan", store, "--color", "always")
    assert CODES.sub("", ran.out) == tool("scan", store).out
    assert set(CODES.findall(ran.out)) == {"\x1b[31;1m", "\x1b[33m", "\x1b[36m", "\x1b[0m"}
    for format_ in ("json", "markdown", "sarif"):
        assert "\x1b" not in tool("scan", store, "--color", "always", "--format", format_).out


def test_a_plan_that_was_coloured_is_applied_without_that(store: Path) -> None:
    assert "--color" not in tool("repair", store, "--color", "never").err
    assert tool("repair", store, "--color", "blue").code == 2


@pytest.mark.parametrize(
    "changes",
    [
        {"LC_ALL": "C", "PYTHONIOENCODING": None, "PYTHONUTF8": None},
        {"LC_ALL": "POSIX", "PYTHONIOENCODING": None, "PYTHONUTF8": None},
        {"LC_ALL": None, "PYTHONIOENCODING": "ascii"},
        {"LC_ALL": None, "PYTHONIOENCODING": "latin-1"},
    ],
    ids=str,
)
def test_letters_that_a_locale_does_not_have(store: Path, changes: dict[str, str | None]) -> None:
    env = environment(**changes)
    for words, code in (
        (("scan", store, "--verbose"), 1), (("space", store), 0), (("sessions", "list", store), 0),
        (("sessions", "list", "--help"), 0), (("runbook", "split-wal"), 0), (("repair", store, "--format", "json"), 1),
        (("runbook", "…"), 2),
    ):  # fmt: skip
        ran = tool(*words, env=env)
        assert ran.code == code
        assert "Traceback" not in ran.err
        assert words[-1] == "…" or words[-1] == "json" or (ran.out + ran.err).isascii(), words
    assert "state.db - " in tool("scan", store, env=env).out


def test_documents_are_utf8_in_every_locale(store: Path) -> None:
    words = ("scan", store, "--format", "markdown")
    assert tool(*words, env=environment(PYTHONIOENCODING="ascii")) == tool(*words)
    assert "·" in tool(*words).out


def test_a_locale_that_is_not_named_is_utf8(store: Path) -> None:
    env = environment(LC_ALL=None, LC_CTYPE=None, LANG=None, PYTHONIOENCODING=None)
    assert "·" in tool("scan", store, env=env).out


@pytest.mark.parametrize(
    ("text", "place", "letter"),
    [
        ("a · b", 2, "-"),
        ("2026…01", 4, "~"),
        ("… and 3 more", 0, "..."),
        ("cli, telegram …", 14, "..."),
        ("a │ b", 2, "|"),
        ("██▌", 1, "#"),
        ("späß", 2, "ä".encode()),
        ("\ud800", 0, b"\\ud800"),
    ],
)
def test_the_letters_for_those_that_are_not_there(text: str, place: int, letter: str | bytes) -> None:
    assert plain_letter(text, place) == letter


TABLE = """\
  damage                     found                                        rows
  orphaned-messages          1,383 missing sessions · 36,785 messages    1,383
  dangling-image-references  1 held image missing: all clean-up stopped     12
"""


def test_long_cells_go_on_below_and_columns_stay_columns() -> None:
    lines = fitted(TABLE, 60).splitlines()
    assert max(map(len, lines)) <= 60
    start = lines[0].index("found")
    rows = lines[0].index("rows")
    assert all(line[start - 2 : start] == "  " for line in lines)
    assert lines[1].endswith("1,383")
    assert re.sub(r"\s", "", "".join(line[start:rows] for line in lines)).startswith("found1,383missing")


def test_what_fits_is_not_touched_and_what_cannot_fit_is_left() -> None:
    assert fitted(TABLE, 80) == TABLE
    assert fitted("next:  hermes-dbtools repair /a/very/long/path --apply\n", 20).count("\n") == 1
    assert fitted("", 80) == ""
    assert fitted("one\n\ntwo\n", 3) == "one\n\ntwo\n"


def test_a_sentence_is_broken_between_words() -> None:
    text = "1 error · 69 clean · 1 not applicable · could not look at 5 (table messages is damaged)\n"
    lines = fitted(text, 40).splitlines()
    assert max(map(len, lines)) <= 40
    assert " ".join(line.strip() for line in lines) == text.strip()
    assert all(line.startswith("  ") for line in lines[1:])


def test_only_severities_before_a_code_are_coloured() -> None:
    assert coloured("an error, a warning, a note") == "an error, a warning, a note"
    assert coloured("error HDB201") == "\x1b[31;1merror\x1b[0m HDB201"
    assert coloured("accepted    HDB201") == "\x1b[2maccepted\x1b[0m    HDB201"


BOOK = """# HDB999 a-title

A paragraph with `code` that goes on and on, over more than one line, and a [link](first-response.md) in it.
It goes on.

<!-- home: other -->

1. A step that is long enough to be broken, and that has a block:

   ```console
   $ hermes-dbtools scan
   state.db
   ```

| kind | what it means |
| --- | --- |
| `one` | a long cell that does not fit into forty columns of a terminal |
| two | short |

- **Never** this.
"""


def test_a_runbook_on_a_terminal() -> None:
    shown = for_terminal(BOOK, 40, colour=False)
    assert max(map(len, shown.splitlines())) <= 40
    assert "home: other" not in shown
    assert "```" not in shown
    assert "   $ hermes-dbtools scan\n   state.db\n" in shown
    assert "link (first-response.md)" in " ".join(shown.split())
    assert "\n1. A step that is long enough to be\n   broken" in shown
    assert "\none   a long cell that does not fit into\n      forty columns of a terminal\n" in shown
    assert "|" not in shown
    loud = for_terminal(BOOK, 40, colour=True)
    assert "\x1b[1mHDB999 a-title\x1b[0m" in loud
    assert "\x1b[1m   $ hermes-dbtools scan\x1b[0m" in loud
    assert "\x1b[1mNever\x1b[0m this." in loud
    assert "`" not in CODES.sub("", loud)


def test_comments_are_for_tests_alone() -> None:
    assert without_comments(BOOK).count("\n") == BOOK.count("\n") - 2
    assert without_comments("a\n") == "a\n"


@pytest.mark.parametrize("word", ["orphaned-messages", "HDB003", "first-response", "disk-full", "reference"])
def test_a_runbook_is_paged_and_fits(word: str, tmp_path: Path) -> None:
    pager = tmp_path / "pager"
    pager.write_text("#!/bin/sh\necho begin of page\ncat\n")
    pager.chmod(0o755)
    shown = on_screen("runbook", word, columns=72, env={"PAGER": str(pager)})
    assert shown.startswith("begin of page\n")
    assert max(len(line) for line in prose(shown) if not line.startswith("   ")) <= 72
    assert tool("runbook", word).out.startswith("# ")
    assert "<!--" not in tool("runbook", word).out


def test_every_runbook_is_listed_and_can_be_printed() -> None:
    listed = tool("runbook").out.splitlines()[1:]
    slugs = [line.split()[0] for line in listed]
    assert slugs[:2] == ["first-response", "reference"]
    assert {"disk-full", "many-hosts", "after-an-upgrade", "orphaned-messages"} <= set(slugs)
    assert tool("runbook", "hdb201").out == tool("runbook", "orphaned-messages").out
    ran = tool("runbook", "no-such")
    assert (ran.code, ran.err.count("\n")) == (2, 1)


class Clock:
    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 0.0
        monkeypatch.setattr(progress, "time", types.SimpleNamespace(monotonic=lambda: self.now))
        monkeypatch.setattr(progress, "EVERY", 3600)


def test_progress_says_what_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch)
    monkeypatch.setattr(progress, "EVERY", 3600.0)
    monkeypatch.delenv("COLUMNS", raising=False)
    with screen(60) as (terminal, written), os.fdopen(os.dup(terminal), "w", encoding="utf-8") as stream:
        monkeypatch.setattr("sys.stderr", stream)
        with Progress() as told:
            for seconds, word in (
                (0.5, "opening"),
                (2.0, "copying: 0 %"),
                (12.0, "copying: 25 %"),
                (13.0, "check 1 of 4: a-class"),
                (43.0, "check 3 of 4: " + "x" * 80),
                (50.0, "verifying"),
            ):
                clock.now = seconds
                told(word)
    lines = b"".join(written).decode().split("\r\x1b[K")
    assert lines == [
        "",
        "2 s  copying: 0 %",
        "12 s  copying: 25 %, 30 s left",
        "13 s  check 1 of 4: a-class",
        ("43 s  check 3 of 4: " + "x" * 80)[:48] + ", 15 s left",
        "50 s  verifying",
        "",
    ]


@pytest.mark.parametrize("quiet", [False, True])
def test_quiet_is_quiet_on_a_terminal_too(
    store: Path, quiet: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(progress, "SHOWN_AFTER", -1.0)
    words = ["scan", str(store), "--fail-on", "never", *(["--quiet"] if quiet else [])]
    with screen(60) as (terminal, written), os.fdopen(os.dup(terminal), "w", encoding="utf-8") as stream:
        monkeypatch.setattr("sys.stderr", stream)
        with pytest.raises(SystemExit):
            cli.main(words, standalone_mode=False)
    assert (b"reading messages" in b"".join(written)) is not quiet
    assert (capsys.readouterr().out == "") is quiet


def test_progress_goes_on_while_nothing_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "EVERY", 0.001)
    monkeypatch.setattr(progress, "SHOWN_AFTER", 0.0)
    shown = threading.Event()
    with screen(60) as (terminal, _written), os.fdopen(os.dup(terminal), "w", encoding="utf-8") as stream:
        monkeypatch.setattr("sys.stderr", stream)
        count = iter(range(10))
        write = progress._write  # noqa: SLF001

        def counted(text: str) -> None:
            write(text)
            if next(count, 9) >= 3:
                shown.set()

        monkeypatch.setattr(progress, "_write", counted)
        with Progress() as told:
            told("one long statement")
            assert shown.wait(SECONDS)


@pytest.mark.parametrize(
    ("word", "share"),
    [
        ("copying: 25 %", 0.25), ("1,000 of 4,000 pages", 0.25), ("3 of 0", 1.0), ("structure of messages", None),
        ("check 5 of 4", 1.0),
    ],
)  # fmt: skip
def test_the_share_that_a_word_tells(word: str, share: float | None) -> None:
    assert share_of(word) == share


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.2, "1 s"), (89, "89 s"), (600, "10 min"), (3 * 3600, "3 h 0 min")]
)
def test_how_a_time_is_told(seconds: float, text: str) -> None:
    assert duration(seconds) == text


def test_a_scan_says_how_much_of_the_file_and_of_the_messages_it_has_read(tmp_path: Path) -> None:
    path = make_fixture(tmp_path / "state.db", sessions=200, messages=20)
    told: list[str] = []
    scan((path,), progress=told.append)
    # Of so small a file much is fetched once only: SQLite still has it when its rows are checked.
    for what, least in (("structure: ", 40), ("reading messages: ", 95)):
        shares = [share for word in told if word.startswith(what) and (share := share_of(word)) is not None]
        assert shares == sorted(shares)
        assert len(set(shares)) > 5
        assert least / 100 < shares[-1] < 1
    begun = [word for word in told if word.startswith("check ")]
    assert all(share_of(word) is None for word in begun), "a count of checks says nothing of time"
    assert len(begun) > 60


def test_space_and_compare_say_how_much_of_what_they_read_is_done(tmp_path: Path) -> None:
    path = make_fixture(tmp_path / "state.db", sessions=300, messages=50)
    other = tmp_path / "other.db"
    shutil.copyfile(path, other)
    told: list[str] = []
    space(resolve(path), SpaceOptions(repairs=False), told.append)
    pages = [share_of(word) for word in told if word.startswith("pages: ")]
    rows = [share_of(word) for word in told if word.startswith("rows: ")]
    told.clear()
    compare(resolve(path), resolve(other), CompareOptions(damage=False), told.append)
    both = [share_of(word) for word in told if word.startswith("rows: ")]
    for shares in (pages, rows, both):
        rising = [share for share in shares if share is not None]
        assert rising == sorted(rising)
        assert len(set(rising)) > 5
        assert 0.5 < rising[-1] < 1


def test_nothing_is_told_while_the_write_lock_is_held(tmp_path: Path) -> None:
    """A terminal that is held would hold whoever waits for the lock."""
    home = new_home(tmp_path / "home", "22", COUNTERS)
    told: list[str] = []
    plan = plan_of(home)
    rehearse(home, plan, ApplyOptions(now=NOW, progress=told.append))
    assert [word.partition(":")[0] for word in told if share_of(word) in (None, 1.0)] == [
        "copying",
        "rehearsing",
    ]
    told.clear()
    repair(home, plan, progress=told.append)
    assert told[-1] == "applying"
    assert {word.partition(":")[0] for word in told} - {"verifying"} == {"copying", "applying"}
    told.clear()
    undo(home, choose_receipt(home, None), UndoOptions(now=NOW, progress=told.append))
    assert told[-1] == "undoing"
    assert {word.partition(":")[0] for word in told[:-1]} == {"verifying"}


def test_a_scan_of_some_checks_promises_nothing_of_structure(tmp_path: Path) -> None:
    path = make_fixture(tmp_path / "state.db")
    told: list[str] = []
    scan((path,), ScanOptions(select=("references",)), told.append)
    assert "structure of messages" in told
    assert all(share_of(word) is None for word in told)


def test_pages_that_were_read_are_told_in_hundredths(tmp_path: Path) -> None:
    import apsw

    path = make_fixture(tmp_path / "state.db", sessions=200, messages=20)
    connection = apsw.Connection(
        f"file:{path}?immutable=1", flags=apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
    )
    told: list[str] = []
    connection.set_progress_handler(PagesRead((connection,), "verifying", told.append), 100)
    assert connection.execute("PRAGMA quick_check").fetchall() == [("ok",)]
    connection.close()
    shares = [int(word.removeprefix("verifying: ").removesuffix(" %")) for word in told]
    assert shares == sorted(set(shares))
    assert len(shares) > 10
    assert shares[-1] > 60
