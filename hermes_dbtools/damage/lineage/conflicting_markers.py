"""The markers of a session contradict each other, its parent, or its chat

What it means
-------------
One of three kinds. `two-markers`: a session says of itself that it is a branch, and also a sub-agent's run, or a
reset; lists hide it for the one though they would show it for the other, and a delete of the session that the delegate
marker names takes it along. `differs-from-parent`: the marker names another session than the one it hangs
under. `delegate-in-chat`: a session with the key of a chat is marked as a sub-agent's run, so no list shows the chat.

Why it happens
--------------
A branch that copied its configuration kept the delegate marker of the session it left (in a public report such a
branch was destroyed with its parent). A chat's successor was taken for a sub-agent after its predecessor was reaped as
orphaned (in another report a live chat of 825 messages disappeared from every list). Scripts that patch markers.

Repair
------
Only reported unless asked. `keep` keeps the marker that names the parent and takes the other one out, here and in the
continuations that inherited both.

Safety
------
Choice; undo puts the marker back. `keep` is refused where no marker, or more than one, names the parent: then
nothing tells which is right. Not reported: a marker that the parent has too, which a compression handed
down; branch and reset marker of the same session, which a reopened parent leaves; a marker whose session is gone
(branched-root-leftovers, orphaned-delegates), but for a branch that inherited it; the mark `__orphaned__` by itself
(hidden-by-upgrade); a parent that is gone (missing-parent-session); a
session in a loop (lineage-cycles).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ...cycles import cyclic_sessions
from ...model import Finding, Remedy, Safety, Severity, Statement, Value
from .._declare import ScanContext, declare, printable, text

BRANCH, DELEGATE, RESET = "_branched_from", "_delegate_from", "_reset_from"
NAMES = (BRANCH, DELEGATE, RESET)
ORPHANED = "__orphaned__"


@dataclass(frozen=True, slots=True)
class _Marked:
    """A session with its markers: what each names, which of these are there, which the parent has too."""

    id: Value
    parent: Value
    named: dict[str, Value]
    there: frozenset[str]
    inherited: frozenset[str]
    continues: bool
    subagent: bool
    keyed: bool

    @property
    def heir(self) -> bool:
        """Whether all its markers came from the session it continues."""
        return self.continues and self.inherited >= self.named.keys()


def _find(context: ScanContext) -> Iterator[Finding]:
    marked = [_marked(row) for row in DAMAGE.rows(context, "find")]
    heirs: dict[Value, list[_Marked]] = {}
    for one in marked:
        if one.heir:
            heirs.setdefault(one.parent, []).append(one)
    looped = cyclic_sessions(context.connection, context.has) if marked else {}
    for one in marked:
        kind = _kind(one)
        if kind and one.id not in looped:
            yield _finding(one, kind, _heirs(one, heirs))


def _marked(row: tuple[Value, ...]) -> _Marked:
    named = {name: text(value) for name, value in zip(NAMES, row[2:5], strict=True) if value is not None}
    there = {name for name, value in zip(NAMES, row[5:8], strict=True) if value}
    inherited = {name for name, value in zip(NAMES, row[8:11], strict=True) if value}
    return _Marked(
        text(row[0]), text(row[1]), named, frozenset(there), frozenset(inherited), *map(bool, row[11:])
    )


def _kind(one: _Marked) -> str:
    """What contradicts what in this session, or '' where nothing does or another class says it."""
    gone = one.named.keys() - one.there
    if one.heir or gone & {BRANCH, RESET} or (gone and BRANCH not in one.named and _target(one) != ORPHANED):
        return ""
    if len(one.named) > 1:
        same = one.named.keys() == {BRANCH, RESET} and one.named[BRANCH] == one.named[RESET]
        return "" if same else "two-markers"
    ((name, value),) = one.named.items()
    if value == ORPHANED:
        return ""
    if one.parent is not None and value != one.parent:
        return "" if name in one.inherited else "differs-from-parent"
    return "delegate-in-chat" if name == DELEGATE and one.keyed and not one.subagent else ""


def _target(one: _Marked) -> Value:
    return one.named.get(DELEGATE)


def _heirs(one: _Marked, heirs: dict[Value, list[_Marked]]) -> list[_Marked]:
    """The continuations that inherited all the markers of a session, through any number of compressions."""
    found: list[_Marked] = []
    seen, waiting = {one.id}, [one.id]
    while waiting:
        for heir in heirs.get(waiting.pop(), ()):
            if heir.id not in seen and heir.named == one.named:
                seen.add(heir.id)
                found.append(heir)
                waiting.append(heir.id)
    return found


def _finding(one: _Marked, kind: str, heirs: list[_Marked]) -> Finding:
    return DAMAGE.finding(
        table="sessions",
        key=one.id,
        kind=kind,
        message=_MESSAGES[kind],
        evidence={
            "parent_session_id": None if one.parent is None else printable(one.parent),
            "markers": {name: printable(value) for name, value in one.named.items()},
            "continuations": len(heirs),
        },
        session_ids=(one.id, *(heir.id for heir in heirs)),
        remedies=(Remedy("report", Safety.CHOICE), _keep(one, kind, heirs)),
    )


_MESSAGES = {
    "two-markers": "it is marked as two things at once; lists and deletes follow the one that hides it",
    "differs-from-parent": "its marker names another session than its parent",
    "delegate-in-chat": "it belongs to a chat and is marked as a sub-agent's run: no list shows it",
}


def _keep(one: _Marked, kind: str, heirs: list[_Marked]) -> Remedy:
    right = [name for name, value in one.named.items() if value == one.parent]
    if kind != "two-markers" or len(right) != 1:
        several = "more than one of its markers names" if len(right) > 1 else "none of its markers names"
        why = "its only marker is in question" if kind == "delegate-in-chat" else f"{several} its parent"
        return Remedy("keep", Safety.CHOICE, refused=f"{why}: the runbook says what to look at")
    wrong = [(name, value) for name, value in one.named.items() if name != right[0]]
    statements = tuple(
        Statement("strip", {"session_id": each.id, "marker": name, "named": value}, 1, "sessions", "update")
        for each in (one, *heirs)
        for name, value in wrong
    )
    taken = " and ".join(name for name, _value in wrong)
    also = f", in {len(heirs)} continuations too" if heirs else ""
    step = DAMAGE.step(
        key=one.id,
        answer="keep",
        title=f"keep {right[0]} of {printable(one.id)}, take {taken} out{also}",
        statements=statements,
        session_ids=(one.id, *(heir.id for heir in heirs)),
    )
    return Remedy("keep", Safety.CHOICE, step)


DAMAGE = declare(
    __name__,
    __doc__,
    code="HDB304",
    severity=Severity.WARNING,
    safety=Safety.CHOICE,
    answers=("report", "keep"),
    reads=("sessions",),
    cedes_to=("HDB202", "HDB302", "HDB303"),
    noun=("session", "sessions"),
    find=_find,
)
