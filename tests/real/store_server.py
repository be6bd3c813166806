"""Serve one released store's own calls as JSON lines on stdin and stdout; never imports apsw or the product.

Started by `tests.real.store.Store` as a process of its own, because stdlib sqlite3 and apsw must not open
the same file in one process. A request is {"verb": …, "args": {…}}; an answer is {"result": …} or
{"error": type, "message": …}: whatever a verb raises becomes an answer, and the process lives on.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import select
import sys
from pathlib import Path
from typing import Any

STDIN = 0
STDOUT = 1
STDERR = 2


class Lines:
    """Whole request lines from a file descriptor, with a way to ask whether one more is waiting."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._pending = b""

    def waiting(self) -> bool:
        """Tell whether a whole line, or the end of the input, can be read without blocking."""
        while b"\n" not in self._pending:
            if not select.select([self._descriptor], [], [], 0)[0]:
                return False
            block = os.read(self._descriptor, 65536)
            if not block:
                return True
            self._pending += block
        return True

    def next(self) -> bytes | None:
        """Return the next line, or None at the end of the input."""
        while b"\n" not in self._pending:
            block = os.read(self._descriptor, 65536)
            if not block:
                return None
            self._pending += block
        line, self._pending = self._pending.split(b"\n", 1)
        return line


def plain(value: Any) -> Any:
    """Return a value JSON can hold for anything a store answers with: bytes become {"hex": …}."""
    if isinstance(value, bytes | bytearray | memoryview):
        return {"hex": bytes(value).hex()}
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, set | frozenset):
        return sorted(value)
    return dict(value) if hasattr(value, "keys") else repr(value)


def answer(output: int, document: dict[str, Any]) -> None:
    """Write one answer line; a pipe takes a long line in several writes."""
    rest = json.dumps(document, default=plain).encode() + b"\n"
    while rest:
        rest = rest[os.write(output, rest) :]


def serve(released: Any, verbs: Any, lines: Lines, output: int) -> None:
    """Answer requests until the input ends or a request says quit."""
    while (line := lines.next()) is not None:
        try:
            request = json.loads(line)
            if request["verb"] == "quit":
                released.close()
                answer(output, {"result": None})
                return
            verb = verbs[request["verb"]]
            result = verb(released, **request.get("args", {}))
        except Exception as problem:  # noqa: BLE001 - every failure of a store is an answer, never a crash
            answer(output, {"error": type(problem).__name__, "message": str(problem)})
        else:
            answer(output, {"result": result})


def main() -> None:
    """Open the store named on the command line and serve it."""
    parser = argparse.ArgumentParser()
    parser.add_argument("release")
    parser.add_argument("modules")
    parser.add_argument("database")
    parser.add_argument("--journal-mode", choices=["wal", "delete"])
    parser.add_argument("--clock", default="{}", help="arguments of the clock verb, as JSON")
    options = parser.parse_args()
    output = os.dup(STDOUT)
    os.dup2(STDERR, STDOUT)  # what the released code prints must not mix with the answers
    logging.disable(logging.CRITICAL)
    sys.path.insert(0, options.modules)
    from tests.real.released import Released
    from tests.real.verbs import VERBS

    lines = Lines(STDIN)
    try:
        released = Released(options.release, Path(options.database), lines)
        released.clock.set(**json.loads(options.clock))
        released.open(journal_mode=options.journal_mode)
    except Exception as problem:  # noqa: BLE001 - a store that refuses a file is what a test may want to see
        answer(output, {"error": type(problem).__name__, "message": str(problem)})
        return
    answer(output, {"result": {"pid": os.getpid()}})
    serve(released, VERBS, lines, output)


if __name__ == "__main__":
    main()
