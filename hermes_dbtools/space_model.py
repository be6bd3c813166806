"""The values that say what takes how much room; they hold names, ids, counts and bytes only."""

from __future__ import annotations

from typing import Literal

import msgspec

from .model import ShapeSummary
from .report_document import ToolDocument

Kind = Literal["table", "index", "search", "sqlite"]


class Tree(msgspec.Struct, frozen=True):
    """One tree of the file. `owner` is the table of an index and the search index of a shadow table, else its own name.

    `unused` bytes are free on its pages. `packed` estimates its bytes after a VACUUM.
    """

    name: str
    kind: Kind
    owner: str
    pages: int
    bytes: int
    unused: int
    packed: int


class FileSpace(msgspec.Struct, frozen=True):
    """The pages of the database. The bytes of `trees`, `free` and `reserved` add up to `bytes`; `lost` belongs to nothing.

    `free` pages are reused by the next rows; `reserved` ones SQLite keeps for itself: the page of its locks in files above 1 GiB
    and pointer maps. `packed` estimates the size that VACUUM INTO would give. All are bytes but `page_size` and `pages`.
    """

    page_size: int
    pages: int
    bytes: int
    free: int
    reserved: int
    lost: int
    trees: tuple[Tree, ...]
    packed: int


class SourceSpace(msgspec.Struct, frozen=True):
    """The sessions of one source; `bytes` are those of their values and their messages'. Rows without a session have none."""

    source: str
    sessions: int
    messages: int
    bytes: int


class SessionSpace(msgspec.Struct, frozen=True):
    """One session, or an id that has messages and no row. An id that is no text is written as `hex:…`."""

    session: str
    source: str
    messages: int
    bytes: int
    row: bool


class Orphans(msgspec.Struct, frozen=True):
    """Rows of a table that name a session that has no row."""

    table: str
    rows: int
    bytes: int


class FileGroup(msgspec.Struct, frozen=True):
    """Files beside the database. `unread` counts folders and files that could not be looked at."""

    group: Literal["sidecars", "copies", "dbtools", "media", "transcripts"]
    name: str
    files: int
    bytes: int
    unread: int = 0


class Images(msgspec.Struct, frozen=True):
    """Bytes of media: in the folders whose files the store names, of these what nothing names, in caches, inside messages.

    None where it could not be told. Only files older than a day are `unreferenced`; a session with less than 1 KiB of images
    inside its messages is not among `inline`.
    """

    on_disk: int | None
    referenced: int | None
    unreferenced: int | None
    cached: int | None
    inline: int | None
    inline_count: int | None


class Gain(msgspec.Struct, frozen=True):
    """What one answer of a repair would free: bytes of rows inside the file and of files beside it.

    `refused` counts findings for which the answer may not be planned now.
    """

    code: str
    slug: str
    answer: str
    safety: str
    rows: int
    files: int
    refused: int


class Space(msgspec.Struct, frozen=True):
    """Everything that takes room. `gains_unknown` says why the repairs could not be asked, or ''."""

    path: str
    shape: ShapeSummary
    file: FileSpace
    sources: tuple[SourceSpace, ...]
    sessions: tuple[SessionSpace, ...]
    session_total: int
    orphans: tuple[Orphans, ...]
    images: Images
    beside: tuple[FileGroup, ...]
    gains: tuple[Gain, ...]
    gains_unknown: str


class SpaceDocument(Space, frozen=True, forbid_unknown_fields=True):
    """The same as a document."""

    format: Literal["hermes-dbtools/space"]
    format_version: Literal[1]
    tool: ToolDocument
