"""Decide what each full-text index needs when rows of messages change; writes nothing but temp tables.

An index is left alone where the store will refill it anyway. Else its entries are taken out and brought in
one by one, unless one cannot be explained or a refill of the whole index costs less.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

import apsw

from .model import Refused
from .search_definition import SearchIndex, definitions
from .search_entries import KnownRule, find, list_entries, rule_of_new_rows
from .search_sql import names, run
from .shape import Shape

Mode = Literal["none", "suspend", "touch", "rebuild"]

ROW_BYTES = 32
"""What one entry costs beside its text, in bytes of text: 20-byte rows came in at 1.4 µs,
500-byte ones at 14.5 µs."""

REMOVAL_COST = {"trigram": 1.0, "trigram until NUL": 1.3}
"""Cost of taking out one byte, in refills of one
byte. Measured with SQLite 3.54.1 on rows of 20 to 5,000 bytes: trigram 230-270 ns in, 230-280 ns out in
both layouts (0.95-1.09); with the tokenizer in Python 310-340 ns out."""

WORD_REMOVAL_COST = 1.5
"""The same for tokenizers of words: unicode61 23-31 ns in, 31-50 ns out (inline
1.1-1.7, external 1.35-1.5)."""

NO_MARK = -1


@dataclass(frozen=True, slots=True)
class IndexUpkeep:
    """What happens to one index. `suspend`: its triggers stand aside and nothing else.

    `rule` is how its NUL rows came in and `reason` why the mode was taken. `gap` are the ids (above, up to)
    that a refill in progress will bring; `head_mark` is the id above which answers of tools are cut.
    """

    index: SearchIndex
    mode: Mode
    reason: str
    rule: KnownRule = ""
    tokenizer: bool = False
    gap: tuple[int, int] = (0, 0)
    head_mark: int = NO_MARK
    settings: tuple[tuple[str, Any], ...] = ()

    @property
    def stopped(self) -> bool:
        """Whether texts come in up to their first NUL byte."""
        return self.index.trigram and self.rule == "stops"


@dataclass(frozen=True, slots=True)
class Upkeep:
    """What one change of messages needs for its indexes."""

    indexes: tuple[IndexUpkeep, ...]
    default_rule: KnownRule = "stops"
    remade: tuple[str, ...] = ()
    """Indexes that steps of the plan itself made anew."""

    @property
    def mode(self) -> Mode:
        """The farthest that any index goes."""
        order: tuple[Mode, ...] = ("rebuild", "touch", "suspend")
        return next((mode for mode in order if any(item.mode == mode for item in self.indexes)), "none")

    @property
    def rebuilt(self) -> tuple[str, ...]:
        """The names of the indexes that are made anew."""
        return tuple(sorted({*self.remade, *(i.index.name for i in self.indexes if i.mode == "rebuild")}))

    @property
    def needs_tokenizer(self) -> bool:
        """Whether `register_tokenizer` has something to do."""
        return any(item.tokenizer for item in self.indexes)


class _Weights:
    """Bytes of messages, each sum read once. State: the sums of one decision, whose touched messages stay the same."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection
        self._by_rows: dict[int, int] = {}
        self._all: int | None = None

    def touched(self, index: str) -> tuple[int, int]:
        """How many touched entries an index holds and the bytes of their messages."""
        ((rows, touched),) = run(self._connection, "entry_count", {"index": index})
        if rows != touched:
            ((size,),) = run(self._connection, "entry_bytes", {"index": index})
            return int(rows), int(size)
        # Every touched message has its entry, as in the other index: the sum is the same.
        if rows not in self._by_rows:
            self._by_rows[rows] = int(run(self._connection, "entry_bytes", {"index": index})[0][0])
        return int(rows), self._by_rows[rows]

    def all_bytes(self) -> int:
        """The bytes of every message."""
        if self._all is None:
            self._all = int(run(self._connection, "total_bytes")[0][0])
        return self._all


def decide(connection: apsw.Connection, shape: Shape, *, default_rule: KnownRule = "stops") -> Upkeep:
    """Say what the change of the messages in `temp.touched_messages` needs; an empty table means `suspend`.

    Touched are messages that go, come or get another value in a column of `watched_columns`. Messages that
    stay as they are while their session comes, goes or changes belong into `temp.regrouped_messages`, where
    `watched_columns` names sessions: their entries stay too, unless they now belong in or out. `default_rule`
    holds for trigram indexes where no row tells. Only temp tables are written and no index is opened.
    Raises Refused when an index that would have to change cannot be kept right.
    """
    run(connection, "make_entries")
    run(connection, "make_regrouped")
    touched, regrouped = run(connection, "touched")[0]
    weights = _Weights(connection)
    items = [
        _decide(connection, index, touched or (regrouped and index.reads_view), default_rule, weights)
        for index in definitions(shape)
    ]
    if sum(item.index.trigram for item in items) > 1:
        reason = "the tokenizer would serve every trigram index of the connection"
        items = [
            rebuilt_anew(connection, item, reason, default_rule) if item.tokenizer else item for item in items
        ]
    return Upkeep(tuple(items), default_rule)


