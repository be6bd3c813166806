"""Say in a few printable characters which program a process runs; never shows its arguments."""

from __future__ import annotations

import re
from pathlib import PurePath

import psutil

from .shown import shown

_INTERPRETER = re.compile(r"(python|pypy|node|bun|deno)[\d.]*(\.exe)?")
_STORE_PROGRAM = re.compile(
    r"python|pypy|node|bun|deno|electron|hermes|sqlite|litestream|uvicorn", re.IGNORECASE
)
_SUBCOMMAND = re.compile(r"[a-z][a-z-]{1,15}")
_LONGEST = 40


def command_name(pid: int) -> str:
    """The program; of an interpreter the script and sub-command (`hermes gateway`), never an argument."""
    name = describe(_command_line(pid)) or _program(pid) or "unknown"
    return shown(name)[:_LONGEST]


def may_open_stores(pid: int) -> bool:
    """Whether the process could be one that opens Hermes databases, judged by its command line alone.

    `sshd`, `(sd-pam)`, `ssh-agent` and the init of a container hide their descriptors even from their user.
    If those counted as holders, no repair could run in an SSH login.
    """
    words = [PurePath(word).name for word in _command_line(pid)[:3]]
    return any(_STORE_PROGRAM.search(word) for word in (*words, _program(pid)))


def describe(arguments: list[str]) -> str:
    """The name that `command_name` derives from a command line, or ''."""
    words = [argument for argument in arguments if argument]
    program = PurePath(words[0]).name if words else ""
    if not _INTERPRETER.fullmatch(program) or "-c" in words[1:2]:
        return program
    rest = words[1:]
    if "-m" in rest:
        rest = rest[rest.index("-m") + 1 :]
    while rest and rest[0].startswith("-"):
        rest = rest[1:]
    if not rest:
        return program
    script = PurePath(rest[0]).name
    subcommand = rest[1] if len(rest) > 1 and _SUBCOMMAND.fullmatch(rest[1]) else ""
    return f"{script} {subcommand}".strip()


def _command_line(pid: int) -> list[str]:
    try:
        return psutil.Process(pid).cmdline()
    except psutil.Error:
        return []


def _program(pid: int) -> str:
    try:
        return psutil.Process(pid).name()
    except psutil.Error:
        return ""
