"""Hold one released store open in this process, whatever its release; it calls nothing but public methods."""

from __future__ import annotations

import asyncio
import importlib
import inspect
import sqlite3
import time
from pathlib import Path
from typing import Any


class Unsupported(Exception):
    """The release has no such call."""


class Clock:
    """The time the released code sees: real, shifted, or a made-up one that ticks at every look."""

    def __init__(self) -> None:
        self._real = time.time
        self._offset = 0.0
        self._at: float | None = None
        self._step = 0.0
        time.time = self.now

    def set(self, offset: float = 0.0, at: float | None = None, step: float = 0.001) -> None:
        """Shift real time by `offset` seconds, or start at epoch second `at` and add `step` at each look."""
        self._offset, self._at, self._step = offset, at, step

    def now(self) -> float:
        """Return epoch seconds as the released code is to see them."""
        if self._at is None:
            return self._real() + self._offset
        self._at += self._step
        return self._at


class Released:
    """One store of one release, its file, its clock and the raw connections tests keep beside it."""

    def __init__(self, release: str, path: Path, lines: Any) -> None:
        self.release = release
        self.version = tuple(int(part) for part in release.split("."))
        self.path = path
        self.lines = lines
        self.clock = Clock()
        self.held: dict[str, sqlite3.Connection] = {}
        self._module = importlib.import_module("hermes_state")
        self._loop = asyncio.new_event_loop()
        self._db: Any = None

    def open(self, journal_mode: str | None = None) -> None:
        """Open the store; `journal_mode` is set on the file first, as an operator would, where it differs."""
        if journal_mode is not None:
            connection = sqlite3.connect(self.path)
            connection.execute(f"PRAGMA journal_mode = {journal_mode}")
            connection.close()
        self._db = self._module.SessionDB(self.path)
        self.call("get_meta", key="store_opened")  # the asynchronous store opens at its first call

    def close(self) -> None:
        """Close the store; a second close does nothing."""
        if self._db is not None:
            database, self._db = self._db, None
            self._finish(database.close())
        while self.held:
            self.held.popitem()[1].close()

    def has(self, method: str) -> bool:
        """Tell whether the release has a public method of that name."""
        return callable(getattr(self._module.SessionDB, method, None))

    def methods(self) -> list[str]:
        """Return the names of every public method of the store."""
        return sorted(
            name for name in dir(self._module.SessionDB) if not name.startswith("_") and self.has(name)
        )

    def call(self, method: str, **arguments: Any) -> Any:
        """Call a public method and wait for it; raises Unsupported where the release has none."""
        if not self.has(method):
            raise Unsupported(f"{self.release} has no {method}")
        if self._db is None:
            raise Unsupported("the store is closed; reopen_store first")
        return self._finish(getattr(self._db, method)(**arguments))

    def call_known(self, method: str, **arguments: Any) -> Any:
        """Call a public method with those of `arguments` that its release knows."""
        return self.call(method, **self.known(method, arguments))

    def known(self, method: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """Return the arguments that a method takes in this release, and of those only what is not None."""
        target = "_insert_session_row" if method == "create_session" else method
        function = getattr(self._module.SessionDB, target, None)
        parameters = inspect.signature(function).parameters if callable(function) else {}
        return {name: value for name, value in arguments.items() if name in parameters and value is not None}

    def raw(self, foreign_keys: bool = True) -> sqlite3.Connection:
        """Return a new stdlib connection to the file, beside the store's own."""
        connection = sqlite3.connect(self.path, isolation_level=None, timeout=5.0)
        connection.text_factory = _text
        connection.execute(f"PRAGMA foreign_keys = {'ON' if foreign_keys else 'OFF'}")
        return connection

    def _finish(self, result: Any) -> Any:
        return self._loop.run_until_complete(result) if inspect.isawaitable(result) else result


def _text(value: bytes) -> Any:
    try:
        return value.decode()
    except UnicodeDecodeError:
        return {"hex": value.hex()}
