"""Know when a file was last used, and since when a session is idle; reads times only.

Idle is measured against the newest activity in the file, not against the clock: a copy, a fixture or the file of a
machine that was switched off for months accuses none of the sessions that were current in it.
"""

from __future__ import annotations

from .._declare import ScanContext, moment


def idle_since(context: ScanContext) -> float | None:
    """The moment, in epoch seconds, before which a session must have been used last to count as idle.

    None where the file holds no time at all.
    """
    for (newest,) in context.rows("lineage/activity", "newest", {"now": context.now}):
        at = moment(newest)
        return None if at is None else at - context.idle
    return None
