"""Rows of any values are paired right: against a comparison by dictionaries, with bad values, and without printing any."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import apsw
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hermes_dbtools.comparing.columns import pair
from hermes_dbtools.comparing.rows import Layout, Tally, walk
from hermes_dbtools.documents import encode
from hermes_dbtools.report.compare import compare_document, compare_text
from hermes_dbtools.shape import Column, Shape, Table
from tests.comparing import WITH_DAMAGE, compared, differing, table, twins
from tests.hostile import damage_every_column
from tests.shapes.make import SHAPES, execute
from tests.test_privacy import MARKER, mark

Key = tuple[str, Any]

VALUES = st.one_of(
    st.none(),
    st.integers(-3, 3),
    st.sampled_from([-1.5, 0.5, 1e300, float("inf"), 2.0**53]),
    st.text("aAé\0€𝄞", max_size=2),
    st.binary(max_size=2),
)
BROKEN = st.binary(max_size=2).map(lambda data: ("text", data))
"""Bytes to be stored as text, which may or may not be UTF-8."""


def put(connection: apsw.Connection, rows: list[tuple[Any, Any]]) -> None:
    connection.execute("CREATE TABLE t (k TEXT PRIMARY KEY, v BLOB)")
    for key, value in rows:
        marks = [
            ("CAST(? AS TEXT)", one[1]) if isinstance(one, tuple) else ("?", one) for one in (key, value)
        ]
        connection.execute(
            f"INSERT OR IGNORE INTO t VALUES ({marks[0][0]}, {marks[1][0]})", [one[1] for one in marks]
        )


def shape_of(sql: str = "") -> Shape:
    columns = {"k": Column("k", "TEXT", False, None, 1), "v": Column("v", "BLOB", False, None, 0)}
    return Shape(None, {"t": Table("t", "table", columns, ("k",), (), False, 2, sql)}, {}, {}, {})


def stored(connection: apsw.Connection) -> Counter[tuple[Key, Key]]:
    rows: list[Any] = connection.execute(
        "SELECT typeof(k), CAST(k AS BLOB), typeof(v), CASE WHEN typeof(v) = 'text' THEN CAST(v AS BLOB) ELSE v END FROM t"
    ).fetchall()
    return Counter(((kind, key), (what, value)) for kind, key, what, value in rows)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.data(), st.booleans())
def test_the_walk_tells_what_dictionaries_tell(data: st.DataObject, careful: bool) -> None:
    value = st.one_of(VALUES, BROKEN) if careful else VALUES
    rows = st.lists(st.tuples(value, value), max_size=8)
    before, after = apsw.Connection(":memory:"), apsw.Connection(":memory:")
    put(before, data.draw(rows))
    put(after, data.draw(rows))
    lost: Counter[Any] = Counter()
    gained: Counter[Any] = Counter()
    changed = 0

    def differing_rows(layout: Layout, one: Any, other: Any) -> None:
        nonlocal changed
        if one is not None and other is not None:
            changed += 1
            assert layout.changed(one, other) == ["v"]
        elif one is not None:
            lost[layout.value(one, "k")] += 1
        else:
            gained[layout.value(other, "k")] += 1

    shape = shape_of()
    layout = Layout(pair(shape.tables["t"], shape.tables["t"]), careful)
    tally = Tally()
    walk((before, shape), (after, shape), layout, differing_rows, tally)
    old, new = stored(before), stored(after)
    assert (tally.before, tally.after) == (old.total(), new.total())
    keys_old, keys_new = (Counter({key: 0 for key, _v in rows}) for rows in (old, new))
    for rows_of, keys in ((old, keys_old), (new, keys_new)):
        for (key, _value), count in rows_of.items():
            keys[key] += count
    assert lost.total() == (keys_old - keys_new).total()
    assert gained.total() == (keys_new - keys_old).total()
    if not any(kind == "null" for kind, _key in keys_old | keys_new):
        values_old, values_new = dict(old.keys()), dict(new.keys())
        both = values_old.keys() & values_new.keys()
        assert changed == sum(not same(values_old[key], values_new[key]) for key in both)


def same(one: Key, other: Key) -> bool:
    """Numbers are equal by value: SQLite itself turns one kind into the other by the column's type."""
    numbers = {"integer", "real"}
    return one[1] == other[1] and (one[0] == other[0] or {one[0], other[0]} <= numbers)


@pytest.mark.parametrize("shape", [SHAPES[0], "22", SHAPES[-1]])
def test_values_of_every_kind_in_every_column(shape: str, tmp_path: Path) -> None:
    before, after = twins(tmp_path, shape)
    assert damage_every_column(after) > 100
    found = compared(before, after)
    assert found.blind == ()
    assert {name for name, counts in differing(found).items() if counts[0] or counts[2]} == set()
    assert table(found, "messages").gained > 100
    copy = tmp_path / "copy.db"
    copy.write_bytes(after.read_bytes())
    again = compared(after, copy)
    assert (differing(again), again.blind, again.exit_code) == ({}, (), 0)
    execute(copy, "UPDATE messages SET role = CAST(x'fe' AS TEXT) WHERE id = 1")
    assert table(compared(after, copy), "messages").columns == {"role": 1}


@pytest.mark.parametrize("shape", ["22", "runtime"])
def test_no_value_is_printed(shape: str, tmp_path: Path) -> None:
    before, after = twins(tmp_path, shape)
    mark(after)
    execute(after, "DELETE FROM messages WHERE id = 1")
    for one, other in ((before, after), (after, before)):
        found = compared(one, other, WITH_DAMAGE)
        assert found.lost or found.tables
        assert table(found, "sessions").changed > 0
        said = compare_text(found) + encode(compare_document(found, {})).decode()
        assert MARKER not in said
    json.loads(encode(compare_document(compared(before, after), {})))
