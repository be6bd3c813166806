"""The values of a comparison; they hold ids, names and counts, and never a value of a row."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import msgspec

from ..model import ShapeSummary
from ..report_document import ToolDocument

Word = Literal["error", "warning", "note"]


class Side(msgspec.Struct, frozen=True):
    """One of the two files. `size` is bytes."""

    path: str
    size: int
    shape: ShapeSummary


class RowName(msgspec.Struct, frozen=True):
    """One row by its key, the session it belongs to where it names one, and the columns that changed.

    The key holds ids only: a row that is known by a chat, an address or a model is counted and not named.
    """

    key: str
    session: str = ""
    columns: tuple[str, ...] = ()


class TableComparison(msgspec.Struct, frozen=True):
    """One table. The counts are exact; of the rows themselves the first ones are named, in the order of their keys.

    `before` and `after` are rows. `columns` counts changed rows by column. `converted` counts by kind the rows that only a
    documented step of an upgrade has changed: they are not among `changed`. `left_out` are columns that one file lacks.
    """

    table: str
    status: Literal["compared", "left-out", "could-not-look"]
    reason: str = ""
    before: int = 0
    after: int = 0
    lost: int = 0
    gained: int = 0
    changed: int = 0
    columns: Mapping[str, int] = {}
    converted: Mapping[str, int] = {}
    left_out: tuple[str, ...] = ()
    lost_rows: tuple[RowName, ...] = ()
    gained_rows: tuple[RowName, ...] = ()
    changed_rows: tuple[RowName, ...] = ()


class ShapeChanges(msgspec.Struct, frozen=True):
    """Objects of the schema by name; columns as `table.column`. `*_changed` are there in both and not the same."""

    tables_added: tuple[str, ...] = ()
    tables_gone: tuple[str, ...] = ()
    columns_added: tuple[str, ...] = ()
    columns_gone: tuple[str, ...] = ()
    columns_changed: tuple[str, ...] = ()
    indexes_added: tuple[str, ...] = ()
    indexes_gone: tuple[str, ...] = ()
    triggers_added: tuple[str, ...] = ()
    triggers_gone: tuple[str, ...] = ()
    triggers_changed: tuple[str, ...] = ()


class OutOfView(msgspec.Struct, frozen=True):
    """A session that the store's own list showed before and does not show after, and why."""

    session: str
    row: Literal["there", "gone"]
    why: str


class NewDamage(msgspec.Struct, frozen=True):
    """A damage class with findings after that were not there before. `new` and `before` are counts of findings.

    `keys` names the new ones as `table key`, where both lists were complete; `unknown` says why before could not be told.
    """

    code: str
    slug: str
    severity: Word
    new: int
    before: int
    keys: tuple[str, ...] = ()
    unknown: str = ""


class Comparison(msgspec.Struct, frozen=True):
    """Everything that changed. `same_file`: both names lead to one file, so there was nothing to compare.

    `out_of_view_count` is exact where `out_of_view` names the first ones only. `blind` says what could not be looked at.
    """

    before: Side
    after: Side
    same_file: bool
    tables: tuple[TableComparison, ...]
    shape: ShapeChanges
    out_of_view_count: int
    out_of_view: tuple[OutOfView, ...]
    damage: tuple[NewDamage, ...]
    blind: tuple[str, ...]
    exit_code: int

    @property
    def lost(self) -> int:
        """Rows that are gone, of all tables."""
        return sum(table.lost for table in self.tables)


class CompareDocument(Comparison, frozen=True, forbid_unknown_fields=True):
    """The same as a document."""

    format: Literal["hermes-dbtools/compare"]
    format_version: Literal[1]
    tool: ToolDocument
