"""Decide whether a missing session may be recreated for its messages; asks no file and changes nothing.

The classes of this family share the answer: what an adopted session makes valid again is nobody else's
finding.
"""

from __future__ import annotations

from ...model import Value
from .._declare import text

TOMBSTONED = "tombstoned: the user deleted it; --choose orphaned-messages=purge"
NOT_TEXT = (
    "its id is not UTF-8 text: a session row with it would make upstream's lists fail; "
    "--choose orphaned-messages=purge"
)


def identity(value: Value, storage: Value) -> Value:
    """An id selected as BLOB: str only where it is stored as text and is UTF-8, else its bytes."""
    return text(value) if storage == "text" else value


def refusal(session_id: Value, tombstoned: bool) -> str:
    """Why no session row may be recreated under this id, or ''.

    Measured on 0.19.0: one undecodable id in `sessions` makes every list of sessions raise.
    """
    if not isinstance(session_id, str):
        return NOT_TEXT
    return TOMBSTONED if tombstoned else ""


def adopted(session_id: Value, tombstoned: bool, has_messages: bool) -> bool:
    """Whether orphaned-messages recreates the session, which makes every reference to it valid again."""
    return has_messages and not refusal(session_id, tombstoned)
