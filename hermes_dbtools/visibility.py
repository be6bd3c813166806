"""Say which sessions upstream's own list shows, under which id, and which rule hides the others; judges nothing.

The rules are those of `SessionDB.list_sessions_rich` with its defaults, in the newest release that has used the
file: a root or a marked child is shown, a compressed conversation as its newest continuation. Callers of that list
may leave out more: the command line leaves out the sources of `HELPERS`, others sessions that count no message.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import StrEnum

import apsw
import msgspec

from . import queries
from .model import Value
from .utf8 import text

FILE = "visibility"

HOPS = 100
"""Links of a compressed conversation that upstream follows from its root (`get_compression_tip`)."""

HELPERS = frozenset(("tool", "kanban", "oneshot"))
"""Sources that the lists of upstream's command line and pickers leave out."""

Has = Callable[[str], bool]


class Rule(StrEnum):
    """Why a session is not in the list."""

    ARCHIVED = "archived"
    HIDDEN = "hidden"
    UNREADABLE_FLAG = "unreadable-flag"
    DELEGATE_MARKER = "delegate-marker"
    MISSING_PARENT = "missing-parent"
    BRANCHED_LATER = "branched-later"
    UNMARKED_CHILD = "unmarked-child"
    OTHER_CONTINUATION = "other-continuation"
    TOO_DEEP = "too-deep"

    @property
    def sentence(self) -> str:
        """The rule in words, with the session as what it speaks of."""
        return _SENTENCES[self]


_SENTENCES = {
    Rule.ARCHIVED: "it is archived",
    Rule.HIDDEN: "it is flagged as hidden",
    Rule.UNREADABLE_FLAG: "archived or hidden is neither 0 nor 1",
    Rule.DELEGATE_MARKER: "its marker says that it is the run of a sub-agent",
    Rule.MISSING_PARENT: "its parent has no row, and no marker says that it is a branch",
    Rule.BRANCHED_LATER: "it started before its parent was branched, and no marker says that it is a branch",
    Rule.UNMARKED_CHILD: "it has a parent, and no marker says that it is a branch",
    Rule.OTHER_CONTINUATION: "the compressed conversation is shown as another continuation",
    Rule.TOO_DEEP: f"its conversation was compressed more than {HOPS} times, and upstream follows it no further",
}


class Standing(msgspec.Struct, frozen=True, gc=False):
    """How one session stands in the list.

    `shown_as` is the id it is shown under, its own or its conversation's tip, and None where it is not; then
    `rules` says why, and `through` names the session above it that the rules are about, where it is not itself.
    """

    shown_as: Value = None
    rules: tuple[Rule, ...] = ()
    through: Value = None

    @property
    def shown(self) -> bool:
        """Whether its conversation is in the list."""
        return self.shown_as is not None


class _Row(msgspec.Struct, frozen=True, gc=False):
    """One session: its parent, why it is no root of the list, and all rules of its own."""

    parent: Value
    child: str
    rules: tuple[Rule, ...]
    compressed: bool


_CHILD_RULES = {
    "missing": Rule.MISSING_PARENT,
    "later": Rule.BRANCHED_LATER,
    "other": Rule.UNMARKED_CHILD,
    "compressed": Rule.UNMARKED_CHILD,
}


def standings(connection: apsw.Connection, has: Has) -> dict[Value, Standing]:
    """The standing of every session, in order of id (str, or bytes where it is not UTF-8). Reads only.

    `has` says which objects of the file may be relied on, as `ScanContext.has` does; apsw errors pass through.
    """
    rows = {text(row[0]): _row(row) for row in _rows(connection, has, "sessions")}
    following = _following(connection, has)
    found: dict[Value, Standing] = {}
    last_links = _show(rows, following, found)
    for session_id in rows:
        _explain(session_id, rows, following, found, last_links)
    return {session_id: found[session_id] for session_id in rows}


