"""Sessions name a stored prompt that is not there.

What it means
-------------
`system_prompt_hash` or `tool_names` holds the hash of a row that `system_prompts` does not have. Where the
key is declared (files first made at schema 25 or later), each later write that repeats the hash fails with
`FOREIGN KEY constraint failed`; everywhere the prompt of these sessions is lost.

Why it happens
--------------
`sessions` was restored or merged without `system_prompts`, or a clean-up removed prompts that only
`tool_names` uses.

Repair
------
`null`, the default, lets these sessions name no prompt; upstream writes a new one when they are resumed.
`report` leaves them. If a backup still has the prompts, restoring those rows is worth more than either.

Safety
------
Only the hash is set to NULL, and undo brings it back. Refused while `system_prompts` is empty and more than
half of all sessions would change: then a whole table was lost and should be restored. Where the key is declared,
SQLite refuses to change the hash of a session whose parent row is missing too: those are a finding of their own,
refused until the parent is mended. Hashes are printed by their first 12 characters, and a value that is no hash
not at all.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import groupby

from ...model import Finding, Remedy, Safety, Severity, Statement, Value
from ...sizes import counted
from .._declare import ScanContext, declare, whole
from ._adoption import identity
from ._hashes import named_hash

Group = tuple[str, str, Value, bool, tuple[Value, ...]]
"""Block, column, missing hash, whether the sessions' parents are missing too, and the sessions."""

COLUMNS = (("prompts", "system_prompt_hash"), ("tools", "tool_names"))
PARENT_MISSING = (
    "the parent row of these sessions is missing too: run repair again when missing-parent-session is mended"
)
TABLE_LOST = "system_prompts is empty and most sessions name a prompt: restore the table from a backup first"


def _find(context: ScanContext) -> Iterator[Finding]:
    groups = [
        (block, column, prompt, under, sessions)
        for block, column in COLUMNS
        for prompt, under, sessions in _missing(context, block)
    ]
    if not groups:
        return
    ((total, any_prompt),) = DAMAGE.rows(context, "totals")
    changed = {session for *_, sessions in groups for session in sessions}
    lost = TABLE_LOST if not any_prompt and 2 * len(changed) > whole(total) else None
    for block, column, prompt, under, sessions in groups:
        key = f"{column} {_shown(prompt)}{' under a missing parent' if under else ''}"
        refused = lost or (PARENT_MISSING if under else None)
        step = DAMAGE.step(
            key=key,
            answer="null",
            title=f"empty {column} of {counted(len(sessions), 'session')}: no prompt {_shown(prompt)}",
            statements=(_null(block, prompt, sessions, _kept(groups, column, prompt)),),
            session_ids=sessions,
        )
        yield DAMAGE.finding(
            table="sessions",
            key=key,
            kind=column,
            message=f"{column} of {counted(len(sessions), 'session')} names a missing prompt",
            evidence={"sessions": len(sessions), "hash": _shown(prompt), "prompts_stored": bool(any_prompt)},
            session_ids=sessions,
            remedies=(
                Remedy("null", Safety.EXACT, None if refused else step, refused),
                Remedy("report", Safety.EXACT),
            ),
        )


def _missing(context: ScanContext, block: str) -> Iterator[tuple[Value, bool, tuple[Value, ...]]]:
    declared = any(
        key.columns == ("system_prompt_hash",) for key in context.shape.tables["sessions"].foreign_keys
    )
    rows = [
        (identity(row[0], row[1]), bool(row[4]) and declared and block == "prompts", identity(row[2], row[3]))
        for row in DAMAGE.rows(context, block)
    ]
    for prompt, group in groupby(rows, key=lambda row: row[0]):
        of_prompt = list(group)
        for under in (False, True):
            if sessions := tuple(
                session for _prompt, parentless, session in of_prompt if parentless is under
            ):
                yield prompt, under, sessions


def _kept(groups: list[Group], column: str, prompt: Value) -> tuple[Value, ...]:
    """Sessions that name the same prompt and must not be changed with the others."""
    return next((group[4] for group in groups if group[1:4] == (column, prompt, True)), ())


def _null(block: str, prompt: Value, sessions: tuple[Value, ...], kept: tuple[Value, ...]) -> Statement:
    raw = [one if isinstance(one, bytes) else str(one).encode("utf-8", "surrogatepass") for one in kept]
    bindings = {"hash": prompt, "kept": json.dumps([one.hex().upper() for one in raw])}
    return Statement(f"null-{block}", bindings, len(sessions), "sessions", "update")


def _shown(prompt: Value) -> str:
    """The beginning of a hash; of anything else only that it is none and a digest."""
    name = named_hash(prompt)
    return name if name.startswith("not-a-hash:") else name[:12]


DAMAGE = declare(
    __name__,
    __doc__,
    code="HDB204",
    severity=Severity.ERROR,
    safety=Safety.CHOICE,
    answers=("null", "report"),
    needs=("system_prompts.hash", "sessions.system_prompt_hash"),
    reads=("sessions", "system_prompts"),
    noun=("missing prompt", "missing prompts"),
    sums=(("sessions", "sessions"),),
    extent="session",
    find=_find,
)
