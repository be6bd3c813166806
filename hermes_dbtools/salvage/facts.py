"""What one salvage read, lost and made, as documents and tables show it; holds no behaviour that reads a file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import msgspec


class SalvagedTable(msgspec.Struct, frozen=True):
    """One table. `rows` are in the new file: `by_sqlite` read by SQLite, `by_pages` decoded from their pages.

    `from_damaged` of those lie on damaged pages: each record is whole, its values may still be wrong. `refused` could be read
    and not be stored. `lost` rows are proved by an index and are gone; `proof` is `index` where that is all of them, `partly`
    where it is the least, '' where nothing tells. `at_most` bounds the loss, None where nothing does. `pages` are unreadable,
    `ranges` are ids (first, last) of lost rows, `sessions` the sessions that lost messages.
    """

    name: str
    rows: int
    by_sqlite: int = 0
    by_pages: int = 0
    from_damaged: int = 0
    refused: int = 0
    damaged: bool = False
    lost: int = 0
    proof: str = ""
    at_most: int | None = 0
    pages: tuple[int, ...] = ()
    ranges: tuple[tuple[int, int], ...] = ()
    sessions: tuple[tuple[str, int], ...] = ()

    @property
    def complete(self) -> bool:
        """Whether it is certain that every row came over."""
        if not self.damaged and not self.refused:
            return True
        return not self.lost and self.at_most == 0


class Salvaged(msgspec.Struct, frozen=True):
    """What a salvage did. Sizes are bytes, counts are rows unless they say otherwise.

    `header` and `schema` say how they were found; `shape` is the known shape that completed a schema. `log` is what became of
    a `-wal` or journal; `log_lost` transactions lie behind a damaged place of it. `recovered` sessions were rebuilt,
    `detached` lost their parent, `unpointed` rows their reference, `left_out` rows had no parent left. `not_made` objects
    could not be made again. `unplaced` pages hold rows that could be of several tables; of `uncertain` tables more than one
    order of columns fits. `highest_ids` says whether the ids ever given are known. `doubts` are what SQLite says of old pages
    that seemed whole, `problems` what it says of the new file.
    """

    source: str
    output: str
    size: int
    page_size: int
    page_count: int
    header: str
    schema: str
    shape: str
    log: str
    log_lost: int
    free_list: str
    unread_bytes: int
    tables: tuple[SalvagedTable, ...]
    schema_pages: tuple[int, ...]
    uncertain: tuple[str, ...]
    unplaced: tuple[int, ...]
    not_made: tuple[str, ...]
    search: tuple[str, ...]
    search_problem: str
    recovered: int
    detached: int
    unpointed: Mapping[str, int]
    left_out: Mapping[str, int]
    violations: int
    other_type: Mapping[str, int]
    not_text: Mapping[str, int]
    counters_off: int
    highest_ids: str
    doubts: tuple[str, ...]
    problems: tuple[str, ...]

    @property
    def complete(self) -> bool:
        """Whether everything was read, and every value is one that its column keeps."""
        return (
            all(table.complete for table in self.tables)
            and (self.schema, self.highest_ids) == ("file", "file")
            and not (
                self.log_lost or self.unread_bytes or self.unplaced or self.not_made or self.search_problem
            )
            and not (self.left_out or self.unpointed or self.violations or self.doubts or self.problems)
            and not (self.other_type or self.not_text)
        )

    @property
    def exit_code(self) -> int:
        """0 where everything was read, else 1."""
        return 0 if self.complete else 1


class SalvageDocument(Salvaged, frozen=True, kw_only=True):
    """A salvage as published: what it did, which versions did it, and whether everything was read."""

    format: Literal["hermes-dbtools/salvage"]
    format_version: Literal[1]
    tool: Mapping[str, str]
    everything_read: bool
