"""Say which files something in a store still names, right before they are moved away; changes nothing.

A file of `sessions/` belongs to its session. A file of the media folders is held by admissions and named by messages, and one
that shares its bytes with a held file (a hard link) is held too. A digest, or the name of a paste, counts wherever it stands.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence

import apsw

from . import database, queries
from .home import Home
from .media_names import TEXT_COLUMNS, WORDS, folder_of, inode_of, inodes_of, name_of, named_in, paths_in
from .model import FileTrash
from .shape import Shape, read_shape
from .trash import Named

FILE = "named_files"


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
    media = [file.path for file in files if folder_of(file.path)]
    if media:
        words = sorted({word for path in media for word in WORDS[folder_of(path)]})
        still = named_in(texts(connection, shape, words), {name_of(path) for path in media})
        inodes = inodes_of(paths_in(_rows(connection, shape, "held-lists")))
        for path in media:
            if name_of(path) in still:
                reasons[path] = "something names it"
            elif inode_of(path) in inodes:
                reasons[path] = "a file that is held has the same bytes"
    return reasons


def texts(connection: apsw.Connection, shape: Shape, words: Sequence[str]) -> Iterator[bytes]:
    """Every text of the store with one of these words, but for wishes to remove a file."""
    columns = tuple(column for column in TEXT_COLUMNS if shape.has(f"messages.{column}"))
    for word in words:
        sql = queries.fill(queries.statement(FILE, "message-texts"), columns=columns)
        for (value,) in connection.execute(sql, {"word": word}):
            yield value
        for block in ("admission-texts", "stored-texts"):
            yield from _rows(connection, shape, block, word)


def _back(connection: apsw.Connection, files: Sequence[FileTrash]) -> dict[str, str]:
    ids = sorted({file.session for file in files if file.session})
    if not ids:
        return {}
    sql = queries.statement(FILE, "sessions-there")
    there = {str(row[0]) for row in connection.execute(sql, {"ids": json.dumps(ids)})}
    return {file.path: "its session is there again" for file in files if file.session in there}


def _rows(connection: apsw.Connection, shape: Shape, block: str, word: str = "") -> Iterator[bytes]:
    query = queries.choose(FILE, block, shape.has)
    if query is not None:
        for (value,) in connection.execute(query.sql, {"word": word} if word else {}):
            yield value
