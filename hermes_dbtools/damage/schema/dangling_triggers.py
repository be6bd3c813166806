"""A trigger cannot run, for what it works on is gone

What it means
-------------
SQLite compiles the triggers of a table together with each statement that fires them. Where a trigger names a table or a
function that does not exist, every such statement fails: with a trigger of `messages`, no message can be saved or deleted,
while everything can still be read and every check of the file says it is well.

Why it happens
--------------
A search index or a helper table was dropped and its triggers were not: an upgrade that stopped between both, a recovery that
carries tables over and leaves virtual ones behind, a plugin that was removed. Public reports tell of interrupted moves of
the search index after which each opening fails.

Repair
------
The trigger is dropped. Where it fed a search index, Hermes makes index and triggers anew at its next start. Undo brings the
trigger back, byte for byte.

Safety
------
Exact, and only while nobody else has the file open. The engine itself says what cannot be compiled, each trigger by itself,
on an empty copy of the tables in memory. A trigger that lacks a function is only dropped when chosen, for the program that
made it may bring the function along; so is one that lacks a column. A trigger of an index whose tokenizer is missing is
unavailable-tokenizer, one of an index of which tables are left search-shadow-leftovers.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...known import SEARCH_TABLES
from ...model import Finding, Remedy, Safety, Severity, Statement
from ...search_layouts import parts, wanted
from .._declare import ScanContext, declare
from ._stand_in import Dangling, dangling_triggers

HELD = "others have the file open and go by its triggers: stop them first"

WORDS = {"missing-table": "table", "missing-function": "function", "missing-column": "column"}


def _find(context: ScanContext) -> Iterator[Finding]:
    refused = HELD if context.file.holders.held else None
    for dangling in dangling_triggers(context.connection, context.shape):
        if not _of_an_index_to_be_made_anew(context, dangling):
            yield _finding(dangling, refused)


def _of_an_index_to_be_made_anew(context: ScanContext, dangling: Dangling) -> bool:
    """Whether it feeds a search index of which tables are left: with that index, made anew, it works again (HDB803)."""
    if dangling.kind != "missing-table" or dangling.lacks not in SEARCH_TABLES:
        return False
    index = wanted(context.shape, dangling.lacks).index
    return (
        bool(parts(context.shape, dangling.lacks))
        and index is not None
        and context.connection.fts5_tokenizer_available(index.tokenizer)
    )


def _finding(dangling: Dangling, refused: str | None) -> Finding:
    trigger = dangling.trigger
    step = DAMAGE.step(
        key=trigger.name,
        answer="drop",
        title=f"drop the trigger {trigger.name} of {trigger.table}",
        statements=(Statement("drop", {}, 0, trigger.table, "drop", names={"trigger": trigger.name}),),
        session_ids=(),
    )
    drop = Remedy("drop", Safety.EXACT, None if refused else step, refused)
    report = Remedy("report", Safety.MANUAL)
    return DAMAGE.finding(
        table=trigger.table,
        key=trigger.name,
        kind=dangling.kind,
        message=f"the {WORDS[dangling.kind]} {dangling.lacks} is gone: statements on {trigger.table} that fire it fail",
        evidence={"trigger": trigger.name, "lacks": dangling.lacks},
        remedies=(drop, report) if dangling.kind == "missing-table" else (report, drop),
    )


DAMAGE = declare(
    __name__,
    __doc__,
    code="HDB107",
    severity=Severity.ERROR,
    safety=Safety.EXACT,
    answers=("drop", "report"),
    noun=("trigger", "triggers"),
    find=_find,
)
