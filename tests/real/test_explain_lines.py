"""The lines of `tests/explain_logs.toml` are what released stores write, and what a released gateway logs is understood."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
import tomllib
import warnings
import zipfile
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from hermes_dbtools.explain.failures import failures
from hermes_dbtools.explain.reading_log import read_log
from tests.real.gateway_log import GONE, KEPT
from tests.real.wheels import wheel
from tests.running import CHECKOUT, SECONDS, environment

LINES: list[dict[str, Any]] = tomllib.loads((CHECKOUT / "tests" / "explain_logs.toml").read_text("utf-8"))[
    "line"
]
RELEASED = [line for line in LINES if line.get("source", "main") != "main"]
MADE = [line for line in LINES if "python" in line]
VALUE = re.compile(r"%\(?\w*\)?[-+ 0-9.]*[srdf]")
"""Where a logged text has a value."""

RAISED = """
import json, sys, traceback
for program in json.load(sys.stdin):
    try:
        exec(program, {})
    except Exception as error:
        print(json.dumps(traceback.format_exception_only(error)[-1].strip()))
"""


@cache
def texts(source: str) -> list[re.Pattern[str]]:
    """Every text that a file of a release hands to a call, with anything where it has a value."""
    release, _, name = source.partition("/")
    with zipfile.ZipFile(wheel(release)) as archive, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tree = ast.parse(archive.read(name))
    arguments = (argument for node in ast.walk(tree) if isinstance(node, ast.Call) for argument in node.args)
    parts = [found for argument in arguments if sum(map(len, found := _parts(argument))) >= 12]
    return [re.compile(".*?".join(map(re.escape, found)), re.DOTALL) for found in parts]


def _parts(node: ast.expr) -> list[str]:
    """What of a text is the same each time."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return VALUE.split(node.value)
    if isinstance(node, ast.JoinedStr):
        joined = [part.value if isinstance(part, ast.Constant) else "\0" for part in node.values]
        return "".join(map(str, joined)).split("\0")
    return []


@pytest.mark.parametrize("source", sorted({line["source"] for line in RELEASED}))
def test_a_line_is_one_that_its_release_writes(source: str) -> None:
    strange = [
        line["text"]
        for line in RELEASED
        if line["source"] == source and not any(text.search(line["text"]) for text in texts(source))
    ]
    assert strange == []


def test_a_line_of_the_engine_is_one_that_it_writes() -> None:
    ran = subprocess.run(
        [sys.executable, "-c", RAISED],
        input=json.dumps([line["python"] for line in MADE]),
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=True,
    )
    told = [json.loads(line) for line in ran.stdout.splitlines()]
    assert [one.removeprefix("ValueError: malformed inv") for one in told] == [
        line["text"].removeprefix("malformed inv") for line in MADE
    ]


def test_every_line_says_where_it_comes_from_and_most_are_of_a_release() -> None:
    assert [line["text"] for line in LINES if ("source" in line) is ("python" in line)] == []
    assert len(RELEASED) > 40
    unreleased = {line["kind"] for line in LINES if line.get("source") == "main"}
    assert unreleased == {"images", "active", "busy", "ledger"}


def test_what_a_released_gateway_logs_when_it_cannot_save_is_of_the_right_kind(tmp_path: Path) -> None:
    """Locked by another process, not writable, no room, an index damaged …: each as the release says it."""
    subprocess.run(
        [sys.executable, "-m", "tests.real.gateway_log", str(wheel("0.19.0")), str(tmp_path)],
        cwd=CHECKOUT,
        env=environment(),
        timeout=SECONDS,
        check=True,
    )
    found = read_log(str(tmp_path / "logs" / "errors.log"))
    # A newer SQLite says of a damaged index that it is the index.
    assert {**found.kinds, "structure": None}.keys() == {
        "foreign-key", "locked", "read-only", "disk-full", "disk-io", "not-null", "older-shape", "search-index",
        "structure", "no-tokenizer",
    }  # fmt: skip
    assert {kind: seen.ids for kind, seen in found.kinds.items() if kind != "search-index"} == {
        kind: {GONE if kind == "foreign-key" else KEPT: 1} for kind in found.kinds if kind != "search-index"
    }
    assert all(failures().by_kind[kind].classes or failures().by_kind[kind].calm for kind in found.kinds)
