"""Say which statements of the store fail for a session, on which key, because of which row; runs none of them.

Facts of upstream: messages and usage are plain INSERTs with foreign keys on; since 0.18.0 a session's row is written by
`INSERT … ON CONFLICT DO UPDATE` that names `parent_session_id` (and `system_prompt_hash` in 0.20.4) again, so a key that
was broken before fails on every turn. SQLite checks a key whenever an UPDATE names its column, changed or not.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator

from ..damage._declare import ScanContext, text
from ..model import Value
from ..shape import ForeignKey
from ..sizes import short
from .document import Failing
from .failures import failures
from .places import FILE, Places

SINCE = " (0.18 and newer)"
WRITTEN = ("messages", "session_model_usage")
"""Tables that the store writes for every session that is used."""

LEDGER = ("session_admissions.", "worker_executions.")
"""Tables whose rows newer releases retire before a delete, and older ones do not know."""

OWN_DELETES = frozenset(
    (
        ("messages", "session_id"),
        ("sessions", "parent_session_id"),
        ("session_model_usage", "session_id"),
        ("session_daily_usage", "session_id"),
    )
)
"""References that a delete of the store removes or detaches itself, whatever the release."""


def failing(context: ScanContext, places: Iterable[Places]) -> dict[str, list[Failing]]:
    """The statements that fail now, by session."""
    places = list(places)
    broken = _broken(context, [one.id for one in places if one.row])
    return {one.id: broken.get(one.id, []) if one.row else list(_without_row(context, one)) for one in places}


def blocking(context: ScanContext, place: Places) -> list[Failing]:
    """What makes a plain DELETE of the session's row fail, beyond what every release of the store removes itself."""
    found = []
    for table, key in _references(context):
        rows = place.rows(table, key.columns[0])
        if (
            place.row
            and rows
            and key.on_delete in ("NO ACTION", "RESTRICT")
            and (table, key.columns[0]) not in OWN_DELETES
        ):
            because = f"{table} names it, ON DELETE {key.on_delete}"
            found.append(Failing(failures().statements.delete, _key(table, key), because, rows))
    return found


def ledger(one: Failing) -> bool:
    """Whether only a release that does not know the runtime ledger fails on it."""
    return one.key.startswith(LEDGER)


def _without_row(context: ScanContext, place: Places) -> Iterator[Failing]:
    """Every table that must point at a row that is not there: those the store writes, and those that name it already."""
    for table, key in _references(context):
        rows = place.rows(table, key.columns[0])
        if table in WRITTEN or rows:
            named = failures().statements
            statement = named.upsert + SINCE if table == "sessions" else named.insert.format(table=table)
            because = f"sessions has no row {short(place.id, 40)!r}"
            yield Failing(statement, _key(table, key), because, rows)


def _broken(context: ScanContext, session_ids: list[str]) -> dict[str, list[Failing]]:
    """The keys of sessions' own rows that name a row that is gone."""
    found: dict[str, list[Failing]] = {}
    asked = {"ids": json.dumps(session_ids)}
    table = context.shape.tables.get("sessions")
    for key in table.foreign_keys if table else ():
        parent = context.shape.tables.get(key.parent)
        target = key.parent_columns or (parent.primary_key if parent else ())
        if parent is None or len(key.columns) != 1 or len(target) != 1:
            continue
        since = SINCE if key.columns[0] == "parent_session_id" else ""
        names = {"column": key.columns[0], "parent": parent.name, "key": target[0]}
        for session, missing in context.rows(FILE, "broken-keys", asked, names):
            because = f"{parent.name} has no row {_value(text(missing))}"
            found.setdefault(str(text(session)), []).append(
                Failing(failures().statements.upsert + since, _key("sessions", key), because)
            )
    return found


def _references(context: ScanContext) -> Iterator[tuple[str, ForeignKey]]:
    """Every declared key to the table of sessions, messages first."""
    tables = sorted(context.shape.canonical_tables, key=lambda name: (name != "messages", name))
    for name in tables:
        for key in context.shape.tables[name].foreign_keys:
            if key.parent.lower() == "sessions" and len(key.columns) == 1:
                yield name, key


def _key(table: str, key: ForeignKey) -> str:
    parent = f"({key.parent_columns[0]})" if key.parent_columns else ""
    return f"{table}.{key.columns[0]} -> {key.parent}{parent}"


def _value(value: Value) -> str:
    word = f"hex:{value.hex()}" if isinstance(value, bytes) else str(value)
    return repr(short(word, 40))
