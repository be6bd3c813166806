"""A numbered part of a conversation hangs under nothing

What it means
-------------
The title ends in ` #2` or more, which releases give to what continues or branches off, and other sessions have the same
title without or with another number; but the session has no parent and no branch marker. It was probably cut
off: lists show its parts as separate chats, and a resume of an earlier part does not reach it.

Why it happens
--------------
A session in the middle was deleted: releases make roots of what hung under it. In public reports a delete of the end
that lists show made older parts reappear. Or the title was typed in by hand.

Repair
------
None: a title proves nothing, and the session between may be gone. The runbook says what to compare.

Safety
------
Manual, and no more than a hint. Titles are compared inside the database and are never part of a finding. Not
reported: a session with a parent or a branch marker; one that is the only part left; ` #1`, ` #0`, and numbers with
leading zeroes, which no release gives.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...model import Finding, Safety, Severity
from .._declare import ScanContext, declare, printable, text, whole


def _find(context: ScanContext) -> Iterator[Finding]:
    for session, number, others, nearest in DAMAGE.rows(context, "find"):
        session_id = text(session)
        yield DAMAGE.finding(
            table="sessions",
            key=session_id,
            message=f"by its title part {whole(number)} of a conversation, but it hangs under nothing",
            evidence={
                "number": whole(number),
                "other_parts": whole(others),
                "nearest_part": printable(text(nearest)),
            },
            session_ids=(session_id,),
        )


DAMAGE = declare(
    __name__,
    __doc__,
    code="HDB309",
    severity=Severity.NOTE,
    safety=Safety.MANUAL,
    needs=("sessions.title",),
    reads=("sessions",),
    noun=("session", "sessions"),
    find=_find,
)
