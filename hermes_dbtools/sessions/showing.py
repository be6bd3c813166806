"""Gather all that there is to say of one session: family, guard, rows and bytes, images, receipts, findings; changes nothing."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec

from .. import receipts, settle
from ..damage._declare import ScanContext, whole
from ..home import Home
from ..media_files import MediaFolders, State, folders_of, is_file, state_of
from ..media_references import admission_references, mentions, transcript_references
from ..model import Finding, Receipt, Value
from ..scanning import ScanOptions, scan
from .lineage_tree import FILE, Place, family
from .listing import Listed, listed
from .reading import look, named

SOFT = (
    ("compression_locks", "session_id"),
    ("session_turn_leases", "conversation_id"),
    ("async_delegations", "parent_session_id"),
    ("async_delegations", "origin_session_id"),
)
"""Columns that name a session without declaring it."""


@dataclass(frozen=True, slots=True)
class TableShare:
    """How much of a table belongs to a session; `bytes` are those of the values."""

    table: str
    column: str
    rows: int
    bytes: int


@dataclass(frozen=True, slots=True)
class Image:
    """A file that the session names: in which form, whether it is there, how often it is named."""

    path: str
    form: str
    state: str
    times: int


@dataclass(frozen=True, slots=True)
class Member:
    """A session of the family as the list has it, at its place."""

    place: Place
    listed: Listed


@dataclass(frozen=True, slots=True)
class Shown:
    """Everything about one session. `scan_error` says why its findings are not known, or ''."""

    session: Listed
    family: tuple[Member, ...]
    tables: tuple[TableShare, ...]
    settings: tuple[tuple[str, int], ...]
    images: tuple[Image, ...]
    receipts: tuple[Receipt, ...] = ()
    findings: tuple[Finding, ...] = ()
    scan_error: str = ""


@dataclass(frozen=True, slots=True)
class ShowOptions:
    """`now` is epoch seconds."""

    now: float = field(default_factory=time.time)


class _Steps(msgspec.Struct):
    """What a stored plan says of its sessions."""

    steps: list[dict[str, Any]]


def show(
    home: Home,
    word: str,
    options: ShowOptions | None = None,
    progress: Callable[[str], None] = lambda _what: None,
) -> Shown:
    """Everything about the session that a word means: an id, its unique beginning, or a title.

    Raises UsageError where it means none or several, CouldNotLook where the file cannot be read.
    """
    options = options or ShowOptions()
    shown = look(home, options.now, lambda context: _shown(context, word))
    session_id = shown.session.id
    asked = ScanOptions(limit=None, fail_on=None, now=options.now)
    (report,) = scan((str(home.database),), asked, progress).databases
    findings = [
        finding
        for result in report.results
        for finding in result.findings
        if session_id in finding.session_ids or finding.key == session_id
    ]
    applied = [receipt for receipt in settle.proven(home) if session_id in _sessions_of(home, receipt)]
    return replace(shown, receipts=tuple(applied), findings=tuple(findings), scan_error=report.error)


def _shown(context: ScanContext, word: str) -> Shown:
    session_id = named(context, word)
    everything = {one.id: one for one in listed(context)}
    places = family(context, session_id)
    members = tuple(Member(place, everything[place.relative.id]) for place in places)
    settings = tuple(
        (str(prefix).rstrip(".:"), whole(size))
        for prefix, size in context.rows(FILE, "settings", {"id": session_id})
    )
    return Shown(
        everything[session_id],
        members,
        tuple(_tables(context, session_id)),
        settings,
        tuple(_images(context, session_id)),
    )


def _tables(context: ScanContext, session_id: str) -> Iterator[TableShare]:
    """The rows of each table that name the session, those of none left out."""
    for name in context.shape.canonical_tables:
        table = context.shape.tables[name]
        declared = {
            key.columns[0] for key in table.foreign_keys if key.parent == "sessions" and len(key.columns) == 1
        }
        soft = {column for owner, column in SOFT if owner == name and column in table.columns}
        for column in ("id",) if name == "sessions" else sorted(declared | soft):
            names = {"table": name, "column": column, "columns": tuple(table.columns)}
            for rows, size in context.rows(FILE, "rows-of", {"id": session_id}, names):
                if rows:
                    yield TableShare(name, column, whole(rows), whole(size))
    for rows, size in context.rows(FILE, "routes", {"id": session_id}):
        if rows:
            yield TableShare("gateway_routing", "entry_json", whole(rows), whole(size))


def _images(context: ScanContext, session_id: str) -> Iterator[Image]:
    folders = folders_of(context.home) if context.home is not None else None
    found: Counter[tuple[str, str, str]] = Counter()
    for seq, terminal, lists in context.rows(FILE, "admissions", {"id": session_id}):
        for one in admission_references(whole(seq), bool(terminal), _bytes(lists)):
            state = folders.held(one.path) if folders is not None and one.held else _state(one.path)
            form = one.form.name.lower().replace("_", " ") + (" (held)" if one.held else "")
            found[one.path, form, state.value] += 1
    for key, images, content in context.rows(FILE, "images", {"id": session_id}):
        for path, form, state in _of_message(whole(key), _bytes(images), _bytes(content), folders):
            found[path, form, state.value] += 1
    for (path, form, word), times in sorted(found.items()):
        yield Image(path.encode("utf-8", "backslashreplace").decode("utf-8"), form, word, times)


def _of_message(
    key: int, images: bytes, content: bytes, folders: MediaFolders | None
) -> Iterator[tuple[str, str, State]]:
    place = folders.transcript_media.place if folders is not None else ""
    if images and place:
        for one in transcript_references(key, images, place):
            yield one.path, one.form.name.lower().replace("_", " "), _state(one.path)
    for mention in mentions(content):
        readings = list(mention.readings())
        if readings:
            there = next((path for path in readings if is_file(path)), None)
            form = mention.form.name.lower().replace("_", " ")
            yield there or readings[0], form, State.FINE if there else State.MISSING


def _state(path: str) -> State:
    try:
        return state_of(path)
    except OSError:
        return State.OUTSIDE


def _sessions_of(home: Home, receipt: Receipt) -> set[Value]:
    """The sessions of a receipt's plan; none where the plan is gone or no plan."""
    try:
        content = (home.dbtools_dir / receipt.id / receipts.PLAN).read_bytes()
        steps = msgspec.json.decode(content, type=_Steps).steps
    except (OSError, msgspec.MsgspecError):
        return set()
    return {
        one for step in steps for one in step.get("session_ids", ()) if isinstance(one, str | int | float)
    }


def _bytes(value: Value) -> bytes:
    return value if isinstance(value, bytes) else b""
