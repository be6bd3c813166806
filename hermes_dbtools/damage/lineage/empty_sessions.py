"""A session holds nothing, and nothing needs it

What it means
-------------
The session has no title, no message of any state, no usage, no child and no file, it has ended or was never used for a
month, and nothing in the store names it. Lists show a row that opens as nothing.

Why it happens
--------------
A front end made a row before anything was said, and was closed: in a public report more than half of a day's rows, in
another every sixteenth row of a list, which then could not be opened. Newer releases sweep some of them.

Repair
------
`remove` deletes the row, as upstream's own sweep of empty sessions does, and a stored prompt that no other session
uses. A prompt that several such sessions share is unreferenced-system-prompts afterwards.

Safety
------
Lossy: planned with `--allow-lossy` only, though nothing but a row without content goes, and undo brings it back. Not
empty: a session with messages that were all taken back by a rewind, with a counter above 0 (it may have lost its
messages), with a title, pinned, archived or hidden by its user, or handed over; one that a route, a topic, a lock, a
lease, usage, a goal, settings, a task, an admission, a marker, a tombstone or a row of an unknown table names; one with a
transcript or a request dump. An open one counts only when nothing was done for 30 days: the session that a reset has
just opened is empty, and wanted.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from pathlib import Path

from ... import queries
from ...model import Finding, Remedy, Safety, Severity, Statement, Value
from .._declare import ScanContext, declare, moment, printable, text
from ._activity import idle_since

_NAMED_BY = (
    "kept", "marked", "routed", "bound", "locked", "leased", "used", "delegating", "awaiting", "in-lineage", "in-meta",
)  # fmt: skip
_OWN = frozenset(("sessions", "messages"))
"""Tables whose rows are looked at before: children and messages."""


def _find(context: ScanContext) -> Iterator[Finding]:
    before = idle_since(context)
    if before is None:
        return
    candidates = list(DAMAGE.rows(context, "find", {"before": before}))
    if not candidates:
        return
    needed = _needed(context, before)
    prompts = _own_prompts(context)
    files = _Files.of(context.home.sessions_dir if context.home is not None else None)
    for session, started, ended in candidates:
        session_id = text(session)
        if session_id in needed or session_id in context.live or files.name(session_id):
            continue
        yield DAMAGE.finding(
            table="sessions",
            key=session_id,
            message=f"it holds nothing, and {'has ended' if ended else 'was never used'}",
            evidence={"started_at": moment(started), "ended": bool(ended)},
            session_ids=(session_id,),
            remedies=(_remove(session_id, prompts.get(session_id, [])),),
        )


def _needed(context: ScanContext, before: float) -> set[Value]:
    """Every session that something names."""
    bindings: dict[str, dict[str, Value]] = {"kept": {"before": before}}
    found = {text(row[0]) for block in _NAMED_BY for row in DAMAGE.rows(context, block, bindings.get(block))}
    template = next(query.sql for query in queries.load(DAMAGE.sql) if query.name == "naming")
    for name in context.shape.canonical_tables:
        for key in context.shape.tables[name].foreign_keys:
            if key.parent.lower() == "sessions" and name not in _OWN and len(key.columns) == 1:
                sql = queries.fill(template, table=name, column=key.columns[0])
                found.update(text(row[0]) for row in context.connection.execute(sql))
    return found


class _Files:
    """The names in the folder of transcripts and request dumps."""

    def __init__(self, names: list[str]) -> None:
        self._names = sorted(names)
        self._known = frozenset(names)

    @classmethod
    def of(cls, folder: Path | None) -> _Files:
        """The names in a folder, none where there is no folder. OSError where it cannot be read passes through."""
        if folder is None:
            return cls([])
        try:
            return cls([path.name for path in folder.iterdir()])
        except (FileNotFoundError, NotADirectoryError):
            return cls([])

    def name(self, session_id: Value) -> bool:
        """Whether a file belongs to this session."""
        if not isinstance(session_id, str):
            return False
        if {f"{session_id}.json", f"{session_id}.jsonl", f"session_{session_id}.json"} & self._known:
            return True
        prefix = f"request_dump_{session_id}_"
        place = bisect_left(self._names, prefix)
        return place < len(self._names) and self._names[place].startswith(prefix)


def _own_prompts(context: ScanContext) -> dict[Value, list[Value]]:
    """The digests of the stored prompts that one session uses alone, by that session."""
    found: dict[Value, list[Value]] = {}
    for session, prompt in DAMAGE.rows(context, "prompts"):
        found.setdefault(text(session), []).append(text(prompt))
    return found


def _remove(session_id: Value, prompts: list[Value]) -> Remedy:
    statements = [Statement("remove", {"session_id": session_id}, 1, "sessions", "delete")]
    for prompt in prompts:
        statements.append(Statement("remove-prompt", {"hash": prompt}, 1, "system_prompts", "delete"))
    step = DAMAGE.step(
        key=session_id,
        answer="remove",
        title=f"remove the empty session {printable(session_id)}",
        statements=tuple(statements),
        session_ids=(session_id,),
    )
    return Remedy("remove", Safety.LOSSY, step)


DAMAGE = declare(
    __name__,
    __doc__,
    code="HDB313",
    severity=Severity.NOTE,
    safety=Safety.LOSSY,
    answers=("remove",),
    reads=(
        "async_delegations", "compression_locks", "gateway_routing", "messages", "session_admissions",
        "session_model_usage", "session_turn_leases", "sessions", "state_meta", "system_prompts", "telegram_dm_topic_bindings",
    ),
    cedes_to=("HDB202", "HDB310", "HDB312"),
    noun=("session", "sessions"),
    find=_find,
)  # fmt: skip