def _decide(
    connection: apsw.Connection,
    index: SearchIndex,
    touched: object,
    default_rule: KnownRule,
    weights: _Weights,
) -> IndexUpkeep:
    if not touched:
        return IndexUpkeep(index, "suspend", "no entry changes")
    if index.missing_triggers:
        return IndexUpkeep(index, "suspend", "its triggers are missing: the store refills it")
    if _mark(connection, index.stale_mark) is not None:
        return IndexUpkeep(index, "suspend", "it is marked stale: the store refills it")
    if not connection.fts5_tokenizer_available(index.tokenizer):
        raise Refused(
            f"the search index {index.name} needs the tokenizer {index.tokenizer}, which is not here"
        )
    if index.unknown:
        raise Refused(f"the search index {index.name} cannot be kept right: {index.unknown}")
    item = _with_marks(connection, IndexUpkeep(index, "touch", "less changes than stays"))
    list_entries(connection, index)
    if _refill_is_cheaper(connection, item, weights):
        # Before any touched text is read for what it tells: it may be nearly all of the file.
        return rebuilt_anew(connection, item, "less stays than changes", default_rule)
    evidence = find(connection, index, item.head_mark)
    item = replace(item, rule=evidence.rule, tokenizer=index.inline and evidence.stopped)
    if evidence.doubt:
        return rebuilt_anew(connection, item, evidence.doubt, default_rule)
    if item.tokenizer and _refill_is_cheaper(connection, item, weights):
        return rebuilt_anew(connection, item, "less stays than changes", default_rule)
    return item


def _with_marks(connection: apsw.Connection, item: IndexUpkeep) -> IndexUpkeep:
    high_water, progress = (_mark(connection, key) if key else None for key in item.index.gap_marks)
    if high_water is not None:
        item = replace(item, gap=(NO_MARK if progress is None else progress, high_water))
    head_mark = _mark(connection, item.index.head_mark) if item.index.head_mark else None
    return item if head_mark is None else replace(item, head_mark=head_mark)


def _mark(connection: apsw.Connection, key: str) -> int | None:
    """The number a mark of `state_meta` holds (0 for other text), None where it is not set."""
    return next((int(number or 0) for (number,) in run(connection, "mark", {"key": key})), None)


def rebuilt_anew(
    connection: apsw.Connection, item: IndexUpkeep, reason: str, default_rule: KnownRule
) -> IndexUpkeep:
    """The same index made anew: what only its old rows tell is asked now."""
    rule = item.rule
    if item.index.trigram and not rule:
        rule = rule_of_new_rows(connection, item.index) or default_rule
    settings = tuple((name, value) for name, value in run(connection, "settings", parts=names(item.index)))
    return replace(item, mode="rebuild", reason=reason, rule=rule, tokenizer=False, settings=settings)


def _refill_is_cheaper(connection: apsw.Connection, item: IndexUpkeep, weights: _Weights) -> bool:
    """Compare a removal through the index with a refill of what stays; what comes costs the same in
    both."""
    kind = "trigram until NUL" if item.tokenizer else item.index.tokenizer
    rows, size = weights.touched(item.index.name)
    removal = REMOVAL_COST.get(kind, WORD_REMOVAL_COST) * (size + rows * ROW_BYTES)
    stay = (run(connection, "entry_total", parts=names(item.index))[0][0] - rows) * ROW_BYTES
    if removal <= stay:  # true for a handful of rows, and spares reading the whole table to know it
        return False
    return bool(removal > stay + max(weights.all_bytes() - size, 0))


def with_rule_of_new_rows(
    connection: apsw.Connection, item: IndexUpkeep, default_rule: KnownRule
) -> IndexUpkeep:
    """The item with a rule for coming NUL rows: that of the newest rows of the file, if any told."""
    if not item.index.trigram or item.rule or not run(connection, "new_nul_rows")[0][0]:
        return item
    return replace(item, rule=rule_of_new_rows(connection, item.index) or default_rule)
