from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from .measure import machine

FIGURES: list[str] = []


@pytest.fixture
def figure() -> Callable[[str], None]:
    return FIGURES.append


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if FIGURES:
        terminalreporter.section(f"figures ({machine()})")
        for line in FIGURES:
            terminalreporter.line(line)


BUILD = """
import sys
from pathlib import Path
from tests.shapes import make
path, sessions, messages, content_bytes = Path(sys.argv[1]), *map(int, sys.argv[2:])
make.make(path, "22")
make.fill_many(path, sessions, messages, content_bytes=content_bytes)
"""
"""In a process of its own: the peak memory of a child counts what its parent had when it began."""


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., Path]]:
    """A store of that many messages in that many sessions, both search indexes filled; built once a run."""
    root = Path(os.environ.get("HERMES_DBTOOLS_BENCH_FOLDER") or tmp_path_factory.mktemp("bench"))

    def build(messages: int, sessions: int, content_bytes: int = 200) -> Path:
        path = root / f"{messages}-{sessions}-{content_bytes}" / "state.db"
        if not path.exists():
            scratch = path.parent.with_suffix(".part")
            shutil.rmtree(scratch, ignore_errors=True)
            scratch.mkdir(parents=True)
            size = (sessions, messages // sessions, content_bytes)
            subprocess.run([sys.executable, "-c", BUILD, scratch / "state.db", *map(str, size)], check=True)
            scratch.rename(path.parent)
        return path

    yield build
    if "HERMES_DBTOOLS_BENCH_FOLDER" not in os.environ:
        shutil.rmtree(root)
