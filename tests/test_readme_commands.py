"""Every command line of README is run by a test: the blocks that show output here, the others where it says."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.runbook_homes import home
from tests.runbook_outputs import WRITE, Place, rewritten
from tests.running import CHECKOUT, environment
from tests.test_formats_in_ci import blocks

FILE = CHECKOUT / "README.md"
SHELL = re.compile(r"^```sh\n(.*?)^```", re.MULTILINE | re.DOTALL)
MINUTES = 600


def lines() -> list[str]:
    """The commands of blocks that show no output."""
    return [
        line
        for block in SHELL.findall(FILE.read_text("utf-8"))
        for line in block.splitlines()
        if line and not line.startswith("#")
    ]


def first() -> str:
    """What a newcomer types first."""
    return lines()[0]


def test_what_readme_shows_is_what_is_printed(tmp_path: Path) -> None:
    held = FILE.read_text("utf-8")

    @contextmanager
    def opened(name: str) -> Iterator[Place]:
        with home(f"README#{name}", tmp_path / name) as place:
            yield place

    found = rewritten(held, opened)
    if os.environ.get(WRITE):
        FILE.write_text(found, "utf-8")
        return
    assert held == found, f"{WRITE}=1 writes it anew"


def test_every_other_command_is_run_by_a_test_that_is_named_here() -> None:
    elsewhere = {
        first(): "below",
        re.findall(r"<!-- test-command -->\n```sh\n(.*)\n", FILE.read_text("utf-8"))[
            0
        ]: ".ci/run, which runs this",
        **dict.fromkeys(next(blocks("In CI", "sh")).splitlines(), "test_formats_in_ci"),
        **dict.fromkeys(
            next(blocks("Many hosts", "sh")).splitlines(), "test_formats_in_ci and test_many_hosts"
        ),
        **{line: "test_completion" for line in lines() if "_HERMES_DBTOOLS_COMPLETE=" in line},
    }
    assert [line for line in lines() if line not in elsewhere] == []


def tracked() -> list[str]:
    """The files of the checkout that the package is made from, also where it is a copy without its history."""
    folders = ("hermes_dbtools", "sql", "runbooks")
    found = [path for folder in folders for path in sorted((CHECKOUT / folder).rglob("*")) if path.is_file()]
    found += [CHECKOUT / "pyproject.toml", CHECKOUT / "README.md"]
    return [path.relative_to(CHECKOUT).as_posix() for path in found if path.suffix != ".pyc"]


def test_the_first_command_of_readme_in_a_clean_clone(tmp_path: Path) -> None:
    clone = tmp_path / "clone"
    for name in tracked():
        (clone / name).parent.mkdir(parents=True, exist_ok=True)
        (clone / name).write_bytes((CHECKOUT / name).read_bytes())
    programs = tmp_path / "programs"
    programs.mkdir()
    (programs / "python3").symlink_to(sys.executable)
    env = environment(PYTHONPATH=None, PATH=f"{programs}:{os.environ['PATH']}", HOME=str(tmp_path))
    done = subprocess.run(
        ["sh", "-c", first()],
        cwd=clone,
        env=env,
        capture_output=True,
        text=True,
        timeout=MINUTES,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "The same findings as before: undone." in done.stdout
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("section", ["From Python", "Fixtures, and your own tests"])
def test_the_python_of_readme_is_python(section: str) -> None:
    for block in blocks(section, "python"):
        compile(block, section, "exec")
