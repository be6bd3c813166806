"""Say how far a scan has come: in hundredths while the pages of the file are checked, else by the name of a check; reads no row.

A scan of all classes asks `quick_check` of every table, those of the search indexes too. It reads each page of a table twice:
as a page, and row by row. So the pages that were fetched tell how much of it is done, and at the same pace.
"""

from __future__ import annotations

from collections.abc import Callable

import apsw

from .damage._declare import Damage, ScanContext
from .pages_read import BETWEEN_LOOKS, CHECK_PASSES, PagesRead, go_on

SEARCH = "search"
"""The family that checks the tables of the search indexes, when the first of its classes is asked for."""


class ScanProgress:
    """What is told of one scan. Between two statements alone Python sees Ctrl-C, so SQLite is always asked to look up."""

    def __init__(
        self, connection: apsw.Connection, progress: Callable[[str], None], *, every_page: bool
    ) -> None:
        """`every_page`: search indexes will be checked too; where they are not, nothing tells how many pages will be read."""
        self._connection = connection
        self._progress = progress
        self._pages: PagesRead | None = None
        self._watch(go_on)
        if every_page:
            self._pages = PagesRead((connection,), "structure", progress, CHECK_PASSES)

    def table(self, name: str) -> None:
        """Tell whose structure is checked now."""
        if self._pages is None:
            self._progress(f"structure of {name}")
        else:
            self._watch(self._pages)
            self._pages.reading(name)

    def check(self, place: int, count: int, damage: Damage, context: ScanContext) -> None:
        """Tell which class is asked now."""
        if self._goes_on(damage, context) and self._pages is not None:
            self._watch(self._pages)
            self._pages.reading("search indexes")
        else:
            self._watch(go_on)
            # A count of checks tells nothing of time: one of them reads all messages, most of them a page or two.
            self._progress(f"check {place}/{count}: {damage.slug}")

    def _goes_on(self, damage: Damage, context: ScanContext) -> bool:
        return (
            damage.family == SEARCH
            and damage.stage == "rows"
            and not context.search.begun
            and context.connection is self._connection
        )

    def _watch(self, handler: Callable[[], bool]) -> None:
        self._connection.set_progress_handler(handler, BETWEEN_LOOKS)
