"""Turn what a log collector keeps into the line that the program wrote: without colours, out of a JSON record.

Keeps nothing, and leaves a line that is no such record as it is.
"""

from __future__ import annotations

import json
import re

_COLOUR = re.compile(rb"\x1b\[[0-9;:?]*[ -/]*[@-~]")
_TEXT = ("message", "msg", "log", "event", "text")
_ERROR = (
    "exc_info",
    "exc_text",
    "exception",
    "error",
    "err",
    "traceback",
    "stack",
    "stack_trace",
    "stacktrace",
)
_TIME = ("timestamp", "@timestamp", "time", "ts", "asctime", "datetime")
_LEVEL = ("level", "levelname", "severity", "lvl", "log.level")
_SESSION = ("session_id", "sessionid", "session", "session_tag")
_LEVELS = {
    "DEBUG": "DEBUG",
    "INFO": "INFO",
    "NOTICE": "INFO",
    "WARN": "WARNING",
    "WARNING": "WARNING",
    "ERR": "ERROR",
    "ERROR": "ERROR",
    "FATAL": "CRITICAL",
    "CRITICAL": "CRITICAL",
}


def without_colours(block: bytes) -> bytes:
    """A part of a log without the escapes that colour it."""
    return _COLOUR.sub(b"", block) if b"\x1b" in block else block


def told(line: bytes) -> bytes:
    """The line as the program wrote it: of a JSON record its time, level, session, text and error; else the line itself."""
    start = line.find(b"{")
    if start < 0 or not line.rstrip().endswith(b"}"):
        return line
    try:
        record = json.loads(line[start:])
    except (ValueError, RecursionError):
        return line
    if not isinstance(record, dict):
        return line
    return _line({str(key).lower(): value for key, value in record.items()}, line)


def _line(record: dict[str, object], line: bytes) -> bytes:
    text = _word(record, _TEXT)
    level = _LEVELS.get(_word(record, _LEVEL).upper(), "")
    session = _word(record, _SESSION)
    errors = [value for name in _ERROR if isinstance(value := record.get(name), str)]
    if not text and not errors:
        return line
    parts = [text, *errors]
    if level:
        parts = [_word(record, _TIME), level, *([f"[{session}]"] if session else []), *parts]
    return " ".join(" ".join(parts).split()).encode("utf-8", "replace")


def _word(record: dict[str, object], names: tuple[str, ...]) -> str:
    """The first of these fields that is text."""
    return next((value for name in names if isinstance(value := record.get(name), str)), "")
