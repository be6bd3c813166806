"""Say which files something in a store still names, right before they are moved away; changes nothing.

A file of `sessions/` belongs to its session. A file of `native-inputs/` is held by admissions and named by messages, and one that
shares its bytes with a held file (a hard link) is held too. A digest that stands anywhere in a text counts as named.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

import apsw

from . import database, queries
from .home import Home
from .model import FileTrash
from .shape import Shape, read_shape
from .trash import Named

FILE = "named_files"
FOLDER = "native-inputs"

TEXT_COLUMNS = ("content", "api_content", "media_content", "display_metadata", "tool_calls")
"""Columns of messages that may name a file, as far as a file has them."""

_PLACE = re.compile(rb"native-inputs\\?/([0-9a-f]{64})")

Inode = tuple[int, int]


def of_connection(connection: apsw.Connection) -> Named:
    """The question, asked of an open store inside the caller's transaction."""
    return lambda files: named(connection, files)


def of_home(home: Home) -> Named:
    """The question, asked of the store of a home; each time anew."""
    return lambda files: database.read(home.database, lambda reading: named(reading.connection, files))


def named(connection: apsw.Connection, files: Sequence[FileTrash]) -> Mapping[str, str]:
    """Why each file that must stay does so, by its path."""
    shape = read_shape(connection)
    reasons = _back(connection, files)
    media = [file for file in files if FOLDER in file.path.split("/")]
    if media:
        digests = digests_in(texts(connection, shape))
        inodes = inodes_of(paths_in(_rows(connection, shape, "held-lists")))
        for file in media:
            if digest_of(file.path) in digests:
                reasons[file.path] = "something names it"
            elif inode_of(file.path) in inodes:
                reasons[file.path] = "a file that is held has the same bytes"
    return reasons


def texts(connection: apsw.Connection, shape: Shape) -> Iterator[bytes]:
    """Every text of the store that names the media folder, but for wishes to remove a file."""
    template = queries.statement(FILE, "message-texts")
    for column in TEXT_COLUMNS:
        if shape.has(f"messages.{column}"):
            for (value,) in connection.execute(queries.fill(template, column=column)):
                yield value
    for block in ("admission-texts", "stored-texts"):
        yield from _rows(connection, shape, block)


def digests_in(texts: Iterable[bytes]) -> set[str]:
    """The digests of the media folder that stand in texts, plain or escaped as JSON does it."""
    return {found.decode() for text in texts for found in _PLACE.findall(text)}


def digest_of(path: str) -> str:
    """The digest that names the folder of a media file."""
    return path.rsplit("/", 2)[-2] if path.count("/") > 1 else ""


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


def paths_in(lists: Iterable[bytes]) -> set[str]:
    """The paths that lists of media name, each list JSON as admissions hold it."""
    found: set[str] = set()
    for text in lists:
        for part in json.loads(text.decode("utf-8", "surrogateescape")):
            for entry in part if isinstance(part, list) else ():
                if isinstance(entry, dict) and isinstance(entry.get("path"), str):
                    found.add(entry["path"])
    return found


def _back(connection: apsw.Connection, files: Sequence[FileTrash]) -> dict[str, str]:
    ids = sorted({file.session for file in files if file.session})
    if not ids:
        return {}
    sql = queries.statement(FILE, "sessions-there")
    there = {str(row[0]) for row in connection.execute(sql, {"ids": json.dumps(ids)})}
    return {file.path: "its session is there again" for file in files if file.session in there}


def _rows(connection: apsw.Connection, shape: Shape, block: str) -> Iterator[bytes]:
    query = queries.choose(FILE, block, shape.has)
    if query is not None:
        for (value,) in connection.execute(query.sql):
            yield value
