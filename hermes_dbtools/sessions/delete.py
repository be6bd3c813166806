"""Make the steps that delete sessions as the store does, with what its own delete forgets; runs none of them.

One step per root: the ledger retired, settings, routes and dead locks dropped, messages and usage removed, children that stay
detached, then the rows. A last step removes the stored prompts that nobody uses any more (upstream: `delete_session`,
`hermes_state_mutation_retirement.py`).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from .. import queries
from ..cycles import cyclic_sessions
from ..damage._declare import ScanContext, printable, text, whole
from ..model import FileTrash, Finding, Remedy, Safety, Severity, Statement, Step, Value
from ..sizes import counted
from ._operation import Operation
from .files import session_files
from .ids import there
from .retiring import Ledger, read_ledgers, retire
from .targets import read_lineages, trees

CODE, SLUG, FILE = "delete", "sessions-delete", "sessions/delete"

PROMPTS = "unreferenced prompts"
"""The key of the last step."""

KNOWN_REFERRERS = frozenset(
    (
        *("messages", "sessions", "session_model_usage", "session_daily_usage", "telegram_dm_topic_bindings"),
        *("session_admissions", "worker_executions"),
    )
)
"""Tables with a foreign key to sessions whose rows a delete knows to remove or to detach."""

COUNTED: tuple[tuple[str, str, str], ...] = (
    ("settings", "drop-settings", "state_meta"),
    ("policies-there", "drop-policies", "state_meta"),
    ("conversations", "drop-conversations", "state_meta"),
    ("routes", "drop-routes", "gateway_routing"),
    ("locks", "drop-locks", "compression_locks"),
    ("leases", "drop-leases", "session_turn_leases"),
    ("usage", "drop-usage", "session_model_usage"),
    ("daily", "drop-daily", "session_daily_usage"),
    ("bindings", "drop-bindings", "telegram_dm_topic_bindings"),
)
"""What is only counted and removed: the block that counts, the one that removes, the table."""


@dataclass(slots=True)
class Holding:
    """What goes with one root."""

    ids: tuple[str, ...]
    messages: int = 0
    bytes: int = 0
    counts: dict[str, int] = field(default_factory=dict)
    children: int = 0
    ledger: Ledger | None = None


@dataclass(frozen=True, slots=True)
class Request:
    """Which sessions are to go; `roots` are whole ids, each once.

    `only` says which roots may still go, asked again inside the transaction.
    """

    roots: tuple[str, ...]
    whole_chain: bool = False
    only: Callable[[ScanContext], Collection[str]] | None = None


def operation(request: Request) -> Operation:
    """The delete of these sessions as `apply` wants it."""

    def find(context: ScanContext) -> Iterator[Finding]:
        return _find(made, context, request)

    made = Operation(CODE, SLUG, FILE, find)
    return made


def refusals(context: ScanContext, request: Request) -> dict[str, str]:
    """Why some roots may not be deleted whatever the guard says: loops, ids that are no text."""
    looped = cyclic_sessions(context.connection, context.has)
    lineages = read_lineages(context)
    found = {}
    for root in request.roots:
        tree = lineages.going_with(root, whole_chain=request.whole_chain)
        if any(one in looped for one in tree):
            found[root] = "it is part of a loop of its lineage; hermes-dbtools runbook lineage-cycles"
        elif any(not isinstance(one, str) for one in tree):
            found[root] = "an id that goes with it is not UTF-8 text; hermes-dbtools scan"
    return found


def _find(planner: Operation, context: ScanContext, request: Request) -> Iterator[Finding]:
    roots = standing(context, request)
    found = trees(read_lineages(context), roots, whole_chain=request.whole_chain)
    holdings = {root: Holding(tuple(str(one) for one in tree)) for root, tree in found.items()}
    if not holdings:
        return
    _fill(context, holdings)
    obstacles = _read(planner, context, holdings)
    files = session_files(context, {one for holding in holdings.values() for one in holding.ids})
    for root, holding in holdings.items():
        yield _finding(root, holding, files, obstacles.get(root, ""))
    found_hashes = (text(row[0]) for row in planner.rows(context, "prompts"))
    # No JSON can name one that is not UTF-8: it stays, and a scan finds it.
    if hashes := [one for one in found_hashes if isinstance(one, str)]:
        yield _prompts(hashes)


def standing(context: ScanContext, request: Request) -> tuple[str, ...]:
    """The roots that have a row and may still go."""
    known = there(context, request.roots)
    allowed = known if request.only is None else known & set(request.only(context))
    return tuple(root for root in request.roots if root in allowed)


def _fill(context: ScanContext, holdings: Mapping[str, Holding]) -> None:
    """Put the sessions that go into the temporary table."""
    connection = context.connection
    connection.execute(queries.statement(FILE, "doomed-table"))
    connection.execute(queries.statement(FILE, "forget-doomed"))
    doomed = [(one, root) for root, holding in holdings.items() for one in holding.ids]
    connection.execute(queries.statement(FILE, "doom"), {"doomed": json.dumps(doomed)})


def _read(planner: Operation, context: ScanContext, holdings: Mapping[str, Holding]) -> dict[str, str]:
    """Count what goes with each root; returns why some of them may not go."""
    for root, rows, size in planner.rows(context, "messages"):
        one = holdings[str(root)]
        one.messages, one.bytes = whole(rows), whole(size)
    for block, _drop, _table in COUNTED:
        for root, rows in planner.rows(context, block):
            holdings[str(root)].counts[block] = whole(rows)
    places = {root: place for place, root in enumerate(holdings)}
    for _child, own, above in planner.rows(context, "children"):
        # One that goes with an earlier root is gone by then.
        if own == "" or places[str(own)] > places[str(above)]:
            holdings[str(above)].children += 1
    for root, ledger in read_ledgers(planner, context, list(holdings)).items():
        holdings[root].ledger = ledger
    obstacles = {r: h.ledger.refusal for r, h in holdings.items() if h.ledger and h.ledger.refusal}
    for name in context.shape.canonical_tables:
        for key in context.shape.tables[name].foreign_keys:
            if key.parent.lower() == "sessions" and name not in KNOWN_REFERRERS and len(key.columns) == 1:
                names = {"table": name, "column": key.columns[0]}
                for (root,) in planner.rows(context, "naming", None, names):
                    obstacles.setdefault(str(root), f"rows of the table {name} belong to it")
    return obstacles


def _finding(root: str, holding: Holding, files: Mapping[str, list[FileTrash]], obstacle: str) -> Finding:
    trash = [file for one in holding.ids for file in files.get(one, ())]
    trash += holding.ledger.freed if holding.ledger else []
    step = Step(
        CODE,
        SLUG,
        root,
        "delete",
        _title(root, holding),
        holding.ids,
        tuple(_statements(holding)),
        (),
        holding.bytes,
        tuple(trash),
    )
    return Finding(
        code=CODE,
        slug=SLUG,
        severity=Severity.NOTE,
        table="sessions",
        key=printable(root),
        message="asked for",
        evidence={"messages": holding.messages, "sessions": len(holding.ids)},
        session_ids=holding.ids,
        remedies=(Remedy("delete", Safety.LOSSY, None if obstacle else step, obstacle or None),),
    )


def _title(root: str, holding: Holding) -> str:
    others = len(holding.ids) - 1
    below = f" and {others:,} that {'go' if others > 1 else 'goes'} with it" if others else ""
    return f"delete {root}{below}: {counted(holding.messages, 'message')}"


def _statements(holding: Holding) -> Iterator[Statement]:
    ids = json.dumps(holding.ids)
    bound: dict[str, Value] = {"ids": ids}
    if holding.ledger is not None:
        yield from retire(ids, holding.ledger)
    if holding.messages:
        yield Statement("drop-messages", bound, holding.messages, "messages", "delete", split="message-rows")
    for block, drop, table in COUNTED:
        if rows := holding.counts.get(block):
            yield Statement(drop, bound, rows, table, "delete")
    if holding.children:
        yield Statement("detach-children", bound, holding.children, "sessions", "update")
    yield Statement("drop-sessions", bound, len(holding.ids), "sessions", "delete")


def _prompts(hashes: Sequence[Value]) -> Finding:
    statement = Statement(
        "drop-prompts", {"hashes": json.dumps(hashes)}, len(hashes), "system_prompts", "delete"
    )
    title = f"remove {counted(len(hashes), 'stored prompt')} that no session uses any more"
    return Finding(
        code=CODE,
        slug=SLUG,
        severity=Severity.NOTE,
        table="system_prompts",
        key=PROMPTS,
        message="used by none but them",
        evidence={"prompts": len(hashes)},
        remedies=(
            Remedy("delete", Safety.LOSSY, Step(CODE, SLUG, PROMPTS, "delete", title, (), (statement,))),
        ),
    )
