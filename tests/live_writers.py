"""Processes that use a database as the store does: by stdlib sqlite3, never in one process with apsw."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

_OBEY = """
import json, sqlite3, sys
names = {"sqlite3": sqlite3, "connection": sqlite3.connect(sys.argv[1], isolation_level=None)}
print("ready", flush=True)
for line in sys.stdin:
    try:
        exec(json.loads(line), names)
        answer = names.pop("answer", None)
    except Exception as error:
        answer = {"error": repr(error)}
    print(json.dumps(answer), flush=True)
"""

_APPEND = """
import json, select, sqlite3, sys, time
connection = sqlite3.connect(sys.argv[1], isolation_level=None, timeout=5)
pause, errors, waits = float(sys.argv[2]), [], []
print("ready", flush=True)
while not select.select([sys.stdin], [], [], pause)[0]:
    started = time.perf_counter()
    try:
        connection.execute("INSERT INTO item(text) VALUES ('more')")
    except sqlite3.Error as error:
        errors.append(repr(error))
    waits.append(time.perf_counter() - started)
print(json.dumps({"errors": errors, "worst": max(waits), "count": len(waits)}), flush=True)
"""

_UNPRIVILEGED = """
import json, os, sys
from pathlib import Path
from hermes_dbtools import connections, database, file_state, holders, home, private_files, verification
from hermes_dbtools.backups import restoring, taking
from hermes_dbtools.model import ToolError
import encodings.ascii, encodings.idna
from hermes_dbtools import known_shapes, queries
known_shapes.facts()
sql = Path(str(queries.resource("sql")))
for file in sql.rglob("*.sql"):  # that user may not be let into the checkout
    if "fixture" not in file.parts:
        queries.load(file.relative_to(sql).with_suffix("").as_posix())
if os.geteuid() == 0:
    os.setgroups([])
    os.setegid(65534)
    os.seteuid(65534)
target = Path(sys.argv[1])
answer = None
exec(sys.stdin.read())
print(json.dumps(answer))
"""


class Writer:
    """A process with one connection that runs the Python it is given."""

    def __init__(self, database: Path) -> None:
        self._process = _start(_OBEY, database)
        self.pid = self._process.pid

    def run(self, code: str) -> Any:
        """Run statements that see `connection` and `sqlite3`; returns what they leave in `answer`."""
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(json.dumps(code) + "\n")
        self._process.stdin.flush()
        answer = json.loads(self._process.stdout.readline())
        assert not (isinstance(answer, dict) and "error" in answer), answer
        return answer

    def sql(self, *statements: str) -> None:
        """Run SQL statements."""
        for statement in statements:
            self.run(f"connection.execute({statement!r}).fetchall()")

    def kill(self) -> None:
        """End it as a crash does: nothing is closed."""
        self._process.kill()
        self._finish()

    def close(self) -> None:
        """Close its connection and end it."""
        if self._process.poll() is None:
            self.run("connection.close()")
        self._finish()

    def _finish(self) -> None:
        _close_pipes(self._process)


@contextmanager
def writer(database: Path, *statements: str) -> Iterator[Writer]:
    """A live process that has run these statements and still has its connection."""
    process = Writer(database)
    try:
        process.sql(*statements)
        yield process
    finally:
        process.kill()


def crashed(database: Path, *statements: str) -> None:
    """What a process leaves that ran these statements and was killed."""
    with writer(database, *statements):
        return


def written(database: Path, *statements: str) -> Path:
    """What a process leaves that ran these statements and closed its connection."""
    with writer(database, *statements) as process:
        process.close()
    return database


@contextmanager
def appender(database: Path, pause: float) -> Iterator[dict[str, Any]]:
    """A process that inserts a row every `pause` seconds; the dict it yields is filled when it has ended."""
    process = _start(_APPEND, database, str(pause))
    result: dict[str, Any] = {}
    try:
        yield result
        assert process.stdin
        assert process.stdout
        process.stdin.write("stop\n")
        process.stdin.flush()
        result.update(json.loads(process.stdout.readline()))
    finally:
        process.kill()
        _close_pipes(process)


def unprivileged(target: Path, code: str) -> Any:
    """Run code as a user without rights; it sees `target`, the package's modules and SQL, and leaves an `answer`."""
    finished = subprocess.run(
        [sys.executable, "-c", _UNPRIVILEGED, os.fspath(target)],
        input=code,
        capture_output=True,
        text=True,
        check=False,
    )
    assert finished.returncode == 0, finished.stderr
    return json.loads(finished.stdout)


def files_of(database: Path) -> dict[str, str]:
    """A digest of each file of a database that exists, by suffix."""
    found = {}
    for suffix in ("", "-wal", "-shm", "-journal"):
        path = database.with_name(database.name + suffix)
        if path.exists():
            found[suffix] = hashlib.sha256(path.read_bytes()).hexdigest()
    return found


def _start(script: str, database: Path, *arguments: str) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", script, os.fspath(database), *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout
    assert process.stdout.readline() == "ready\n"
    return process


def _close_pipes(process: subprocess.Popen[str]) -> None:
    for pipe in (process.stdin, process.stdout):
        if pipe and not pipe.closed:
            pipe.close()
    process.wait(timeout=30)
