"""Give one lost session its row and its whole transcript again, under the same id; writes only through `apply`.

Only what is confirmed to be lost: a row that is there, a tombstone, a live session or a damaged table refuses.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from .. import repairing
from ..apply import ApplyOptions, apply_plan
from ..damage._declare import Planner, ScanContext, text
from ..damage.references._provenance import provenance
from ..damage.storage import _places, _rebuilding
from ..home import Home
from ..model import Active, Finding, LiveSession, Plan, Receipt, Refused, Severity, UsageError
from ..plan import fingerprint
from ..sizes import path_text
from ..structure import check_structure
from ..transcripts import TranscriptFile, candidates, read_transcript
from . import ids
from ._operation import Operation
from .looking import active_line
from .reading import look

CODE, SLUG, FILE = "rebuild", "sessions-rebuild", "damage/storage/transcript_without_session"


@dataclass(frozen=True, slots=True)
class Prepared:
    """What a rebuild of one session would do: the plan, the files it reads, and how many messages are left."""

    session_id: str
    plan: Plan
    planners: Mapping[str, Planner]
    files: tuple[TranscriptFile, ...]
    ignored: tuple[str, ...]
    survivors: int


@dataclass(frozen=True, slots=True)
class RebuildOptions:
    """How to rebuild. `now` is epoch seconds."""

    backup: bool = True
    now: float = field(default_factory=time.time)


def prepare(home: Home, word: str, options: RebuildOptions | None = None) -> Prepared:
    """Look at the session that a word means: an id without a row, or the beginning of exactly one; writes nothing.

    Raises UsageError for a word that means nothing that could be rebuilt, Active for a live session, Refused
    where there is nothing to rebuild or nothing may be.
    """
    options = options or RebuildOptions()
    return look(home, options.now, lambda context: _prepared(context, home, word))


def carry_out(home: Home, prepared: Prepared, options: RebuildOptions | None = None) -> Receipt:
    """Rebuild it. Raises what `apply_plan` raises, where nothing was changed."""
    options = options or RebuildOptions()
    repairing.finish_pending(home)
    how = ApplyOptions(
        online=True,
        backup=options.backup,
        now=options.now,
        lock_limit=math.inf,
        planners=prepared.planners,
    )
    return apply_plan(home, prepared.plan, how)


def operation(session_id: str) -> Operation:
    """The rebuild of one session as `apply` wants it."""

    def find(context: ScanContext) -> Iterator[Finding]:
        if _standing(made, context, session_id) != (False, False):
            return
        yield _finding(made, context, session_id)

    made = Operation(CODE, SLUG, FILE, find)
    return made


def _prepared(context: ScanContext, home: Home, word: str) -> Prepared:
    if context.shape.newer:
        raise Refused(f"{context.shape.newer}: this file is report-only; update hermes-dbtools")
    # A damaged table or index says of healthy rows that they are gone.
    gate = check_structure(context.connection, context.shape)
    if gate.damages:
        raise Refused(
            "the file is structurally damaged: what is lost cannot be told; hermes-dbtools runbook structural-damage"
        )
    session_id = _missing(context, home, word)
    live = context.ask_guard().get(session_id)
    if live is not None:
        raise Active(_active(session_id, live))
    planner = operation(session_id)
    (finding,) = planner.find(context)
    (remedy,) = finding.remedies
    if remedy.step is None:
        raise Refused(f"{session_id}: {remedy.refused}; nothing was changed")
    transcript = read_transcript(home.sessions_dir, session_id)
    plan = Plan(
        database=path_text(context.file.path),
        fingerprint=fingerprint((remedy.step,)),
        steps=(remedy.step,),
        skipped=(),
        skipped_active=(),
        choices={},
        allow_lossy=False,
        max_rows=0,
    )
    left = finding.evidence["left"]
    return Prepared(
        session_id,
        plan,
        {CODE: planner},
        transcript.files if transcript else (),
        transcript.ignored if transcript else (),
        left if isinstance(left, int) else 0,
    )


def _finding(planner: Operation, context: ScanContext, session_id: str) -> Finding:
    folder = context.home.sessions_dir if context.home is not None else None
    transcript = read_transcript(folder, session_id) if folder is not None else None
    survivors = _places.survivors_of(planner, context, session_id)
    after = _places.last_id(planner, context)
    session = _places.rebuilt(planner, context, session_id, transcript, survivors, after)
    origins = provenance(planner.rows(context, "routed"), folder, (session_id,))
    if not context.trust_indexes:  # inside apply: the steps take the messages from there
        _rebuilding.tell(planner, context, (session,))
    remedy = _rebuilding.remedy(planner, context, session, transcript, origins)
    return Finding(
        code=CODE,
        slug=SLUG,
        severity=Severity.NOTE,
        table="sessions",
        key=session_id,
        message="asked for",
        evidence={"left": len(survivors), "told": len(session.added)},
        session_ids=(session_id,),
        remedies=(remedy,),
    )


def _missing(context: ScanContext, home: Home, word: str) -> str:
    """The id of a lost session that a word means."""
    planner = operation(word)
    if not 0 < len(word) <= ids.LONGEST or "\0" in word or not _encodable(word):
        raise UsageError(f"{ids.short(word)!r}: no id of a session")
    there, tombstoned = _standing(planner, context, word)
    if there:
        raise Refused(
            f"{ids.short(word)}: its session row is there, so nothing is rebuilt; hermes-dbtools sessions show"
        )
    if tombstoned:
        raise Refused(f"{ids.short(word)}: its user deleted it (a tombstone says so): nothing is rebuilt")
    files = candidates(home.sessions_dir)
    if word in files or list(planner.rows(context, "left-like", {"word": word, "next": word})):
        return word
    lost: set[str] = set()
    if len(word) >= ids.SHORTEST_PREFIX:
        left = planner.rows(context, "left-like", {"word": word, "next": word + "\U0010ffff"})
        names = {text(row[0]) for row in left} | {name for name in files if name.startswith(word)}
        lost = {
            name
            for name in names
            if isinstance(name, str) and _standing(planner, context, name) == (False, False)
        }
    if len(lost) > 1:
        raise UsageError(
            f"{ids.short(word)!r}: several lost sessions have ids that begin so; give more of it"
        )
    if not lost:
        raise UsageError(f"{ids.short(word)!r}: no message and no transcript of such a session is left")
    return lost.pop()


def _standing(planner: Operation, context: ScanContext, session_id: str) -> tuple[bool, bool]:
    """Whether the session has a row, and whether it has a tombstone."""
    ((there, tombstoned),) = planner.rows(context, "standing", {"id": session_id})
    return bool(there), bool(tombstoned)


def _active(session_id: str, live: LiveSession) -> str:
    return (
        f"Cannot rebuild active session {session_id}: {active_line(live)}; nothing was changed; its agent may heal it, "
        "try again when it is idle"
    )


def _encodable(word: str) -> bool:
    try:
        word.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True
