"""Drive one released store in a process of its own; a test never opens the file by stdlib sqlite3 itself."""

from __future__ import annotations

import json
import os
import selectors
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

from tests.real.wheels import modules

CHECKOUT = Path(__file__).resolve().parents[2]
DEADLINE = 60.0
"""Seconds one answer may take before the store process is killed and the test fails."""


class StoreError(Exception):
    """A verb raised in the store process; `kind` is the name of the exception there."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(f"{kind}: {message}")
        self.kind = kind
        self.message = message


class Store:
    """A released store on `path` (a state.db, made when missing); its folder is the Hermes home.

    Usable as a context manager, which closes the store and ends the process. `journal_mode` is set on the
    file before the store opens it; `clock` holds the arguments of the clock verb for that first opening.
    """

    def __init__(
        self,
        path: Path,
        release: str,
        *,
        journal_mode: str | None = None,
        clock: dict[str, float] | None = None,
        deadline: float = DEADLINE,
    ) -> None:
        self.path = path
        self.release = release
        self.deadline = deadline
        self._options = ["--clock", json.dumps(clock or {})]
        if journal_mode is not None:
            self._options += ["--journal-mode", journal_mode]
        self._process: subprocess.Popen[bytes] | None = None
        self._said: IO[bytes] | None = None
        self._pending = b""

    def start(self) -> Self:
        """Start the process and open the store; raises StoreError or RuntimeError when that fails."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        command = [sys.executable, "-P", "-m", "tests.real.store_server", *self._options]
        command += [self.release, str(modules(self.release)), str(self.path)]
        self._said = tempfile.TemporaryFile()  # noqa: SIM115 - a pipe nobody reads could stop the process
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._said,
            cwd=self.path.parent,
            env=self._environment(),
        )
        try:
            self.receive()
        except BaseException:
            self.kill()
            raise
        return self

    @property
    def pid(self) -> int:
        """The process id of the store process."""
        return self._running().pid

    def call(self, verb: str, **args: Any) -> Any:
        """Send a request and return its result; raises StoreError with what the store raised."""
        self.send(verb, **args)
        return self.receive()

    def send(self, verb: str, **args: Any) -> None:
        """Send a request without waiting; every send needs its receive."""
        process = self._running()
        assert process.stdin is not None
        try:
            process.stdin.write(json.dumps({"verb": verb, "args": args}).encode() + b"\n")
            process.stdin.flush()
        except BrokenPipeError:
            raise self._lost(f"ended with {process.wait(self.deadline)}") from None

    def receive(self) -> Any:
        """Return the result of the oldest unanswered request."""
        document = json.loads(self._line())
        if "error" in document:
            raise StoreError(document["error"], document["message"])
        return document["result"]

    def rows(self, statement: str, *bindings: Any) -> list[dict[str, Any]]:
        """Return the rows of a SELECT on a connection beside the store's."""
        answer = self.call("sql", statement=statement, bindings=bindings)
        return list(answer["rows"])

    def execute(self, statement: str, *bindings: Any, foreign_keys: bool = False) -> int:
        """Change the file beside the store, with foreign keys off unless asked; returns the rows changed."""
        answer = self.call("sql", statement=statement, bindings=bindings, foreign_keys=foreign_keys)
        return int(answer["changed"])

    @contextmanager
    def appending(self, session_id: str, pause: float = 0.0) -> Iterator[dict[str, Any]]:
        """Let the store append without end while the body runs; the dictionary is filled when it ends."""
        told: dict[str, Any] = {}
        self.send("append_until_told", session_id=session_id, pause=pause)
        try:
            yield told
        finally:
            self.send("ping")
            told.update(self.receive())
            self.receive()

    def stop(self) -> None:
        """Close the store as its release does, and end the process."""
        if self._process is None:
            return
        try:
            if self._process.poll() is None:
                self.call("quit")
        finally:
            self.kill()

    def kill(self) -> None:
        """End the process at once (SIGKILL); what it left on disk stays as it is."""
        if self._process is not None:
            process, self._process = self._process, None
            process.kill()
            process.communicate()
            self._pending = b""
        if self._said is not None:
            self._said.close()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.stop()
        else:
            self.kill()

    def _environment(self) -> dict[str, str]:
        """Return an environment without the caller's own Hermes settings."""
        kept = {name: os.environ[name] for name in ("PATH", "TMPDIR", "LANG", "TZ") if name in os.environ}
        home = str(self.path.parent)
        return kept | {"HERMES_HOME": home, "HOME": home, "PYTHONPATH": str(CHECKOUT), "PYTHONUTF8": "1"}

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            raise RuntimeError("the store process is not running")
        return self._process

    def _line(self) -> bytes:
        """Return the next answer line; ends the process when the deadline passes or it died."""
        process = self._running()
        assert process.stdout is not None
        until = time.monotonic() + self.deadline
        with selectors.DefaultSelector() as ready:
            ready.register(process.stdout, selectors.EVENT_READ)
            while b"\n" not in self._pending:
                if not ready.select(max(0.0, until - time.monotonic())):
                    raise self._lost(f"gave no answer within {self.deadline} s")
                block = os.read(process.stdout.fileno(), 65536)
                if not block:
                    raise self._lost(f"ended with {process.wait(self.deadline)}")
                self._pending += block
        line, self._pending = self._pending.split(b"\n", 1)
        return line

    def _lost(self, why: str) -> RuntimeError:
        assert self._said is not None
        self._said.seek(0)
        said = self._said.read().decode(errors="replace")[-2000:]
        self.kill()
        return RuntimeError(f"the store process of {self.release} {why}: {said}")
