"""Tell how far long reading of a file has come, by the pages that SQLite has fetched; never stops a statement."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence

import apsw

CACHE_MISS = apsw.SQLITE_DBSTATUS_CACHE_MISS

CHECK_PASSES = 2
"""How often `quick_check` reads a page of a table: as a page, and row by row (measured)."""

BETWEEN_LOOKS = 1_000
"""Steps of SQLite's machine between two looks; between two statements alone Python would not even see Ctrl-C."""


class PagesRead:
    """A progress handler of connections that are to read so many pages, or every page about `passes` times.

    It says `what` with a percentage, and in brackets `now`, what is being read; only when that has changed. The percentage
    stays below 100, for how many pages are read again is not known.
    """

    def __init__(
        self,
        connections: Sequence[apsw.Connection],
        what: str,
        progress: Callable[[str], None],
        passes: int = 1,
        pages: int | None = None,
    ) -> None:
        """Count from what was read up to now. Of a file that does not tell its size no percentage is told."""
        self._connections = connections
        self._what = what
        self._progress = progress
        self._before = fetched(connections)
        if pages is None:
            pages = passes * sum(_page_count(connection) for connection in connections)
        self._pages = pages
        self._now = ""
        self._said = (-1, "")

    def __call__(self) -> bool:
        """Say how far it has come; a handler's answer to whether the statement is to be stopped."""
        done = min(99, 100 * (fetched(self._connections) - self._before) // self._pages) if self._pages else 0
        if (done, self._now) != self._said:
            self._said = (done, self._now)
            share = f": {done} %" if self._pages else ""
            self._progress(f"{self._what}{share}" + (f" ({self._now})" if self._now else ""))
        return False

    def reading(self, now: str) -> None:
        """Tell what is read from now on."""
        self._now = now
        self()


@contextlib.contextmanager
def told(
    connections: Sequence[apsw.Connection],
    what: str,
    progress: Callable[[str], None],
    pages: int | None = None,
    passes: int = 1,
) -> Iterator[PagesRead]:
    """Tell how much of what is read in this block is done; of every page so many times, or of so many pages."""
    watching = PagesRead(connections, what, progress, passes, pages)
    for connection in connections:
        connection.set_progress_handler(watching, BETWEEN_LOOKS)
    watching()
    try:
        yield watching
    finally:
        for connection in connections:
            connection.set_progress_handler(go_on, BETWEEN_LOOKS)


def go_on() -> bool:
    """A handler that stops nothing and tells nothing."""
    return False


def fetched(connections: Sequence[apsw.Connection]) -> int:
    """The pages that these connections have fetched up to now, one that was fetched twice counted twice."""
    return sum(connection.status(CACHE_MISS)[0] for connection in connections)


def _page_count(connection: apsw.Connection) -> int:
    """The pages that hold something, 0 where a damaged file does not tell."""
    try:
        ((count,),) = connection.execute("PRAGMA page_count").fetchall()
        ((free,),) = connection.execute("PRAGMA freelist_count").fetchall()
    except apsw.Error:
        return 0
    return max(0, count - free) if isinstance(count, int) and isinstance(free, int) else 0
