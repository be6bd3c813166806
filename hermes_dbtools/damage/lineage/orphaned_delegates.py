"""A sub-agent's session outlived the session that it was handed out by

What it means
-------------
`_delegate_from` names a session that is gone. Lists hide every session with such a marker, and user interfaces offer a
delete only through the session that is missing, so the run stays in the file, unseen and undeletable.

Why it happens
--------------
Deletes of 0.13 and 0.16 and every prune take the parent and leave its sub-agents; so does a delete through a
connection that knows nothing of markers. In a public report the sub-agents of a deleted session could be looked at and
not be removed.

Repair
------
Only reported unless asked. `purge` removes the run with all that it handed out itself, with messages and usage, as a
delete of its parent in a newer release does. `strip` takes the marker out, and the run is listed among the chats.

Safety
------
Choice; purging loses messages for good but for undo and needs `--allow-lossy`. Not reported: the marker
`__orphaned__` of an upgrade (hidden-by-upgrade); a branch that inherited the marker, for the branch marker wins, and
such a branch is never purged with a tree; a continuation, which goes with the run it continues; a missing session
that orphaned-messages gives its row back; a row whose parent is gone too (missing-parent-session). Stripping is
refused where the session hangs under another one, which would hide it all the same. Purging is refused in a loop,
and while a route, a topic, a goal, a task handed out in the background, a runtime row or a row of an unknown table
names one of the sessions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from ...cycles import cyclic_sessions
from ...model import Finding, Remedy, Safety, Severity, Statement, Value
from .._declare import ScanContext, declare, printable, text
from ._purge import Weight, named, removal, weigh

Tree = tuple[Value, ...]


def _find(context: ScanContext) -> Iterator[Finding]:
    found = list(DAMAGE.rows(context, "find"))
    if not found:
        return
    below = _below(context)
    looped = cyclic_sessions(context.connection, context.has)
    taken: dict[Value, Value] = {}
    for session, gone, tombstoned, has_parent in found:
        session_id, missing = text(session), text(gone)
        tree = _tree(session_id, below)
        shared = next((taken[one] for one in tree if one in taken), None)
        taken |= dict.fromkeys(tree, session_id)
        ids = [one for one in tree if isinstance(one, str)]
        weight = weigh(context, ids)
        refusal = _refusal(context, tree, ids, shared, looped)
        yield DAMAGE.finding(
            table="sessions",
            key=session_id,
            message=f"sub-agent's session handed out by {printable(missing)}, which is gone: no list shows it",
            evidence={
                "missing": printable(missing),
                "tombstoned": bool(tombstoned),
                "has_parent": bool(has_parent),
                "sessions": len(tree),
                "rows": weight.messages,
                "bytes": weight.bytes,
            },
            session_ids=tree,
            remedies=(
                Remedy("report", Safety.CHOICE),
                _strip(session_id, missing, bool(has_parent)),
                _purge(context, session_id, ids, weight, refusal),
            ),
        )


def _below(context: ScanContext) -> Mapping[Value, list[Value]]:
    """The delegates right below each session, by marker or by parent."""
    below: dict[Value, list[Value]] = {}
    for session, parent, delegator in DAMAGE.rows(context, "delegates"):
        for above in {text(parent), text(delegator)} - {None}:
            below.setdefault(above, []).append(text(session))
    return below


def _tree(session_id: Value, below: Mapping[Value, list[Value]]) -> Tree:
    """The session and all that it handed out, itself or through others; a loop ends where it began."""
    tree, waiting = {session_id: None}, [session_id]
    while waiting:
        for one in below.get(waiting.pop(), ()):
            if one not in tree:
                tree[one] = None
                waiting.append(one)
    return (session_id, *sorted((one for one in tree if one != session_id), key=printable))


def _strip(session_id: Value, missing: Value, has_parent: bool) -> Remedy:
    if has_parent:
        reason = "it hangs under another session, which hides it without the marker too"
        return Remedy("strip", Safety.CHOICE, refused=reason)
    bindings = {"session_id": session_id, "missing": missing}
    step = DAMAGE.step(
        key=session_id,
        answer="strip",
        title=f"take the delegate marker out of {printable(session_id)}: it is listed as a chat",
        statements=(Statement("strip", bindings, 1, "sessions", "update"),),
        session_ids=(session_id,),
    )
    return Remedy("strip", Safety.CHOICE, step)


def _refusal(
    context: ScanContext, tree: Tree, ids: Sequence[str], shared: Value, looped: Mapping[Value, object]
) -> str:
    """Why the tree may not be removed, or ''."""
    if len(ids) < len(tree):
        return "an id in its tree is not UTF-8 text"
    if any(one in looped for one in tree):
        return "a session of its tree is part of a loop (lineage-cycles)"
    if shared is not None:
        return f"what it handed out is also below {printable(shared)}: purge that one first"
    in_use = named(context, ids)
    return f"a route, goal, task or other row names {printable(min(in_use, key=printable))}" if in_use else ""


def _purge(
    context: ScanContext, session_id: Value, ids: Sequence[str], weight: Weight, refusal: str
) -> Remedy:
    if refusal:
        return Remedy("purge", Safety.LOSSY, refused=refusal)
    others = len(ids) - 1
    below = f" and {others} that it handed out" if others else ""
    step = DAMAGE.step(
        key=session_id,
        answer="purge",
        title=f"purge sub-agent's session {printable(session_id)}{below}: {weight.messages:,} messages",
        statements=removal(context, ids, weight),
        session_ids=tuple(ids),
        bytes_freed=weight.bytes,
    )
    return Remedy("purge", Safety.LOSSY, step)


DAMAGE = declare(
    __name__,
    __doc__,
    code="HDB303",
    severity=Severity.NOTE,
    safety=Safety.CHOICE,
    answers=("report", "strip", "purge"),
    reads=("messages", "sessions", "state_meta"),
    cedes_to=("HDB202",),
    noun=("sub-agent's session", "sub-agents' sessions"),
    sums=(("rows", "messages"), ("bytes", "bytes")),
    find=_find,
)
