"""Tell how far a comparison has come, by the rows of both files; reads counts alone and never stops a statement."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import apsw

from .. import queries
from ..pages_read import BETWEEN_LOOKS, go_on
from ..shape import Shape
from .conversions import MOVING
from .rows import FILE, Tally


class RowsRead:
    """A progress handler of both connections. `tally` counts the rows of the table that is compared now."""

    def __init__(self, total: int, progress: Callable[[str], None]) -> None:
        """`total` is how many rows both files have, 0 where that is not known: then no percentage is told."""
        self.tally = Tally()
        self._total = total
        self._progress = progress
        self._done = 0
        self._now = ""
        self._said = (-1, "")

    def __call__(self) -> bool:
        """Say how far it has come, where that has changed."""
        read = self._done + self.tally.before + self.tally.after
        percent = min(99, 100 * read // self._total) if self._total else 0
        if (percent, self._now) != self._said:
            self._said = (percent, self._now)
            self._progress("rows" + (f": {percent} %" if self._total else "") + f" ({self._now})")
        return False

    def reading(self, table: str) -> Tally:
        """Tell which table is read from now on; what it gives counts its rows."""
        self._done += self.tally.before + self.tally.after
        self.tally = Tally()
        self._now = table
        self()
        return self.tally


@contextmanager
def told(
    connections: Sequence[apsw.Connection], total: int, progress: Callable[[str], None]
) -> Iterator[RowsRead]:
    """Tell how much of what is compared in this block is done."""
    watching = RowsRead(total, progress)
    for connection in connections:
        connection.set_progress_handler(watching, BETWEEN_LOOKS)
    try:
        yield watching
    finally:
        for connection in connections:
            connection.set_progress_handler(go_on, BETWEEN_LOOKS)


def row_total(connection: apsw.Connection, shape: Shape) -> int:
    """How many rows of a file are compared, 0 where it does not tell; the connection is not fit for temporary tables then."""
    total = 0
    try:
        for table in shape.canonical_tables:
            if table not in MOVING:
                sql = queries.fill(queries.statement(FILE, "row-count"), table=table)
                total += sum(int(count) for (count,) in connection.execute(sql))
    except apsw.Error:
        return 0
    return total
