"""Find the place of every message that a transcript adds to a session; makes no step and writes nothing.

Where messages are left, what only the transcript tells gets ids between theirs, for the store reads a session
in the order of ids: those of lost rows are never given again, so they are free. Where there are not enough, the
messages that are left move behind, with all that they hold.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from ...model import Value
from ...transcript_merge import merge
from ...transcript_messages import Message, identity
from ...transcripts import Transcript
from .._declare import Planner, ScanContext, whole


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


def last_id(planner: Planner, context: ScanContext) -> int:
    """The highest message id that was ever given."""
    ((last,),) = planner.rows(context, "last-id")
    return whole(last)


def _word(value: Value) -> str | None:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else None
