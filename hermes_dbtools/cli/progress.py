"""Say on a terminal what is being done and how long it will take; never on anything else, and nothing within a second."""

from __future__ import annotations

import re
import sys
import threading
import time
from types import TracebackType

from . import terminal

SHOWN_AFTER = 1.0
"""Seconds of work of which nothing is said."""

EVERY = 0.5
"""Seconds between two looks at the clock, for work that does not report meanwhile."""

SOON = 0.02
"""The least part that must be done before anything is said of the rest."""

_SHARE = re.compile(r"(?P<part>\d[\d,]*) of (?P<all>\d[\d,]*)|(?P<percent>\d+) %")


class Progress:
    """Shows the last word it was told, with the seconds that have passed.

    A word that holds `N of M` or `N %` says how much is done of what stands before it; from that follows what is left.
    """

    def __init__(self, *, quiet: bool = False) -> None:
        """Start the clock. `quiet`: say nothing on a terminal either."""
        self._started = time.monotonic()
        self._on = not quiet and terminal.is_terminal(sys.stderr)
        self._shown = False
        self._what = ""
        self._kind, self._since, self._from = "", self._started, 0.0
        self._lock = threading.Lock()
        self._over = threading.Event()
        self._watch: threading.Thread | None = None

    def __enter__(self) -> Progress:
        """Nothing is shown yet."""
        if self._on:
            self._watch = threading.Thread(target=self._keep_on, daemon=True)
            self._watch.start()
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        """Clear the line, whatever happened."""
        self._over.set()
        if self._watch is not None:
            self._watch.join()
        if self._shown:
            _write("\r\033[K")

    def __call__(self, what: str) -> None:
        """Tell what comes now."""
        if not self._on:
            return
        with self._lock:
            now = time.monotonic()
            share, kind = share_of(what), _SHARE.split(what, maxsplit=1)[0]
            if kind != self._kind or share is None or share < self._from:
                self._kind, self._since, self._from = kind, now, share or 0.0
            self._what = what
            self._show(now)

    def _keep_on(self) -> None:
        while not self._over.wait(EVERY):
            with self._lock:
                if self._what:
                    self._show(time.monotonic())

    def _show(self, now: float) -> None:
        seconds = now - self._started
        if seconds <= SHOWN_AFTER:
            return
        left = self._left(now)
        room = max(0, terminal.width(sys.stderr) - 1 - len(left))
        _write(f"\r\033[K{f'{int(seconds)} s  {self._what}'[:room]}{left}")
        self._shown = True

    def _left(self, now: float) -> str:
        share = share_of(self._what)
        if share is None or share - self._from < SOON or share >= 1 or now - self._since < SHOWN_AFTER:
            return ""
        seconds = (now - self._since) / (share - self._from) * (1 - share)
        return f", {duration(seconds)} left"


def share_of(what: str) -> float | None:
    """How much is done by a word, from 0 to 1; None where it does not say."""
    found = _SHARE.search(what)
    if found is None:
        return None
    if found["percent"]:
        return min(int(found["percent"]) / 100, 1.0)
    part, whole = (int(found[name].replace(",", "")) for name in ("part", "all"))
    return min(part / whole, 1.0) if whole else 1.0


def duration(seconds: float) -> str:
    """A time that is still to come, as exactly as it can be known."""
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60} min"


def _write(text: str) -> None:
    if sys.stderr is not None:
        sys.stderr.write(text)
        sys.stderr.flush()
