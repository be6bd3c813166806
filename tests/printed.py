"""Run commands as they are printed after `next:`, in a shell with the installed console script and a terminal; judges nothing."""

from __future__ import annotations

import os
import pty
import re
import shutil
import subprocess
import sys
from pathlib import Path

from tests.running import SECONDS, Ran, environment

SCRIPT = "#!/bin/sh\nexec '{python}' -m hermes_dbtools \"$@\"\n"


def commands(said: Ran) -> list[str]:
    """The commands of `next:`, in their order, without what is said of them."""
    lines = f"{said.out}{said.err}".splitlines()
    start = next((place for place, line in enumerate(lines) if line.startswith("next:")), len(lines))
    found = []
    for line in lines[start:]:
        match = re.match(r"(?:next:  |       )(?:stop .*, then  )?(hermes-dbtools .*?)(?:   .*)?$", line)
        if match is None:
            break
        found.append(match.group(1).rstrip())
    return found


def typed(command: str, folder: Path, answer: str = "y\n") -> Ran:
    """Type a command at a prompt in a folder and answer its question, if it asks one."""
    leader, follower = pty.openpty()
    try:
        os.write(leader, answer.encode())
        done = subprocess.run(
            ["sh", "-c", command],
            cwd=folder,
            env=environment(PATH=f"{_scripts(folder)}:{os.environ['PATH']}"),
            stdin=follower,
            capture_output=True,
            timeout=SECONDS,
            check=False,
        )
    finally:
        os.close(leader)
        os.close(follower)
    return Ran(done.returncode, done.stdout.decode("utf-8"), done.stderr.decode("utf-8"))


def _scripts(folder: Path) -> Path:
    """Where the console script lies: that of the environment, else one that does the same."""
    installed = shutil.which("hermes-dbtools", path=str(Path(sys.executable).parent))
    if installed is not None:
        return Path(installed).parent
    script = folder / "bin" / "hermes-dbtools"
    if not script.exists():
        script.parent.mkdir()
        script.write_text(SCRIPT.format(python=sys.executable))
        script.chmod(0o755)
    return script.parent
