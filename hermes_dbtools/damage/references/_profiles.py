"""Ask the other profiles of a home whether they have a session; never changes one and never fails for one."""

from __future__ import annotations

import json
from collections.abc import Iterable

import apsw

from ... import database
from ...home import Home, other_profiles
from ...model import CouldNotLook, Value
from ...queries import statement

UNSEEN = "could not look"


def profiles_of(home: Home | None, path: str, ids: Iterable[Value]) -> dict[Value, list[str]]:
    """The names of other profiles by the session ids they have; `path` is the SQL file that holds `present`.

    Under the key None stand the profiles that could not be looked at, with that fact.
    """
    found: dict[Value, list[str]] = {}
    if home is None:
        return found
    wanted = json.dumps(sorted(session_id for session_id in ids if isinstance(session_id, str)))
    sql = statement(path, "present")

    def look(reading: database.Reading) -> list[Value]:
        return [row[0] for row in reading.connection.execute(sql, {"ids": wanted})]

    try:
        others = other_profiles(home)
    except CouldNotLook:
        return {None: [UNSEEN]}
    for other in others:
        try:
            present = database.read(other.database, look)
        except (CouldNotLook, apsw.Error, OSError):
            found.setdefault(None, []).append(f"{other.profile}: {UNSEEN}")
            continue
        for session_id in present:
            if isinstance(session_id, bytes):
                found.setdefault(session_id.decode("utf-8", "replace"), []).append(other.profile)
    return found
