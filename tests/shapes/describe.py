"""Say what objects a store file has; never depends on their order or on the text of a CREATE statement.

Used on both sides of a comparison, once with apsw and once with the standard library: it imports neither.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Ask = Callable[..., list[Any]]

OBJECTS = "SELECT type, name, tbl_name FROM sqlite_master ORDER BY type, name"
COLUMNS = 'SELECT name, type, "notnull", dflt_value, pk FROM pragma_table_info(?) ORDER BY name'
INDEXES = 'SELECT name, "unique", origin, partial FROM pragma_index_list(?) ORDER BY name'
KEYS = "SELECT name, desc FROM pragma_index_xinfo(?) WHERE key = 1 ORDER BY seqno"
FOREIGN_KEYS = 'SELECT "table", "from", "to", on_delete, on_update FROM pragma_foreign_key_list(?) ORDER BY 2'
MARKS = "SELECT key, value FROM state_meta ORDER BY key"
VERSION = "SELECT version FROM schema_version"


def describe(ask: Ask) -> dict[str, Any]:
    """Objects, columns, indexes, foreign keys, version and marks; `ask` runs one statement."""
    objects = ask(OBJECTS)
    tables = [name for kind, name, _ in objects if kind == "table"]
    return {
        "objects": sorted(f"{kind} {name} on {table}" for kind, name, table in objects),
        "columns": {
            f"{table}.{column}": [kind, not_null, default, key]
            for table in tables
            for column, kind, not_null, default, key in ask(COLUMNS, table)
        },
        "indexes": {
            name: [table, unique, origin, partial, [list(key) for key in ask(KEYS, name)]]
            for table in tables
            for name, unique, origin, partial in ask(INDEXES, table)
        },
        "foreign_keys": [[table, *key] for table in sorted(tables) for key in ask(FOREIGN_KEYS, table)],
        "version": [list(row) for row in ask(VERSION)],
        "marks": [list(row) for row in ask(MARKS)],
    }
