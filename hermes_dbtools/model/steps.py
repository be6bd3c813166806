"""What mends a finding: statements, files and work on search indexes; computes nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import msgspec

from .values import Safety, Value


class Statement(msgspec.Struct, frozen=True):
    """One SQL statement of a step: a named block of the damage class's own SQL file, with its bindings.

    `expect` is the exact number of rows the statement itself must change. `split` names the block that lists
    (key, bytes) of the rows, for a statement that takes `:first` and `:last` and may be run by ranges of keys. `names`
    are the identifiers of the file that fill the places of a block. A `create` or `drop` changes no row: it makes or takes
    away the one index or trigger that `names` names.
    """

    block: str
    bindings: Mapping[str, Value]
    expect: int
    table: str
    operation: Literal["insert", "update", "delete", "create", "drop"]
    split: str | None = None
    names: Mapping[str, str] = {}

    @property
    def of_schema(self) -> bool:
        """Whether it changes the schema and no row."""
        return self.operation in ("create", "drop")

    @property
    def schema_object(self) -> str:
        """The index or trigger that a `create` or `drop` is about."""
        return self.names.get("index") or self.names["trigger"]


class FileCopy(msgspec.Struct, frozen=True):
    """A file put back at a missing place after COMMIT, byte for byte; the source stays where it is."""

    source: str
    target: str
    sha256: str
    size: int


class FileTrash(msgspec.Struct, frozen=True):
    """A file that leaves its place after COMMIT, into `trash/` beside the receipt; nothing is removed for good.

    It goes only as the regular file that was planned (`size` bytes, `mtime_ns` nanoseconds, `sha256` where it was read)
    and only while nothing names it; a file of `session` stays when that session is back. `kept` is its place beside the
    receipt, `left` why it stayed.
    """

    path: str
    size: int
    mtime_ns: int
    sha256: str = ""
    session: str = ""
    kept: str = ""
    left: str = ""


class SearchWork(msgspec.Struct, frozen=True):
    """What a step does to one full-text index. An index is made from messages, so an undo takes none of it back.

    `remake`: it goes and is made anew in the layout it had; `mend`: only the entries that are missing, or left, come and
    go; `remove`: it goes and is not made. `leftovers` are tables that go, `marks` keys of `state_meta` that go.
    """

    index: str
    work: Literal["remake", "mend", "remove"]
    leftovers: tuple[str, ...] = ()
    marks: tuple[str, ...] = ()


class Step(msgspec.Struct, frozen=True):
    """What mends one finding: statements in order; files put back, or moved away, after COMMIT; work on search indexes."""

    code: str
    slug: str
    key: str
    answer: str
    title: str
    session_ids: tuple[Value, ...]
    statements: tuple[Statement, ...] = ()
    files: tuple[FileCopy, ...] = ()
    bytes_freed: int = 0
    trash: tuple[FileTrash, ...] = ()
    search: tuple[SearchWork, ...] = ()


class Remedy(msgspec.Struct, frozen=True):
    """One possible answer to a finding. An answer without steps (`report`) leaves the rows as they are.

    `refused` says why this answer may not be planned for this finding, whatever was chosen.
    """

    answer: str
    safety: Safety
    step: Step | None = None
    refused: str | None = None
