"""Take out of one line of a log what may be told of it: its time, its session, its kind; keeps nothing else.

Facts of upstream (`hermes_logging.py`, 0.13.0 to 0.20.4): `2026-05-28 20:26:40,123 WARNING [SESSION] logger: text`,
on the console `20:26:40 - logger - WARNING [SESSION] - text`. Other ids stand behind the words of `_PLACES`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime

from .failures import Failure, Failures

HEAD = 120
"""Bytes of a line in which its time and level stand, whatever a service manager has put before them."""

_TIME = re.compile(rb"\b(\d{4}-\d\d-\d\d)[ T](\d\d:\d\d:\d\d)")
_LEVEL = re.compile(rb"\b(DEBUG|INFO|WARNING|ERROR|CRITICAL)\b(?: \[([^\[\]\s]{1,200})\])?(?= )")
_ID = rb"([A-Za-z0-9][\w.-]{3,127})"
_USUAL = re.compile(rb"(?<![\w.-])(?:[a-z]+_)*\d{8}_\d{6}_[0-9a-f]{6,}(?![\w.-])")
_PLACES = re.compile(
    rb"(?:\bsession(?:_id)?=|\b(?:for|on|by|parent|active|delete) session:? |\balready ended: |\bpublication: "
    rb"|\bfailed for |\btimed out for |\bqueue full for |_lock\(|\bcold session |-> )'?" + _ID
)
_QUOTED = re.compile(rb"'[^']*'|\"[^\"]*\"")
_TITLE_ENDS = b"is already in use by session"


@dataclass(frozen=True, slots=True)
class Entry:
    """What a line says: its kind, the ids it names, when it was written as the log has it, and the statement."""

    failure: Failure
    ids: tuple[str, ...]
    time: str
    statement: str


@dataclass(frozen=True, slots=True)
class Head:
    """What the beginning of a line says."""

    time: str
    level: str
    tag: str


def head_of(line: bytes) -> Head:
    """Time, level and session of a line, '' where it does not say."""
    start = line[:HEAD]
    time = _TIME.search(start)
    level = _LEVEL.search(line[: HEAD + 200])
    tag = level.group(2) if level else None
    return Head(
        f"{time.group(1).decode()} {time.group(2).decode()}" if time else "",
        level.group(1).decode() if level else "",
        tag.decode("utf-8", "replace") if tag and _tells(tag) else "",
    )


def entry_of(line: bytes, lower: bytes, owner: bytes, kinds: Failures) -> Entry | None:
    """What a line says, None where it is about nothing of the store.

    `owner` is the line above that begins an entry, for lines of a traceback; the line itself where it begins one.
    """
    text = lower.decode("utf-8", "replace")
    failure = kinds.of(text)
    if failure is None:
        return None
    head = head_of(owner)
    if head.level == "INFO":  # what people write to the agent is logged there
        return None
    named = list(_named(line))
    if owner is not line:
        named += _named(owner)
    ids = tuple(dict.fromkeys([*([head.tag] if head.tag else []), *named]))
    statement = kinds.statement(text)
    if not statement and owner is not line:
        statement = kinds.statement(owner.lower().decode("utf-8", "replace"))
    return Entry(failure, ids, head.time, statement)


def seconds(time: str) -> float | None:
    """A time of a log on a scale of seconds, whatever its zone."""
    try:
        return datetime.fromisoformat(time).timestamp() if time else None
    except ValueError:
        return None


def begins(line: bytes) -> bool:
    """Whether a line begins an entry: a collector puts a time before every line, the program a level before its first."""
    return bool(_TIME.search(line[:HEAD]) and _LEVEL.search(line[: HEAD + 200]))


def _named(line: bytes) -> list[str]:
    """The ids that stand where the store writes ids; never a word of a title or of a message."""
    place = line.lower().rfind(_TITLE_ENDS)
    told = line[place:] if place >= 0 else _QUOTED.sub(lambda found: _kept(found.group(0)), line)
    found = [match.group(0) for match in _USUAL.finditer(told)]
    found += [match.group(1).rstrip(b".-") for match in _PLACES.finditer(told)]
    return [one.decode("utf-8", "replace") for one in dict.fromkeys(found) if _tells(one)]


def _kept(quoted: bytes) -> bytes:
    """A quoted word that can only be an id stays, everything else in quotes goes."""
    return quoted if _USUAL.fullmatch(quoted[1:-1]) else b"''"


def _tells(word: bytes) -> bool:
    """Whether a word can be a session's id and not a number, a chat or a word of a sentence."""
    return (
        len(word) >= 4
        and re.search(rb"\d", word) is not None
        and re.search(rb"[A-Za-z_]", word) is not None
        and re.search(rb"[:@/+\x00-\x20\x7f]", word) is None
    )
