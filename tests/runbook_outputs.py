"""Run the commands that a Markdown file prints and say what it would hold if each block were their real output.

A fence of language `console` holds commands, each in a line that begins with `$ `, and what it prints. A line `…` in that
stands for any lines that were cut. After `$ sqlite3 FILE` alone, lines that begin with `sqlite> ` are typed into that shell,
and those that begin with `   ...> ` go on with them. What differs from run to run (times, receipts, paths, processes, digests,
sizes) is not compared, nor is the number of classes that there are.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path

from hermes_dbtools.__main__ import main
from tests.running import SECONDS, environment

WRITE = "HERMES_DBTOOLS_WRITE_RUNBOOKS"
"""Set it to 1 to write the blocks anew that differ, to `all` for all of them; what changed is for a reviewer to see."""

CUT = "…"
HOME = re.compile(r"^ *<!-- home: ([a-z-]+) -->$", re.MULTILINE)
FENCE = re.compile(r"^( *)```(\w*)$")
TYPED = "sqlite> "
DONE = "that is all"
GOES_ON = "   ...> "
SHELL_LETTERS = frozenset("|&;<>$`*?")

VARIES: Sequence[tuple[str, str]] = (
    (r"\d{8}T\d{6}Z(-[0-9a-f]{8})?", "RECEIPT"),
    (r"\b\d{4}-\d\d-\d\d[ T]\d\d:\d\d(:\d\d(\.\d+)?)?Z?", "MOMENT"),
    (r"\b([0-9a-f]{16}|[0-9a-f]{40,64})\b", "DIGEST"),
    (r"\b\d+\.\d+ s\b", "SECONDS"),
    (r"\b\d[\d,]*(\.\d+)? [KMGT]?B\b", "SIZE"),
    (r"\b\d[\d,]* bytes\b", "SIZE"),
    (r"\bpid \d+", "pid PID"),
    (r"\b\d+ (clean|not applicable|not selected|needs --deep)\b", r"N \1"),
    (r"\b(apsw|SQLite|sqlite) \d+(\.\d+)+", r"\1 VERSION"),
    (r"/proc/\d+", "/proc/PID"),
    (r"(?<=\S) {2,}", "  "),
    (r" +$", ""),
)
OTHERS = re.compile(r" · \d+ process(es)? of other users not inspected")
"""Said of the machine, not of the file."""


@dataclass(frozen=True, slots=True)
class Command:
    """A command, and the lines printed after it: those of the file from `first` up to before `last`."""

    text: str
    indent: str
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class Place:
    """Where commands run: `home` is `~`. `values` are words of the file and what they are in this run (a pid)."""

    home: Path
    values: Mapping[str, str] = field(default_factory=dict)

    @property
    def folder(self) -> Path:
        """The Hermes home, where the commands begin."""
        return self.home / ".hermes"


def commands(text: str) -> Iterator[Command]:
    """The commands of a Markdown file in their order. Raises AssertionError for a fence that holds none."""
    lines = text.splitlines()
    number = 0
    while number < len(lines):
        opened = FENCE.match(lines[number])
        number += 1
        if opened is None:
            continue
        indent, language = opened.groups()
        end = next(place for place in range(number, len(lines)) if lines[place] == f"{indent}```")
        if language == "console":
            yield from _commands(lines, number, end, indent)
        number = end + 1


def rewritten(text: str, opened: Callable[[str], AbstractContextManager[Place]]) -> str:
    """The file with what its commands really print, where that is not what it holds.

    `opened` makes the home of each part: '' at first, then the name in each line `<!-- home: name -->`.
    """
    made = []
    for name, part in _parts(text):
        if any(True for _command in commands(part)):
            with opened(name) as place:
                made.append(_rewritten(part, Session(place)))
        else:
            made.append(part)
    return "".join(made)


def _parts(text: str) -> Iterator[tuple[str, str]]:
    names = ["", *HOME.findall(text)]
    starts = [0, *(found.start() for found in HOME.finditer(text)), len(text)]
    for name, start, end in zip(names, starts[:-1], starts[1:], strict=True):
        yield name, text[start:end]


def _rewritten(text: str, session: Session) -> str:
    lines = text.splitlines()
    made: list[str] = []
    copied = 0
    for command in commands(text):
        said = [_indented(line, command.indent) for line in session.run(command.text)]
        held = lines[command.first : command.last]
        made += lines[copied : command.first]
        anew = os.environ.get(WRITE) == "all" and not any(line.strip() == CUT for line in held)
        made += held if alike(held, said) and not anew else said
        copied = command.last
    session.close()
    return "\n".join([*made, *lines[copied:]]) + "\n"


def alike(held: Sequence[str], said: Sequence[str]) -> bool:
    """Whether these lines are the same but for what varies; a cut stands for any number of them."""
    pattern = "".join("(?:.*\n)*" if line.strip() == CUT else re.escape(normal(line)) + "\n" for line in held)
    return re.fullmatch(pattern, "".join(f"{normal(line)}\n" for line in said)) is not None


def normal(line: str) -> str:
    """A line without what varies."""
    indent = len(line) - len(line.lstrip(" "))
    body = line[indent:]
    for pattern, word in VARIES:
        body = re.sub(pattern, word, body)
    return line[:indent] + body if body else ""


class Session:
    """A shell at work in a home: a `cd` lasts, and so does SQLite's shell until the next command."""

    def __init__(self, place: Place) -> None:
        """Begin in the Hermes home."""
        self._place = place
        self._folder = place.folder
        self._environment = environment(
            HOME=str(place.home), COLUMNS=None, NO_COLOR=None, TMPDIR=None, LC_ALL="C.UTF-8"
        )
        self._sqlite: subprocess.Popen[str] | None = None
        self._environment["PATH"] = f"{scripts(place.home)}{os.pathsep}{os.environ['PATH']}"

    def run(self, command: str) -> list[str]:
        """What a command prints, as a runbook shows it. Raises AssertionError where it is none."""
        for word, value in self._place.values.items():
            command = command.replace(word, value)
        said = self._said(command)
        assert "Traceback (most recent call last)" not in said, said
        said = OTHERS.sub("", said)
        for word, value in self._place.values.items():
            said = said.replace(value, word)
        home = self._place.home
        said = shortened(said, (str(home.resolve()), str(home)))
        return [line.rstrip() for line in said.rstrip("\n").splitlines()]

    def close(self) -> None:
        """End SQLite's shell, where one is left."""
        if self._sqlite is not None:
            _said, errors = self._sqlite.communicate(timeout=SECONDS)
            assert self._sqlite.returncode == 0, errors
            self._sqlite = None

    def _said(self, command: str) -> str:
        if command.startswith(TYPED):
            return self._typed(command.removeprefix(TYPED))
        self.close()
        words = shlex.split(command)
        if words[0] == "sqlite3" and len(words) == 2:
            self._sqlite = subprocess.Popen(
                [sys.executable, "-u", "-m", "apsw", self._expanded(words[1])],
                cwd=self._folder,
                env=self._environment,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
            )
            return ""
        plain = not SHELL_LETTERS & set(re.sub(r"'[^']*'|\"[^\"$`]*\"", "", command))
        if plain and words[0] == "hermes-dbtools":
            return self._here(words)
        if plain and words[0] == "cd":
            self._folder = (self._folder / self._expanded(words[1])).resolve(strict=True)
            return ""
        return self._shell(command)

    def _typed(self, statement: str) -> str:
        assert self._sqlite is not None
        assert self._sqlite.stdin is not None
        assert self._sqlite.stdout is not None
        self._sqlite.stdin.write(f"{statement}\n.print {DONE}\n")
        self._sqlite.stdin.flush()
        return "".join(iter(self._sqlite.stdout.readline, f"{DONE}\n"))

    def _here(self, words: Sequence[str]) -> str:
        """The command line in this process: to start another one takes longer than what it does."""
        expanded = [self._expanded(word) for word in words]
        with _standing(self._folder, self._environment), _captured(expanded) as captured:
            code = 0
            try:
                main()
            except SystemExit as left:
                code = int(left.code or 0)
        said = captured.getvalue().decode("utf-8")
        assert code != 2, f"{shlex.join(words)}: {said}"
        return said

    def _expanded(self, word: str) -> str:
        """A word as a shell hands it on."""
        return str(self._place.home) + word[1:] if word == "~" or word.startswith("~/") else word

    def _shell(self, command: str) -> str:
        marker = self._place.home / ".folder"
        script = f"{{ {command}\n}}\npwd -P > {shlex.quote(str(marker))}"
        done = subprocess.run(
            ["sh", "-c", script],
            cwd=self._folder,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=SECONDS,
            check=False,
        )
        said = done.stdout.decode("utf-8", "backslashreplace")
        assert "not found" not in said, f"{command}: {said}"
        self._folder = Path(marker.read_text("utf-8").rstrip("\n"))
        return said


