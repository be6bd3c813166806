"""Type into an interactive shell with the completion of README switched on, and read what it makes of a Tab; judges nothing."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import shutil
import subprocess
import termios
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.running import CHECKOUT, COMMAND, SECONDS

PROMPT = "ready> "
CONTROLS = re.compile(r"\x1b\[[0-9;?<>=]*[a-zA-Z]|\x1b[()][A-Z0-9]|\x1b[=>]|[\r\x07\x08]")
CLEAR_LINE = "\x15"

BASH = """
PS1='ready> '
eval "$(_HERMES_DBTOOLS_COMPLETE=bash_source hermes-dbtools)"
"""
ZSH = """
PS1='ready> '
autoload -Uz compinit
compinit -u
eval "$(_HERMES_DBTOOLS_COMPLETE=zsh_source hermes-dbtools)"
"""
FISH = """
function fish_prompt
    echo -n 'ready> '
end
_HERMES_DBTOOLS_COMPLETE=fish_source hermes-dbtools | source
"""

SET_UP = {"bash": (".bashrc", BASH), "zsh": (".zshrc", ZSH), "fish": (".config/fish/config.fish", FISH)}
"""Of each shell the file that it reads when it starts, and what README says to put there."""


class Shell:
    """An interactive shell on a terminal of its own."""

    def __init__(self, terminal: int) -> None:
        self._terminal = terminal

    def tab(self, typed: str, expected: str) -> str:
        """Type, press Tab, and give what the shell shows until `expected` is there, or all that it showed."""
        os.write(self._terminal, f"{typed}\t".encode())
        shown = self.read_until(expected)
        os.write(self._terminal, CLEAR_LINE.encode())
        return shown

    def read_until(self, expected: str) -> str:
        """What the shell shows until a text is there; all of it where the text never comes."""
        shown, deadline = "", time.monotonic() + SECONDS
        while expected not in shown and (left := deadline - time.monotonic()) > 0:
            if select.select([self._terminal], [], [], left)[0]:
                try:
                    shown += os.read(self._terminal, 65536).decode("utf-8", "replace")
                except OSError:  # the shell has ended
                    break
                shown = CONTROLS.sub("", shown)
        return shown


@contextmanager
def interactive(name: str, home: Path) -> Iterator[Shell]:
    """A shell in a home of its own, ready to be typed into."""
    program = home / "bin" / "hermes-dbtools"
    program.parent.mkdir(parents=True)
    program.write_text(f'#!/bin/sh\nexec {" ".join(COMMAND)} "$@"\n', "utf-8")
    program.chmod(0o755)
    file, text = SET_UP[name]
    (home / file).parent.mkdir(parents=True, exist_ok=True)
    (home / file).write_text(text, "utf-8")
    env = {
        "HOME": str(home), "PATH": f"{program.parent}:/usr/bin:/bin", "PYTHONPATH": str(CHECKOUT),
        "TERM": "xterm", "LANG": "C.UTF-8", "COLUMNS": "200", "LINES": "50",
    }  # fmt: skip
    found = shutil.which(name)
    assert found is not None
    terminal, its_end = pty.openpty()
    child = subprocess.Popen(
        [found, "-i"], cwd=home, env=env, stdin=its_end, stdout=its_end, stderr=its_end, start_new_session=True,
        preexec_fn=lambda: fcntl.ioctl(its_end, termios.TIOCSCTTY, 0),
    )  # fmt: skip
    os.close(its_end)
    try:
        shell = Shell(terminal)
        assert PROMPT in shell.read_until(PROMPT)
        yield shell
    finally:
        child.kill()
        child.wait()
        os.close(terminal)
