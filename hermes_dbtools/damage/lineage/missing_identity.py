"""A part of a conversation does not say whose it is

What it means
-------------
The session has no user, chat, working directory or profile, though the compressed conversation that it continues has one,
or another session of the same chat has. A resume is refused as another user's, files are looked for in the wrong folder,
lists of a profile leave the session out.

Why it happens
--------------
Older releases made the continuation of a compressed session without copying these columns (in a public report continuations
lost their working directory and repository); rows were recreated or imported without them (in other reports 261 sessions
named no chat and could not be resumed, and 798 messages lay in a row without any identity).

Repair
------
Nothing is changed unless it is chosen. `fill` copies the value from the nearest part above that has one of its own.

Safety
------
Choice. Only columns that are NULL are written, only along a chain of continuations of the same source, and never where another
continuation of the same parent has a different value. What only a neighbour has (another continuation, another session of the
same chat) is reported and not copied. Branches, resets and sub-agents may well differ from their parent: they are not reported,
nor is a session of which no relative has the value. No value is printed or kept in a plan, only the ids of rows and the names of
columns.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from ...model import Finding, Remedy, Safety, Severity, Statement, Value
from .._declare import ScanContext, declare, printable, text

COLUMNS = ("user_id", "chat_id", "cwd", "profile_name")

REPORT = Remedy("report", Safety.CHOICE)


@dataclass(frozen=True, slots=True)
class _Part:
    """One session of a compressed conversation: what it continues, and the values of COLUMNS."""

    above: Value
    values: tuple[Value, ...]


@dataclass(slots=True)
class _Parts:
    """All sessions of compressed conversations, and the continuations of each."""

    parts: dict[Value, _Part] = field(default_factory=dict)
    below: dict[Value, list[Value]] = field(default_factory=dict)

    def holder(self, session_id: Value, place: int) -> Value:
        """The nearest part above that has a value of its own in a column; None where none has."""
        seen = set()
        current = self.parts[session_id].above
        while current in self.parts and current not in seen:
            if self.parts[current].values[place]:
                return current
            seen.add(current)
            current = self.parts[current].above
        return None

    def beside(self, session_id: Value, place: int) -> set[Value]:
        """The values that other continuations of the same parent have in a column."""
        above = self.parts[session_id].above
        return {value for one in self.below[above] if (value := self.parts[one].values[place])}


def _find(context: ScanContext) -> Iterator[Finding]:
    parts = _read(context)
    lacking: dict[tuple[Value, int], Finding] = {}
    for session_id, part in parts.parts.items():
        for place, value in enumerate(part.values):
            if part.above is not None and value is None and context.has(f"sessions.{COLUMNS[place]}"):
                found = _continuation(parts, session_id, place)
                if found is not None:
                    lacking[session_id, place] = found
    for session, no_user, no_chat in DAMAGE.rows(context, "chats"):
        for place, lacks in ((0, no_user), (1, no_chat)):
            if lacks and (text(session), place) not in lacking:
                lacking[text(session), place] = _finding(text(session), place, "chat", None, (REPORT,))
    for _key, found in sorted(lacking.items(), key=lambda item: item[1].key):
        yield found


def _read(context: ScanContext) -> _Parts:
    found = _Parts()
    for row in DAMAGE.rows(context, "conversations"):
        session_id, above = text(row[0]), text(row[1])
        found.parts[session_id] = _Part(above, tuple(row[2:]))
        if above is not None:
            found.below.setdefault(above, []).append(session_id)
    return found


def _continuation(parts: _Parts, session_id: Value, place: int) -> Finding | None:
    holder, beside = parts.holder(session_id, place), parts.beside(session_id, place)
    if holder is None:
        return _finding(session_id, place, "neighbour", None, (REPORT,)) if beside else None
    if beside - {parts.parts[holder].values[place]}:
        refused = Remedy(
            "fill", Safety.CHOICE, refused="another continuation of its parent has a different one"
        )
        return _finding(session_id, place, "continuation", holder, (REPORT, refused))
    column = COLUMNS[place]
    bindings = {"session_id": session_id, "holder": holder}
    step = DAMAGE.step(
        key=f"{column}:{printable(session_id)}",
        answer="fill",
        title=f"copy {column} from {printable(holder)} to {printable(session_id)}",
        statements=(Statement(f"fill-{column}", bindings, 1, "sessions", "update"),),
        session_ids=(session_id,),
    )
    return _finding(session_id, place, "continuation", holder, (REPORT, Remedy("fill", Safety.CHOICE, step)))


_WHERE = {
    "continuation": "the conversation that it continues has one",
    "neighbour": "another continuation of its parent has one",
    "chat": "another session of the same chat has one",
}


def _finding(
    session_id: Value, place: int, kind: str, holder: Value, remedies: tuple[Remedy, ...]
) -> Finding:
    column = COLUMNS[place]
    return DAMAGE.finding(
        table="sessions",
        key=f"{column}:{printable(session_id)}",
        kind=kind,
        message=f"no {column}, and {_WHERE[kind]}",
        evidence={
            "session_id": printable(session_id),
            "column": column,
            "from": None if holder is None else printable(holder),
        },
        session_ids=(session_id,),
        remedies=remedies,
    )


DAMAGE = declare(
    __name__,
    __doc__,
    code="HDB317",
    severity=Severity.NOTE,
    safety=Safety.CHOICE,
    answers=("report", "fill"),
    reads=("sessions",),
    noun=("missing value", "missing values"),
    find=_find,
)
