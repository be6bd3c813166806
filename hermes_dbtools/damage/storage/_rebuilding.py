"""Make the step that gives a lost session its row and its whole transcript again; decides not whether it should.

Where messages are left, what only the transcript tells gets ids between theirs, for the store reads a session
in the order of ids: those of lost rows are never given again, so they are free. Where there are not enough, the
messages that are left move behind, with all that they hold.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace

from ... import queries
from ...model import Remedy, Safety, Statement, Step, Value
from ...transcript_merge import merge
from ...transcript_messages import Message, identity
from ...transcripts import Transcript
from .._declare import Planner, ScanContext, printable, text, whole
from ..references._orphans import Child, Orphan
from ..references._provenance import MACHINE_SOURCES, Provenance
from ..references._words import counted

COLUMNS = tuple(column.name for column in fields(Message) if column.name != "identity")

LATELY = 900.0
"""Seconds for which a transcript is taken for one that is still written, while another process has the store open."""


@dataclass(frozen=True, slots=True)
class Survivor:
    """A message that is left in the store."""

    id: int
    role: str
    identity: bytes
    calls: int
    timestamp: float | None
    active: bool


@dataclass(frozen=True, slots=True)
class Rebuilt:
    """The whole of one session: what is left, what the transcript adds and under which ids.

    `moved` are (id, new id) of messages that are left and have no room before them.
    """

    id: str
    survivors: tuple[Survivor, ...]
    added: tuple[tuple[int, Message], ...]
    moved: tuple[tuple[int, int], ...] = ()

    @property
    def moments(self) -> tuple[float, ...]:
        """Every time that is known."""
        told = (*(s.timestamp for s in self.survivors), *(m.timestamp for _id, m in self.added))
        return tuple(moment for moment in told if moment is not None)

    @property
    def counters(self) -> tuple[int, int]:
        """Messages and calls of tools, of the active ones, or of all where none is."""
        rows = [(s.active, s.calls) for s in self.survivors]
        rows += [(bool(message.active), message.calls) for _id, message in self.added]
        counted_rows = [calls for active, calls in rows if active] or [calls for _active, calls in rows]
        return len(counted_rows), sum(counted_rows)


def survivors_of(planner: Planner, context: ScanContext, session_id: str) -> tuple[Survivor, ...]:
    """The messages that are left of a session, in order."""
    found = []
    for key, role, content, call_id, calls, moment, active in planner.rows(
        context, "survivors", {"id": session_id}
    ):
        words = _word(role), _word(content), _word(call_id), _word(calls)
        told = Message(words[0] or "", words[1], tool_calls=words[3])
        same = identity(words[0] or "", *words[1:])
        at = float(moment) if isinstance(moment, int | float) else None
        found.append(Survivor(whole(key), words[0] or "", same, told.calls, at, bool(active)))
    return tuple(found)


def rebuilt(
    planner: Planner,
    context: ScanContext,
    session_id: str,
    transcript: Transcript | None,
    survivors: tuple[Survivor, ...],
    after: int,
) -> Rebuilt:
    """The session whole again. `after` is the highest message id that is given already."""
    told = transcript.messages if transcript is not None else ()
    groups = _groups(merge(survivors, told), told, len(survivors))
    added: list[tuple[int, Message]] = []
    moved: list[tuple[int, int]] = []
    floor = 0
    for survivor, group in zip(survivors, groups, strict=False):
        places = [] if moved else _free(planner, context, floor, survivor.id, len(group))
        if not moved and len(places) == len(group):
            added += zip(places, group, strict=True)
            floor = survivor.id
            continue
        added += ((after + number, message) for number, message in enumerate(group, start=1))
        after += len(group) + 1
        moved.append((survivor.id, after))
    added += ((after + number, message) for number, message in enumerate(groups[-1], start=1))
    now_at = dict(moved)
    standing = tuple(replace(one, id=now_at.get(one.id, one.id)) for one in survivors)
    return Rebuilt(session_id, survivors, tuple(_timed(added, standing, transcript)), tuple(moved))


def _groups(
    order: Iterable[tuple[int, int]], told: tuple[Message, ...], survivors: int
) -> list[list[Message]]:
    """The told messages before each survivor, and those after the last."""
    groups: list[list[Message]] = [[] for _ in range(survivors + 1)]
    passed = 0
    for side, place in order:
        if side == 0:
            passed += 1
        else:
            groups[passed].append(told[place])
    return groups


def _free(planner: Planner, context: ScanContext, after: int, before: int, wanted: int) -> list[int]:
    """The highest free ids between two, at most as many as wanted, in order."""
    free: list[int] = []
    place = before
    taken = planner.rows(context, "taken", {"after": after, "before": before}) if wanted else iter(())
    for next_taken in _ids(taken, after):
        while place - 1 > next_taken and len(free) < wanted:
            place -= 1
            free.append(place)
        if len(free) == wanted:
            break
        place = next_taken
    return free[::-1]


def _ids(taken: Iterator[tuple[Value, ...]], last: int) -> Iterator[int]:
    for (key,) in taken:
        yield whole(key)
    yield last


def _timed(
    added: list[tuple[int, Message]], survivors: tuple[Survivor, ...], transcript: Transcript | None
) -> Iterator[tuple[int, Message]]:
    """Every added message with a time that is no earlier than the one before it: snapshots give none."""
    written = min((file.written_at for file in transcript.files), default=0.0) if transcript else 0.0
    started = transcript.started_at if transcript else None
    now = started if started is not None else next(
        (m.timestamp for _id, m in added if m.timestamp is not None), written
    )  # fmt: skip
    left = iter(survivors)
    survivor = next(left, None)
    for key, message in added:
        while survivor is not None and survivor.id < key:
            now = now if survivor.timestamp is None else max(now, survivor.timestamp)
            survivor = next(left, None)
        moment = now if message.timestamp is None else max(now, message.timestamp)
        if survivor is not None and survivor.timestamp is not None:
            moment = min(moment, max(survivor.timestamp, 1.0))
        now = max(now, moment)
        yield key, replace(message, timestamp=moment)


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


def _word(value: Value) -> str | None:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else None


def last_id(planner: Planner, context: ScanContext) -> int:
    """The highest message id that was ever given."""
    ((last,),) = planner.rows(context, "last-id")
    return whole(last)
