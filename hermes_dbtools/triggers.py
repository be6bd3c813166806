"""Let no trigger but the store's own write while a plan runs; changes no trigger and no row.

A trigger of somebody else may change what no step planned, also in tables that SQLite's recorder does not follow and in the very
rows that a step changes. SQLite says at prepare time which trigger would write, so such a statement is not even begun.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import apsw

from .model import RolledBack

DERIVED = (
    "messages_message_uid_insert",
    "messages_display_order_insert",
    "messages_display_visibility_update",
    "messages_display_identity_update",
    "messages_display_identity_delete",
)
"""Upstream's triggers that keep derived columns of `messages` right; a change of theirs is no surprise."""

_WRITES = (apsw.SQLITE_INSERT, apsw.SQLITE_UPDATE, apsw.SQLITE_DELETE)


@contextmanager
def only_known_triggers(connection: apsw.Connection) -> Iterator[None]:
    """Raises RolledBack, naming the trigger, for a statement of which a trigger unknown to us would write.

    Foreign key actions have no name and pass.
    """
    found: list[tuple[str, str]] = []

    def authorize(
        operation: int, table: str | None, _column: str | None, _database: str | None, trigger: str | None
    ) -> int:
        if operation in _WRITES and trigger is not None and trigger not in DERIVED:
            found.append((trigger, table or ""))
            return apsw.SQLITE_DENY
        return apsw.SQLITE_OK

    connection.authorizer = authorize
    try:
        yield
    except apsw.AuthError as error:
        trigger, table = found[0]
        raise RolledBack(
            f"the trigger {trigger} of this file would change rows of {table} that no step planned; nothing was changed; "
            "it is not the store's: drop it for the time of the repair"
        ) from error
    finally:
        connection.authorizer = None
