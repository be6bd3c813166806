"""Say which stored media files texts name, in whatever form; reads no text itself and opens no file.

Files of `native-inputs` and `cache/transcript_media` are known by the digest of their bytes, those of `composer-pastes` by their
own name. A digest counts wherever a text gives it as that of a file; paths may be escaped as JSON does it, any number of times.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Collection, Iterable, Mapping
from urllib.parse import quote

from .media_references import SHA256

PASTE = "pasted_content_"
"""How the names begin that upstream gives to pasted texts; it removes no other file of their folder."""

WORDS: Mapping[str, tuple[str, ...]] = {
    "native-inputs": ("native-inputs", "hermes-retained:"),
    "transcript_media": ("transcript_media", "sha256"),
    "composer-pastes": (PASTE,),
}
"""By folder: a text without any of these words names none of its files."""

TEXT_COLUMNS = ("content", "api_content", "media_content", "display_metadata", "tool_calls")
"""Columns of messages that may name a file, as far as a file has them."""

Inode = tuple[int, int]

_DIGESTS = (
    re.compile(rb"native-inputs[\\/]+([0-9a-f]{64})"),
    re.compile(rb"transcript_media[\\/]+([0-9a-f]{64})"),
    re.compile(rb"hermes-retained:([0-9a-f]{64})"),
    re.compile(rb'sha256\\*"\s*:\s*\\*"([0-9a-f]{64})'),
)
_PASTE = re.compile(PASTE.encode())


def folder_of(path: str) -> str:
    """The media folder that a path lies in as upstream lays its files out, or ''."""
    parts = path.split("/")
    if len(parts) > 3 and parts[-3] == "native-inputs":
        return parts[-3]
    return parts[-2] if len(parts) > 2 and parts[-2] in ("transcript_media", "composer-pastes") else ""


def name_of(path: str) -> str:
    """What texts know a media file by: the digest of its folder, or its own name."""
    folder, _, name = path.rpartition("/")
    return folder.rpartition("/")[2] if folder_of(path) == "native-inputs" else name


def named_in(texts: Iterable[bytes], names: Collection[str]) -> set[str]:
    """Those of some names that the texts give."""
    digests = {name for name in names if SHA256.fullmatch(name)}
    pastes = {spelt: name for name in names if name not in digests for spelt in _spellings(name)}
    lengths = sorted({len(spelt) for spelt in pastes})
    found: set[str] = set()
    for text in texts:
        if digests:
            found |= digests & digests_in((text,))
        for place in _PASTE.finditer(text) if pastes else ():
            ends = (text[place.start() : place.start() + length] for length in lengths)
            found.update(pastes[spelt] for spelt in ends if spelt in pastes)
    return found


def digests_in(texts: Iterable[bytes]) -> set[str]:
    """The digests that stand in texts as those of media files."""
    return {found.decode() for text in texts for pattern in _DIGESTS for found in pattern.findall(text)}


def paths_in(lists: Iterable[bytes]) -> set[str]:
    """The paths that lists of media name, each list JSON as admissions hold it."""
    found: set[str] = set()
    for text in lists:
        for part in json.loads(text.decode("utf-8", "surrogateescape")):
            for entry in part if isinstance(part, list) else ():
                if isinstance(entry, dict) and isinstance(entry.get("path"), str):
                    found.add(entry["path"])
    return found


def inode_of(path: str) -> Inode | None:
    """What a file is, whatever its name; None where it is gone."""
    try:
        found = os.lstat(path)
    except (OSError, ValueError):
        return None
    return found.st_dev, found.st_ino


def inodes_of(paths: Iterable[str]) -> set[Inode]:
    """The same for many paths."""
    return {inode for path in paths if (inode := inode_of(path)) is not None}


def _spellings(name: str) -> set[bytes]:
    escaped = json.dumps(name)[1:-1]
    return {os.fsencode(name), escaped.encode(), json.dumps(escaped)[1:-1].encode(), _quoted(name)}


def _quoted(name: str) -> bytes:
    return quote(os.fsencode(name)).encode()
