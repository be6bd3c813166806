"""Run SQL on a fixture file with one of two SQLite engines; never leaves a connection or a sidecar behind.

`ours` is apsw in this process; `stdlib` is the standard library's SQLite in a process of its own, so that a
search index follows the rules of that engine (an older one ends trigram text at the first NUL byte).
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from hermes_dbtools.fixtures import steps as ours
from hermes_dbtools.fixtures.steps import Bindings, Row, Step
from tests.shapes.stdlib_engine import packed, unpacked

Engine = Literal["ours", "stdlib"]

__all__ = ["Bindings", "Engine", "Row", "Step", "run"]


def run(
    path: Path, steps: Sequence[Step], engine: Engine = "ours", *, foreign_keys: bool = False
) -> list[Row]:
    """Run the steps in order and return the rows of the last one.

    Each script and each single statement commits by itself; a statement with several sets of bindings is one
    transaction. Raises apsw.Error, or RuntimeError with the words of the other engine.
    """
    if engine == "ours":
        return ours.run(path, steps, foreign_keys=foreign_keys)
    return _run_stdlib(path, steps, foreign_keys)


def _run_stdlib(path: Path, steps: Sequence[Step], foreign_keys: bool) -> list[Row]:
    request = {
        "path": str(path),
        "foreign_keys": foreign_keys,
        "steps": [{"sql": step.sql, "rows": _packed_rows(step.rows)} for step in steps],
    }
    command = [sys.executable, str(Path(__file__).with_name("stdlib_engine.py"))]
    done = subprocess.run(command, input=json.dumps(request), capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(done.stderr.strip())
    return [tuple(unpacked(value) for value in row) for row in json.loads(done.stdout)]


def _packed_rows(rows: Sequence[Bindings] | None) -> list[Any] | None:
    if rows is None:
        return None
    return [
        {name: packed(value) for name, value in row.items()}
        if isinstance(row, Mapping)
        else [packed(value) for value in row]
        for row in rows
    ]
