"""Make the step that gives a lost session its row and its whole transcript again; decides not whether it should."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import fields

from ... import queries
from ...model import Remedy, Safety, Statement, Step, Value
from ...sizes import counted
from ...transcript_messages import Message
from ...transcripts import Transcript
from .._declare import Planner, ScanContext, printable, text
from ..references._orphans import Child, Orphan
from ..references._provenance import MACHINE_SOURCES, Provenance
from ._places import Rebuilt

COLUMNS = tuple(column.name for column in fields(Message) if column.name != "identity")

LATELY = 900.0
"""Seconds for which a transcript is taken for one that is still written, while another process has the store open."""


def tell(planner: Planner, context: ScanContext, sessions: Sequence[Rebuilt]) -> None:
    """Put what the transcripts add where the steps take it from; no table of the file is written."""
    for name in ("told-table", "forget-told", "moved-table", "forget-moved"):
        context.connection.execute(queries.statement(planner.sql, name))
    rows = (
        {"id": key, "session_id": session.id} | {name: getattr(message, name) for name in COLUMNS}
        for session in sessions
        for key, message in session.added
    )
    context.connection.executemany(queries.statement(planner.sql, "tell"), rows)
    moves = (
        {"id": old, "new_id": new, "session_id": session.id}
        for session in sessions
        for old, new in session.moved
    )
    context.connection.executemany(queries.statement(planner.sql, "move"), moves)


def children_of(planner: Planner, context: ScanContext, session_id: str) -> tuple[Child, ...]:
    """The sessions that name it as their parent."""
    return tuple(
        Child(
            text(child), bool(helper), float(start) if isinstance(start, int | float) else None, bool(marked)
        )
        for child, helper, start, marked in planner.rows(context, "children", {"id": session_id})
    )


def refusal(context: ScanContext, transcript: Transcript | None) -> str:
    """Why the transcript must not be used now, or ''."""
    if transcript is None or not context.file.holders.held:
        return ""
    newest = max(file.written_at for file in transcript.files)
    if context.now - newest > LATELY:
        return ""
    return (
        "its transcript was written to lately while another process has the store open: its agent may heal it"
    )


def remedy(
    planner: Planner,
    context: ScanContext,
    session: Rebuilt,
    transcript: Transcript | None,
    origins: Provenance,
) -> Remedy:
    """The answer `rebuild`, or why it cannot be given."""
    if reason := refusal(context, transcript):
        return Remedy("rebuild", Safety.EXACT, refused=reason)
    return Remedy("rebuild", Safety.EXACT, _step(planner, context, session, transcript, origins))


def _step(
    planner: Planner,
    context: ScanContext,
    session: Rebuilt,
    transcript: Transcript | None,
    origins: Provenance,
) -> Step:
    children = children_of(planner, context, session.id)
    moments = session.moments
    started = transcript.started_at if transcript is not None else None
    first = min((*moments, *(() if started is None else (started,))), default=None)
    last = max(moments, default=first)
    family = Orphan(session.id, False, 0, 0, 0, 0, 0, first, last, None, None, children)
    messages, calls = session.counters
    parent = _parent(planner, context, transcript, first)
    after = family.continuation
    row: Mapping[str, Value] = {
        "id": session.id,
        "source": source_of(session.id, transcript, origins),
        "parent": parent,
        "started_at": first,
        "ended_at": after.started_at if after else None,
        "end_reason": "compression" if after else None,
        "message_count": messages,
        "tool_call_count": calls,
        "profile_name": context.home.profile if context.home else None,
        "last_activity_at": last,
    }
    statements = [Statement("rebuild-session", row, 1, "sessions", "insert")]
    if session.moved:
        # Declared as rows that come: they do, under their new ids, and so into the search indexes.
        count = len(session.moved)
        statements.append(
            Statement("move-messages", {"id": session.id}, count, "messages", "insert", split="move-rows")
        )
    if session.added:
        told = {"id": session.id, "transcript": _digest(session)}
        size = len(session.added)
        statements.append(
            Statement("rebuild-messages", told, size, "messages", "insert", split="rebuild-rows")
        )
    strays = family.strays
    statements += [
        Statement("detach-child", {"id": session.id, "child": child.id}, 1, "sessions", "update")
        for child in strays
    ]
    title = f"rebuild session {printable(session.id)}: {counted(len(session.added), 'message')} from its transcript"
    if session.survivors:
        title += f", {counted(len(session.survivors), 'message')} that are left"
    if strays:
        title += f", detach {counted(len(strays), 'child session')}"
    ids = (session.id, *(child.id for child in children), *(() if parent is None else (parent,)))
    return Step(planner.code, planner.slug, session.id, "rebuild", title, ids, tuple(statements))


def source_of(session_id: str, transcript: Transcript | None, origins: Provenance) -> str:
    """The platform that routing or the transcript proves, else `recovered`."""
    proved = Provenance({key: set(words) for key, words in origins.platforms.items()})
    if transcript is not None and transcript.source not in MACHINE_SOURCES:
        proved.add(session_id, transcript.source)
    return proved.source(session_id)


def _parent(
    planner: Planner, context: ScanContext, transcript: Transcript | None, started_at: float | None
) -> str | None:
    if transcript is None or not transcript.parent:
        return None
    bindings: Mapping[str, Value] = {"parent": transcript.parent, "started_at": started_at}
    return transcript.parent if list(planner.rows(context, "parent", bindings)) else None


def _digest(session: Rebuilt) -> str:
    """What is added, as one word: a transcript that was changed since makes another step."""
    digest = hashlib.sha256()
    for _key, message in session.added:
        digest.update(repr(message).encode())
    return digest.hexdigest()