def shortened(text: str, paths: Sequence[str]) -> str:
    """The text with `~` for each of these paths, and the columns of its tables in line again."""
    made: list[str] = []
    for block in _blocks(text.splitlines()):
        if len(block) > 1 and any(path in line for path in paths for line in block):
            made += _columns(block, paths)
        else:
            made += [_short(line, paths) for line in block]
    return "\n".join(made)


def _blocks(lines: Sequence[str]) -> Iterator[list[str]]:
    """Lines that may be one table: what is between empty lines, and `next:` with what is under it."""
    block: list[str] = []
    for line in lines:
        ends = not line.strip() or line.startswith("next:") or (block[:1] and block[0].startswith("next:"))
        if ends and not (block and block[0].startswith("next:") and line.startswith("       ")):
            yield block
            block = []
        block.append(line)
    yield block


def _columns(block: Sequence[str], paths: Sequence[str]) -> list[str]:
    width = max(len(line) for line in block)
    empty = [all(line[place : place + 1].strip() == "" for line in block) for place in range(width)]
    gaps = [
        found.span() for found in re.finditer("1{2,}", "".join("01"[one] for one in empty)) if found.start()
    ]
    starts = [0, *(end for _start, end in gaps)]
    ends = [*(start for start, _end in gaps), width]
    cells = [[_short(line[a:b].rstrip(), paths) for a, b in zip(starts, ends, strict=True)] for line in block]
    widths = [max(len(line[place]) for line in cells) for place in range(len(starts))]
    between = [*(" " * (end - start) for start, end in gaps), ""]
    return [
        "".join(f"{cell:{size}}{gap}" for cell, size, gap in zip(line, widths, between, strict=True)).rstrip()
        for line in cells
    ]


