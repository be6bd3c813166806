from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.shapes import make

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
            make.make(scratch / "state.db", "22")
            make.fill_many(scratch / "state.db", sessions, messages // sessions, content_bytes=content_bytes)
            scratch.rename(path.parent)
        return path

    yield build
    if "HERMES_DBTOOLS_BENCH_FOLDER" not in os.environ:
        shutil.rmtree(root)
