"""Decide how the rows of one table are put side by side: by which key, in which columns; reads no row."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from ..model import Value
from ..shape import Column, Table

_NUMBER = re.compile(r"[+-]?\d+")
_TEXT = re.compile(r"'((?:[^']|'')*)'")

How = Literal["by-id", "by-key", "by-row"]


@dataclass(frozen=True, slots=True)
class Pairing:
    """How two tables of one name are compared.

    `by-id`: the key is the id under which SQLite keeps the rows. `by-row`: there is no key, so a row is all of its columns.
    `columns` are in both tables, keys first; `keys` is how many of them. `defaults` holds for a column that one file lacks,
    though it belongs to the key of the other, what upstream puts there when it adds it.
    """

    table: str
    how: How
    columns: tuple[str, ...]
    keys: int
    left_out: tuple[str, ...]
    defaults: Mapping[str, Value] = field(default_factory=dict)


def pair(before: Table, after: Table) -> Pairing:
    """How to compare a table with itself in another file.

    Where the two keys differ, a row is known by the columns of both: an upgrade that widens a key adds a column to it.
    """
    common = set(before.columns) & set(after.columns)
    keys = tuple(dict.fromkeys((*after.primary_key, *before.primary_key)))
    defaults = {
        name: value
        for name in keys
        if name not in common
        and (value := _literal(before.columns.get(name) or after.columns[name])) is not None
    }
    keys = tuple(name for name in keys if name in common or name in defaults)
    rest = tuple(sorted(common - set(keys)))
    everything = set(before.columns) | set(after.columns)
    left_out = tuple(sorted(everything - common - set(defaults)))
    if not keys:
        return Pairing(before.name, "by-row", rest, len(rest), left_out)
    how: How = "by-id" if _row_id(before) == _row_id(after) == keys[0] and len(keys) == 1 else "by-key"
    return Pairing(before.name, how, (*keys, *rest), len(keys), left_out, defaults)


def _row_id(table: Table) -> str | None:
    """The column that is another name of the row's id, as SQLite decides."""
    if table.without_rowid or len(table.primary_key) != 1:
        return None
    (name,) = table.primary_key
    return name if table.columns[name].type.upper() == "INTEGER" else None


def _literal(column: Column) -> Value:
    """The default of a column where it is a plain number or text, else None."""
    text = column.default or ""
    if _NUMBER.fullmatch(text):
        return int(text)
    found = _TEXT.fullmatch(text)
    return found.group(1).replace("''", "'") if found else None
