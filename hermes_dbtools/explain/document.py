"""What `explain` answers, as the values that it prints and publishes; computes nothing.

Times of a log are text as the log has them; all others are epoch seconds.
"""

from __future__ import annotations

from typing import Literal

import msgspec

Relation = Literal["own", "lineage", "file"]
"""Whether a finding is about the session itself, about one of its family, or about the file."""


class Command(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One command to run next, as a shell takes it, and what it does."""

    command: str
    does: str


class Failing(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A statement of the store that fails now: on which key, because of which row; `rows` hang on it already."""

    statement: str
    key: str
    because: str
    rows: int = 0


class Named(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How many rows of a table name the session, by which column."""

    table: str
    column: str
    rows: int


class About(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A finding of a damage class that concerns the question."""

    code: str
    slug: str
    severity: Literal["error", "warning", "note"]
    table: str
    key: str
    message: str
    relation: Relation


class Held(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Why a session is live, by whom, until when."""

    reason: str
    holder: str
    expires_at: float | None


class Holding(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A process that has the file open."""

    pid: int
    name: str


class Kind(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The lines of a log that are of one kind. `follows` is the kind that came within the minute before it."""

    kind: str
    count: int
    first: str
    last: str
    means: str
    follows: str
    statements: dict[str, int]
    sessions: list[str]
    found: bool
    calm: str


class Log(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a log holds; `more_sessions` are lines about sessions that were not looked up."""

    name: str
    bytes: int
    kinds: list[Kind]
    more_sessions: int


class Session(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Everything that explains one session.

    `state` is live, open, closed or archived where it has a row, else missing. `hidden` says why lists leave it out.
    """

    id: str
    state: str
    ended: str
    deleted: bool
    hidden: str
    shown_as: str
    live: Held | None
    named_by: list[Named]
    transcripts: list[str]
    profiles: list[str]
    failing: list[Failing]
    delete_blocked_by: list[Failing]
    findings: list[About]
    verdict: str


class Total(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How much of one damage class was found in the file, whoever it is about."""

    code: str
    slug: str
    severity: Literal["error", "warning", "note"]
    count: int


class Explanation(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The answer to one question about one file."""

    format: Literal["hermes-dbtools/explain"]
    format_version: Literal[1]
    database: str
    holders: list[Holding]
    all_live: str
    log: Log | None
    sessions: list[Session]
    totals: list[Total]
    could_not_look: list[str]
    verdict: str
    next: list[Command]
    exit_code: int
