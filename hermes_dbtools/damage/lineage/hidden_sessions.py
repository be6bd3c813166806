"""A session that a person wrote in is shown by no list

What it means
-------------
Upstream's own list leaves the session out, though users wrote in it and nobody archived or hid it. It looks lost; its
messages are all there, search finds them, and its id resumes it. The finding names the rule that hides it:
`unmarked-child` (it has a parent, and neither a marker nor the end of its parent says that it is a branch or came after a
reset), `branched-later` (it is older than the branching of its parent), `delegate-marker` (its marker says that it is a
sub-agent's run), `too-deep` (its conversation was compressed more than 100 times, and upstream follows it no further),
`unreadable-flag` (archived or hidden is neither 0 nor 1), `missing-parent`.

Why it happens
--------------
Lists show roots and marked children only. Releases up to 0.19 do not know the child that a reset leaves (in a public
report every chat after a reset was hidden so), other programs link a chat to a parent that is still open, a reap marked a
live chat as a sub-agent, and in a report the tip of a conversation that was compressed 50 times was not found. An upgrade
to 0.17 marks old branches of live parents as sub-agents.

Repair
------
By hand: the runbook says what helps for each rule. Where the cause is damage of its own, such as a branch without its
marker, that class mends it, and nothing is reported here.

Safety
------
Nothing is changed. Reported is one session for a conversation, with the number of continuations hidden with it. Not
reported: what its user archived or hid; what stands in the list as its newest continuation; a second continuation
(forked-continuations); sub-agents, tools and jobs; a session without a message of a user. Where the releases that used
the file gave sub-agents the source of their parent, or an upgrade marked it, only a session with a title or three
messages of users is: a sub-agent's run has one or two.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from ...cycles import find_cycles
from ...model import Finding, Safety, Severity, Value
from ...sizes import counted
from ...visibility import HELPERS, Rule, Standing, standings
from .._declare import ScanContext, declare, text, whole
from ..references._missing import adopted_ids

MACHINES = HELPERS | {"subagent", "cron"}
"""Sources of sessions that no person writes in."""

PERSON = 3
"""Messages of users that a run of a sub-agent does not have: its task, and at most a request to sum up."""

_ON_PURPOSE = frozenset((Rule.ARCHIVED, Rule.HIDDEN, Rule.OTHER_CONTINUATION))


def _find(context: ScanContext) -> Iterator[Finding]:
    all_standings = standings(context.connection, context.has)
    heads = {
        session_id: standing
        for session_id, standing in all_standings.items()
        if not standing.shown and standing.through is None and not _ON_PURPOSE & set(standing.rules)
    }
    if not heads:
        return
    below: Counter[Value] = Counter(one.through for one in all_standings.values())
    explained = _explained(context, heads)
    said = _Said(context)
    for session_id, standing in heads.items():
        if session_id not in explained and _by_a_person(context, session_id, standing, said):
            yield _finding(session_id, standing, below[session_id], _cause(context, session_id, standing))


def _explained(context: ScanContext, heads: dict[Value, Standing]) -> set[Value]:
    """Those whose cause is reported as such, under another key: loops, and parents that get their row back."""
    found = {session_id for cycle in find_cycles(context.connection, context.has) for session_id in cycle.ids}
    parents = {
        session_id: text(row[0])
        for session_id, standing in heads.items()
        if Rule.MISSING_PARENT in standing.rules
        for row in DAMAGE.rows(context, "parent", {"session_id": session_id})
    }
    adopted = adopted_ids(context, parents.values())
    return found | {session_id for session_id, parent in parents.items() if parent in adopted}


class _Said:
    """How many messages of users a session has: three stand for more where the index is there."""

    def __init__(self, context: ScanContext) -> None:
        self._context = context
        self._all: dict[Value, int] | None = None

    def by_users(self, session_id: Value) -> int:
        """The number for one session."""
        if self._context.has("index:idx_messages_session"):
            rows = DAMAGE.rows(self._context, "said", {"session_id": session_id})
            return sum(whole(row[1]) for row in rows)
        if self._all is None:
            self._all = {text(row[0]): whole(row[1]) for row in DAMAGE.rows(self._context, "said-by-all")}
        return self._all.get(session_id, 0)


def _by_a_person(context: ScanContext, session_id: Value, standing: Standing, said: _Said) -> bool:
    for source, titled in DAMAGE.rows(context, "facts", {"session_id": session_id}):
        if text(source) in MACHINES:
            return False
        unsure = Rule.DELEGATE_MARKER in standing.rules or not context.has("sessions.session_key")
        enough = PERSON if unsure and not titled and Rule.TOO_DEEP not in standing.rules else 1
        return said.by_users(session_id) >= enough
    return False


def _cause(context: ScanContext, session_id: Value, standing: Standing) -> dict[str, object]:
    """The damage that hides it, where it is reported as such: a flag out of its domain, a root that is half ended."""
    if Rule.UNREADABLE_FLAG in standing.rules:
        return {"caused_by": "HDB405"}
    if Rule.BRANCHED_LATER not in standing.rules:
        return {}
    rows = DAMAGE.rows(context, "parent", {"session_id": session_id})
    return {"caused_by": "HDB310"} if any(row[1] for row in rows) else {}


def _finding(session_id: Value, standing: Standing, continuations: int, cause: dict[str, object]) -> Finding:
    rule = standing.rules[0]
    others = f" nor {counted(continuations, 'continuation')} of it" if continuations else ""
    return DAMAGE.finding(
        table="sessions",
        key=session_id,
        kind=rule.value,
        message=f"no list shows it{others}: {rule.sentence}",
        evidence={"rules": [one.value for one in standing.rules], "continuations": continuations, **cause},
        session_ids=(session_id,),
    )


DAMAGE = declare(
    __name__,
    __doc__,
    code="HDB316",
    severity=Severity.NOTE,
    safety=Safety.MANUAL,
    reads=("messages", "sessions"),
    cedes_to=("HDB202", "HDB301", "HDB302", "HDB303", "HDB304", "HDB306", "HDB308", "HDB314", "HDB315"),
    noun=("session", "sessions"),
    find=_find,
)
