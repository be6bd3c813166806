"""A transcript on disk belongs to a session that the store does not know

What it means
-------------
The folder `sessions/` holds the transcript of a session that has no row, no message and no tombstone. No list,
search or resume reaches that conversation; all that is left of it is the file.

Why it happens
--------------
The session row could not be written while the database was locked, and the agent went on with its files alone;
or rows were lost and the files were not. But a file is also what a delete leaves that was not told where the
files are: bulk deletes of the dashboard and deletes of editors remove rows only, and no release ever removes
`session_<id>.json`. Which of both it was, the file does not say.

Repair
------
`report`, the default, leaves it. `rebuild` makes the session again under the same id: the whole transcript,
source, times and counters, searchable and listed; `hermes-dbtools sessions rebuild ID` does it for one session.
Without its parent unless that was closed for it; a file that is cut off gives what is whole of it.

Safety
------
Rebuilding adds rows and removes nothing, and the file stays. A tombstone says that a user deleted the session:
such a transcript is never reported and never rebuilt. Where only `session_<id>.json` is left, it is a note, for
every deleted session leaves one. What is still written while another process has the store open is left alone.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

from ...model import Finding, Remedy, Safety, Severity
from ...sizes import counted
from ...transcripts import Transcript, candidates, read_transcript
from .._declare import ScanContext, declare, text
from ..references._provenance import Provenance, provenance
from ._places import Rebuilt, last_id, rebuilt
from ._rebuilding import children_of, remedy, source_of, tell


def _find(context: ScanContext) -> Iterator[Finding]:
    if context.home is None:
        return
    folder = context.home.sessions_dir
    named = candidates(folder)
    if not named:
        return
    known = {text(row[0]) for row in DAMAGE.rows(context, "known", {"ids": json.dumps(list(named))})}
    unknown = [session_id for session_id in named if session_id not in known]
    read = {one: transcript for one in unknown if (transcript := read_transcript(folder, one)) is not None}
    if not read:
        return
    origins = provenance(DAMAGE.rows(context, "routed"), folder, list(read))
    after = last_id(DAMAGE, context)
    sessions = []
    for session_id, transcript in read.items():
        sessions.append(rebuilt(DAMAGE, context, session_id, transcript, (), after))
        after += len(sessions[-1].added)
    if not context.trust_indexes:  # inside apply: the steps take the messages from there
        tell(DAMAGE, context, sessions)
    for session in sessions:
        yield _finding(context, session, read[session.id], origins)


def _finding(context: ScanContext, session: Rebuilt, transcript: Transcript, origins: Provenance) -> Finding:
    count = len(session.added)
    return DAMAGE.finding(
        table="sessions",
        key=session.id,
        kind="snapshot" if transcript.snapshot_only else "transcript",
        severity=Severity.NOTE if transcript.snapshot_only else Severity.WARNING,
        message=f"a transcript of {counted(count, 'message')} without a session",
        evidence=_evidence(context, session, transcript, origins),
        session_ids=(session.id,),
        remedies=(
            Remedy("report", Safety.MANUAL),
            remedy(DAMAGE, context, session, transcript, origins),
        ),
    )


def _evidence(
    context: ScanContext, session: Rebuilt, transcript: Transcript, origins: Provenance
) -> Mapping[str, object]:
    moments = session.moments
    return {
        "messages": len(session.added),
        "bytes": sum(file.size for file in transcript.files),
        "files": len(transcript.files),
        "ignored_files": len(transcript.ignored),
        "broken_entries": sum(file.skipped for file in transcript.files),
        "cut_off": any(file.cut for file in transcript.files),
        "first_at": min(moments, default=None),
        "last_at": max(moments, default=None),
        "source": source_of(session.id, transcript, origins),
        "children": len(children_of(DAMAGE, context, session.id)),
    }


DAMAGE = declare(
    __name__,
    __doc__,
    code="HDB006",
    severity=Severity.WARNING,
    safety=Safety.CHOICE,
    answers=("report", "rebuild"),
    reads=("sessions", "messages", "state_meta"),
    noun=("transcript", "transcripts"),
    sums=(("messages", "messages"), ("bytes", "bytes")),
    find=_find,
)