def _row(row: tuple[Value, ...]) -> _Row:
    _session_id, parent, child, delegate, archived, hidden, compressed = row
    if not child and not delegate and archived == hidden == 0:
        return _Row(text(parent), "", (), bool(compressed))
    rules = []
    if child and child != "compressed":
        rules.append(_CHILD_RULES[str(child)])
    if delegate:
        rules.append(Rule.DELEGATE_MARKER)
    if archived is None or hidden is None:
        rules.append(Rule.UNREADABLE_FLAG)
    if archived:
        rules.append(Rule.ARCHIVED)
    if hidden:
        rules.append(Rule.HIDDEN)
    return _Row(text(parent), str(child), tuple(rules), bool(compressed))


def _following(connection: apsw.Connection, has: Has) -> dict[Value, Value]:
    """The continuation that upstream follows from each compressed session."""
    following: dict[Value, Value] = {}
    several = False
    for parent, child in _rows(connection, has, "continuations"):
        several = following.setdefault(text(parent), text(child)) != text(child) or several
    if several:
        first: dict[Value, Value] = {}
        for parent, child in _rows(connection, has, "rivals"):
            first.setdefault(text(parent), text(child))
        following.update(first)
    return following


def _show(
    rows: Mapping[Value, _Row], following: Mapping[Value, Value], found: dict[Value, Standing]
) -> set[Value]:
    """Fill in what the list shows; returns the tips at which upstream gave up following."""
    listed = [session_id for session_id, row in rows.items() if not row.child and not row.rules]
    found.update((session_id, Standing(session_id)) for session_id in listed)
    last_links = set()
    for root in listed:
        if not rows[root].compressed:
            continue
        path = _path(root, following)
        tip = path[-1]
        for session_id in path[:-1]:
            if session_id == root or session_id not in found:
                found[session_id] = Standing(tip)
        found[tip] = Standing(tip)
        if len(path) > HOPS:
            last_links.add(tip)
    return last_links


def _path(root: Value, following: Mapping[Value, Value]) -> list[Value]:
    """The sessions of a compressed conversation as upstream follows it, a loop only once round."""
    path = [root]
    seen = {root}
    while len(path) <= HOPS and (after := following.get(path[-1])) is not None and after not in seen:
        path.append(after)
        seen.add(after)
    return path


def _explain(
    session_id: Value,
    rows: Mapping[Value, _Row],
    following: Mapping[Value, Value],
    found: dict[Value, Standing],
    last_links: set[Value],
) -> None:
    """Fill in why a session is hidden; what continues a hidden one is hidden by the same rules."""
    below_it: dict[Value, None] = {}
    current = session_id
    while current not in found:
        row = rows[current]
        below_it[current] = None
        own = _own_rules(current, row, following, last_links)
        if own or row.parent not in rows or row.parent in below_it:
            found[current] = Standing(rules=own or (Rule.UNMARKED_CHILD,))
            del below_it[current]
            break
        current = row.parent
    for below in reversed(below_it):
        parent = rows[below].parent
        over = found[parent]
        found[below] = Standing(rules=over.rules, through=parent if over.through is None else over.through)


def _own_rules(
    session_id: Value, row: _Row, following: Mapping[Value, Value], last_links: set[Value]
) -> tuple[Rule, ...]:
    """The rules about the session itself; none where only its compressed parent says why it is hidden."""
    if row.child != "compressed":
        return row.rules
    if row.parent in last_links:
        return (Rule.TOO_DEEP, *row.rules)
    followed = following.get(row.parent)
    if followed == session_id:
        return row.rules
    return (Rule.UNMARKED_CHILD if followed is None else Rule.OTHER_CONTINUATION, *row.rules)


def _rows(connection: apsw.Connection, has: Has, block: str) -> list[tuple[Value, ...]]:
    query = queries.choose(FILE, block, has)
    if query is None:
        raise KeyError(f"{FILE}.sql has no {block!r} that fits every file")
    return list(connection.execute(query.sql))
