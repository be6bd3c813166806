"""Messages name media files by paths of another system or another home

What it means
-------------
A message names an image or an attachment by a path that cannot be one of this home: a path of Windows on another system
(or the reverse), or one in the media folders of a Hermes home that is not this one. The reader shows no image there, and
an agent that opens the path gets an error.

Why it happens
--------------
The database was moved or copied to another computer, another user or another profile without its files, or the agent ran in
a container or a remote machine whose paths are not those of the host. Public reports tell of stored names that no longer
resolved after such a move, and of paths that only the container knew.

Repair
------
By hand: put the files of the other home into this one, or leave the text as it is. Texts of messages are never changed.

Safety
------
Manual. Not reported: files that are there; files of this home (dangling-image-references); URLs, inline data, and local
paths outside of media folders, which agents name all the time.
"""

from __future__ import annotations

import json
import os
import re
from array import array
from collections.abc import Iterator
from dataclasses import dataclass, field

from ...home import Home
from ...media_files import MediaFolders, folders_of, is_file
from ...media_references import Mention, is_windows, mentions
from ...model import Finding, Safety, Severity, Value
from ...sizes import counted
from .._declare import ScanContext, declare, text, whole
from ._held import shown

CHUNK = 200
"""Messages fetched at once; their number never enters the SQL."""

TEXTS = "damage/media/dangling_image_references"
"""Where the statement stands that gives the texts of messages."""

ANOTHER_SYSTEM = "another system"

_FOLDERS = re.compile(
    r"/(?:native-inputs/[0-9a-f]{64}/|transcript_media/[0-9a-f]{64}$|composer-images/|composer-pastes/pasted_content_"
    r"|(?:cache/images|image_cache)/img_[0-9a-f]{12}\.)"
)
_HOME = re.compile(
    r"(.*/\.hermes(?:/profiles/[^/]+)?)/(?:cache|image_cache|document_cache|images|composer-pastes)/"
)
_TAILS = ("/cache", "/cache/documents", "/document_cache")


@dataclass(slots=True)
class _Group:
    """What one other place is named by. `messages` are ids."""

    references: int = 0
    messages: set[int] = field(default_factory=set)
    sessions: set[Value] = field(default_factory=set)


def _find(context: ScanContext) -> Iterator[Finding]:
    folders = folders_of(context.home) if context.home is not None else None
    groups: dict[str, _Group] = {}
    for message_id, session, content in _contents(context, context.sweep.run(context).rows("reference")):
        for place in dict.fromkeys(_place(found, folders) for found in mentions(content)):
            if not place or _is_own(place, context.home):
                continue
            group = groups.setdefault(place, _Group())
            group.references += 1
            group.messages.add(message_id)
            group.sessions.add(session)
    for place, group in sorted(groups.items()):
        yield _finding(shown(place), group)


def _contents(context: ScanContext, ids: array[int]) -> Iterator[tuple[int, Value, bytes]]:
    for first in range(0, len(ids), CHUNK):
        wanted = json.dumps(ids[first : first + CHUNK].tolist())
        for row in context.rows(TEXTS, "texts", {"ids": wanted}):
            if isinstance(row[5], bytes):
                yield whole(row[0]), text(row[1]), row[5]


def _place(mention: Mention, folders: MediaFolders | None) -> str:
    """The other system or home that a path belongs to, or '' where it is none of another."""
    if is_windows(mention.token):
        return "" if os.name == "nt" else ANOTHER_SYSTEM
    if os.name == "nt":
        return ANOTHER_SYSTEM if mention.token.startswith(("/home/", "/Users/")) else ""
    if folders is None:
        return ""
    for reading in mention.readings():
        if folders.owner(reading) is not None or is_file(reading):
            return ""
    return next((home for reading in mention.readings() if (home := _home(reading))), "")


def _home(path: str) -> str:
    """The home whose media folder a path lies in, or ''."""
    if found := _HOME.match(path):
        return found.group(1)
    if found := _FOLDERS.search(path):
        home = path[: found.start()]
        return next((home.removesuffix(tail) for tail in _TAILS if home.endswith(tail)), home) or "/"
    return ""


def _is_own(place: str, home: Home | None) -> bool:
    """Whether this is the home itself, or the one whose profile it is."""
    own = {str(home.root), os.path.realpath(home.root)} if home is not None else set()
    return any(one == place or one.startswith(f"{place}/profiles/") for one in own)


def _finding(place: str, group: _Group) -> Finding:
    return DAMAGE.finding(
        table="messages",
        key=place,
        kind="other-system" if place == ANOTHER_SYSTEM else "other-home",
        message=f"{counted(len(group.messages), 'message')} of {counted(len(group.sessions), 'session')} name files "
        f"of {place if place == ANOTHER_SYSTEM else 'the home ' + place}",
        evidence={
            "references": group.references,
            "messages": len(group.messages),
            "sessions": len(group.sessions),
            "first_message": min(group.messages),
            "last_message": max(group.messages),
        },
    )


DAMAGE = declare(
    __name__,
    __doc__,
    code="HDB702",
    severity=Severity.NOTE,
    safety=Safety.MANUAL,
    reads=("messages",),
    noun=("other place", "other places"),
    sums=(("messages", "messages"),),
    find=_find,
)
