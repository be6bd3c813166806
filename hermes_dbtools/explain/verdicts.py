"""Say in one sentence what a session comes to, and whether that is wrong; reads nothing and changes nothing."""

from __future__ import annotations

from collections.abc import Sequence

from ..sizes import counted
from .document import About, Named
from .looking import Seen

BROKEN_FILE = "the file itself is damaged; every other failure, a foreign key too, may only follow from that"


def wrong(seen: Seen) -> bool:
    """Whether writes for the session fail for a reason that lies in the file or in the choice of the file."""
    place = seen.place
    return bool(seen.failing) and (place.row or place.used or bool(place.profiles))


def sentence(seen: Seen, findings: Sequence[About]) -> str:
    """What is wrong with a session now, or that nothing is."""
    return _with_row(seen, findings) if seen.place.row else _without_row(seen)


def _without_row(seen: Seen) -> str:
    place = seen.place
    left = place.rows("messages", "session_id")
    if place.deleted:
        rest = f"; {counted(left, 'message')} of it {'is' if left == 1 else 'are'} left" if left else ""
        return f"its user deleted it, and a tombstone keeps the id from being used again{rest}"
    if left:
        return f"its row is gone and {counted(left, 'message')} of it {'is' if left == 1 else 'are'} left: nothing is saved in it"
    if place.profiles:
        return f"it is not in this file but in that of profile {', '.join(place.profiles)}"
    if place.transcripts:
        return f"it has no row; its transcript is on disk: {', '.join(place.transcripts)}"
    if place.named_by:
        return f"it has no row and is still named by {_names(place.named_by)}: nothing is saved in it"
    return (
        "nothing of it is in this file: its row was never written, or was deleted with its messages while a process "
        "goes on with the id; that process must be restarted"
    )


def _with_row(seen: Seen, findings: Sequence[About]) -> str:
    if seen.failing:
        missing = "; ".join(dict.fromkeys(one.because for one in seen.failing))
        return f"its row points at one that is gone: {missing}. Its row cannot be written again"
    grave = [one for one in findings if one.severity != "note"]
    own = [one for one in grave if one.relation == "own"]
    if own:
        return own[0].message + (f", and {len(own) - 1} more" if len(own) > 1 else "")
    if grave:
        whose = "its family" if grave[0].relation == "lineage" else "the file"
        return f"nothing is wrong with the session itself; with {whose}: {grave[0].message}"
    if seen.live is not None:
        return "nothing is wrong with it now; it is in use"
    if seen.hidden:
        return f"nothing fails; lists leave it out: {seen.hidden}"
    if noted := [one for one in findings if one.relation == "own"]:
        return f"nothing fails; to know: {noted[0].message}"
    return "nothing is wrong with it now"


def _names(named: Sequence[Named]) -> str:
    return ", ".join(f"{one.table} ({one.rows:,})" for one in named)
