"""Check the values of a new store, not only its pages: types, text, and what sessions count; changes nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import apsw

from .. import queries, utf8
from ..damage._declare import ScanContext
from ..damage.counters import session_counter_drift
from ..file_state import FileState
from ..shape import Shape
from ..structure import Gate
from .tables import form_of, is_number, is_text


@dataclass(frozen=True, slots=True)
class Values:
    """Rows by table with a value of another type than its column keeps, and with text that is not UTF-8.

    `counters_off` are sessions whose counters do not fit their messages.
    """

    other_type: Mapping[str, int]
    not_text: Mapping[str, int]
    counters_off: int


def check_values(connection: apsw.Connection, shape: Shape, state: FileState, now: float) -> Values:
    """Read every value of every table once."""
    utf8.register(connection)
    other: dict[str, int] = {}
    broken: dict[str, int] = {}
    for name in shape.canonical_tables:
        form = form_of(shape.tables[name])
        text = [queries.quote(column.name) for column in form.columns if is_text(column)]
        numbers = [queries.quote(column.name) for column in form.columns if is_number(column)]
        wrong = [f"typeof({column}) IN ('integer', 'real')" for column in text]
        wrong += [f"typeof({column}) IN ('text', 'blob')" for column in numbers]
        sql = queries.statement("salvage/values", "suspects")
        sql = sql.replace("{wrong}", " OR ".join(wrong) or "0").replace("{texts}", ", ".join(["''", *text]))
        ((other_rows, broken_rows),) = connection.execute(queries.fill(sql, table=name)).fetchall()
        if other_rows:
            other[name] = int(other_rows)
        if broken_rows:
            broken[name] = int(broken_rows)
    context = ScanContext(connection, shape, None, state, Gate(), now)
    drift = sum(1 for _finding in session_counter_drift.DAMAGE.find(context))
    return Values(other, broken, drift)
