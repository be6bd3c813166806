"""Give a view of a database without its damaged indexes, in a private copy; never touches the file itself.

A damaged index answers questions wrongly and quietly, and SQLite chooses indexes by itself. Its definition is taken out of
a copy, so every row is read from its table.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import apsw

from . import database, queries


class NotStripped(Exception):
    """The schema of the copy cannot be written: a page that it needs is damaged too."""


@contextmanager
def without_indexes(connection: apsw.Connection, names: Iterable[str]) -> Iterator[apsw.Connection]:
    """A read connection on a private copy that lacks these indexes; the copy is removed afterwards. Raises NotStripped."""
    with database.private_copy(connection) as path:
        forget = queries.statement("scan", "forget-index")
        writable = apsw.Connection(str(path))
        try:
            writable.execute("PRAGMA writable_schema=ON")
            for name in sorted(names):
                writable.execute(forget, {"name": name})
        except apsw.CorruptError as error:
            raise NotStripped(str(error)) from error
        finally:
            writable.close()
        copy = database.open_private(path)
        try:
            yield copy
        finally:
            copy.close()