def _short(line: str, paths: Sequence[str]) -> str:
    for path in paths:
        line = line.replace(path, "~")
    return line


def scripts(home: Path) -> Path:
    """A folder with the programs that runbooks name: this tool, and SQLite's shell as apsw has it."""
    folder = home / ".programs"
    if not folder.exists():
        folder.mkdir(parents=True)
        for name, module in (("hermes-dbtools", "-m hermes_dbtools"), ("sqlite3", "-m apsw"), ("python", "")):
            script = folder / name
            script.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} {module} "$@"\n', "utf-8")
            script.chmod(0o755)
    return folder


def _commands(lines: Sequence[str], start: int, end: int, indent: str) -> Iterator[Command]:
    prompts = tuple(f"{indent}{prompt}" for prompt in ("$ ", TYPED))
    places = [place for place in range(start, end) if lines[place].startswith(prompts)]
    assert places, f"line {start}: a fence of console without a command"
    assert places[0] == start, f"line {start}: output before the first command"
    for place, following in zip(places, [*places[1:], end], strict=True):
        words = [lines[place].removeprefix(indent)]
        first = place + 1
        while words[-1].endswith("\\") or (
            first < following and lines[first].startswith(f"{indent}{GOES_ON}")
        ):
            words[-1] = words[-1].removesuffix("\\")
            words.append(" " + lines[first].removeprefix(f"{indent}{GOES_ON}").strip())
            first += 1
        last = following
        while (
            last > first and not lines[last - 1].strip()
        ):  # an empty line between two commands is not output
            last -= 1
        yield Command("".join(words).removeprefix("$ "), indent, first, last)


def _indented(line: str, indent: str) -> str:
    return f"{indent}{line}" if line else ""


@contextlib.contextmanager
def _standing(folder: Path, variables: Mapping[str, str]) -> Iterator[None]:
    """As if this process had been started there with these variables."""
    before, back = dict(os.environ), Path.cwd()
    try:
        os.chdir(folder)
        os.environ.clear()
        os.environ.update(variables)
        yield
    finally:
        os.chdir(back)
        os.environ.clear()
        os.environ.update(before)


@contextlib.contextmanager
def _captured(words: Sequence[str]) -> Iterator[io.BytesIO]:
    """What a program of these words writes, stdout and stderr in the order in which they come."""
    raw = io.BytesIO()
    text = io.TextIOWrapper(raw, "utf-8", write_through=True)
    arguments, stdin = sys.argv, sys.stdin
    sys.argv = list(words)
    sys.stdin = io.StringIO()
    try:
        with contextlib.redirect_stdout(text), contextlib.redirect_stderr(text):
            yield raw
    finally:
        sys.argv, sys.stdin = arguments, stdin
        text.detach()
