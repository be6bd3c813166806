"""How long the command line takes to say anything, against the libraries that it cannot do without."""

from __future__ import annotations

from collections.abc import Callable
from statistics import median

import pytest

from tests.bench.measure import run

ROUNDS = 9
LIMIT = 2.5


@pytest.mark.bench
def test_help_starts_about_as_fast_as_its_libraries(figure: Callable[[str], None]) -> None:
    commands = {
        "libraries": ("-c", "import click, apsw"),
        "help": ("-m", "hermes_dbtools", "--help"),
        "scan help": ("-m", "hermes_dbtools", "scan", "--help"),
    }
    for words in commands.values():
        assert run(*words).code == 0  # the first run writes byte code
    seconds: dict[str, list[float]] = {name: [] for name in commands}
    for _round in range(ROUNDS):  # side by side, so that a busy moment meets all of them
        for name, words in commands.items():
            seconds[name].append(run(*words).seconds)
    middle = {name: median(found) for name, found in seconds.items()}
    ratio = max(middle["help"], middle["scan help"]) / middle["libraries"]
    figure(
        f"--help {middle['help']:.3f} s, scan --help {middle['scan help']:.3f} s, "
        f"import click, apsw {middle['libraries']:.3f} s: ratio {ratio:.2f} (at most {LIMIT})"
    )
    assert ratio <= LIMIT
