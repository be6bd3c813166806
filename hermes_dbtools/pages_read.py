"""Tell how far long reading of a file has come, by the pages that SQLite has fetched; never stops a statement."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import apsw

CACHE_MISS = apsw.SQLITE_DBSTATUS_CACHE_MISS


class PagesRead:
    """A progress handler of connections that are to read every page about `passes` times.

    It says `what` with a percentage, and in brackets `now`, what is being read; only when that has changed. The percentage
    stays below 100, for how many pages are read again is not known.
    """

    def __init__(
        self,
        connections: Sequence[apsw.Connection],
        what: str,
        progress: Callable[[str], None],
        passes: int = 1,
    ) -> None:
        """Count from what was read up to now. Raises apsw.Error where the size of a file cannot be asked."""
        self._connections = connections
        self._what = what
        self._progress = progress
        self._before = self._fetched()
        self._pages = passes * sum(_page_count(connection) for connection in connections)
        self._now = ""
        self._said = (-1, "")

    def __call__(self) -> bool:
        """Say how far it has come; a handler's answer to whether the statement is to be stopped."""
        done = min(99, 100 * (self._fetched() - self._before) // max(1, self._pages))
        if (done, self._now) != self._said:
            self._said = (done, self._now)
            self._progress(f"{self._what}: {done} %" + (f" ({self._now})" if self._now else ""))
        return False

    def reading(self, now: str) -> None:
        """Tell what is read from now on."""
        self._now = now
        self()

    def _fetched(self) -> int:
        return sum(connection.status(CACHE_MISS)[0] for connection in self._connections)


def _page_count(connection: apsw.Connection) -> int:
    """The pages that hold something."""
    ((count,),) = connection.execute("PRAGMA page_count").fetchall()
    ((free,),) = connection.execute("PRAGMA freelist_count").fetchall()
    return count - free if isinstance(count, int) and isinstance(free, int) else 0
