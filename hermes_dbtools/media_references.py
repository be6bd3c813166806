"""Read the thirteen forms in which a store names media files; never looks at the disk or at a database.

Facts of upstream: admissions and held paths in `gateway/session_ingress_media.py`, images of transcripts in
`hermes_state_media.py`, composer images in `hermes_cli/desktop_composer_images.py`. The forms INLINE_API and
INLINE_CONTENT hold the bytes themselves (or `hermes-retained:<sha256>`), and RETIRED is a wish to delete a
file: none of them needs one, so they are not read here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum, IntEnum
from itertools import islice
from typing import Any
from urllib.parse import unquote


class Form(IntEnum):
    """Where a reference stands; the numbers are those of the runbook."""

    API_IMAGE = 1
    ATTACHMENT = 2
    NATIVE_INPUT = 3
    HOSTED_DOCUMENT = 4
    INLINE_API = 5
    IMAGE_NOTE = 6
    INLINE_CONTENT = 7
    TRANSCRIPT_IMAGE = 8
    COMPOSER_IMAGE = 9
    PASTED_FILE = 10
    DELIVERY = 11
    OTHER_COLUMN = 12
    RETIRED = 13


class Root(Enum):
    """The folder that owns a file, which says what it means when the file is gone."""

    NATIVE_INPUTS = "native-inputs"
    TRANSCRIPT_MEDIA = "transcript_media"
    COMPOSER_IMAGES = "composer-images"
    COMPOSER_PASTES = "composer-pastes"
    SWEPT_CACHE = "swept cache"


@dataclass(frozen=True, slots=True)
class Reference:
    """One reference that stands in a field of its own. `size` is bytes; `path` may hold surrogate escapes.

    `key` is the row's key and `place` where it stands in the row. Held means that upstream's clean-up of
    images stops when the file is gone.
    """

    form: Form
    table: str
    key: int
    place: str
    path: str
    sha256: str | None
    size: int | None
    held: bool
    root: Root


@dataclass(frozen=True, slots=True)
class Mention:
    """A path in text. Where it ends is a guess: `token` is the likeliest, `line` the text from its begin."""

    form: Form
    token: str
    line: str

    def readings(self) -> Iterator[str]:
        """All that the path may be, likeliest first: cut at other places, unescaped, percent-decoded."""
        seen: set[str] = set()
        first, last = self.line.split("]", 1)[0], self.line.rpartition("]")[0]
        endings = (self.line[: found.end()] for found in islice(_ENDING.finditer(self.line), MOST_ENDINGS))
        for value in (self.token, first, last, *endings):
            cut = value.removeprefix("file://").strip()
            bare = _ESCAPED_END.split(cut.rstrip(_TRAILING), maxsplit=1)[0]
            for reading in (cut, bare, _LINES.sub("", bare), _unescaped(bare), unquote(bare)):
                if reading not in seen and reading.startswith("/") and not is_windows(reading):
                    seen.add(reading)
                    yield reading


LISTS = (
    ("$.api_turn_v1.media", Form.API_IMAGE),
    ("$.attachments_v1.media", Form.ATTACHMENT),
    ("$.native_text_v1.media", Form.NATIVE_INPUT),
)
"""The three lists of an admission, in the order in which the store's query gives them."""

MOST_ENDINGS = 4
LONGEST_PATH = 4096
"""Characters; what is longer is no path on any system."""

API_IMAGE_NAME = re.compile(r"api_[0-9a-f]{32}\.(?:png|jpg|gif|webp)")
SHA256 = re.compile(r"[0-9a-f]{64}")

_HOSTED_LINE = re.compile(r"\n\[Shared attachment\] file: ([^\n]+)\n")
_MARK = re.compile(
    r"(\[Image attached(?: at)?:|@image:|@file:|MEDIA:)[ \t]*(`[^`\n]+`|\"[^\"\n]+\"|'[^'\n]+'|\S+)"
)
_MARKS = {"@image:": Form.COMPOSER_IMAGE, "@file:": Form.PASTED_FILE, "MEDIA:": Form.DELIVERY}
_WINDOWS = re.compile(r"[A-Za-z]:[\\/]|\\\\")
_ENDING = re.compile(r"\.[A-Za-z0-9]{1,5}\b")
_LINES = re.compile(r":\d+(?:-\d+)?$")
_ESCAPED_END = re.compile(r"\\[nrt\"]")
_QUOTES = "`\"'"
_TRAILING = ".,;:!?)]}>*_\"'`\\"


def admission_references(seq: int, terminal: bool, lists: bytes) -> Iterator[Reference]:
    """The references of one admission, from the JSON array of its three lists (null where it has none).

    Entries that are not objects with a path in text are left out; so are paths of another operating system.
    """
    for (place, form), entries in zip(LISTS, _list(_parsed(lists)), strict=False):
        for index, entry in enumerate(_list(entries)):
            path = entry.get("path") if isinstance(entry, dict) else None
            if not isinstance(path, str) or is_windows(path):
                continue
            sha256, size = entry.get("sha256"), entry.get("size")
            yield Reference(
                form,
                "session_admissions",
                seq,
                f"{place}[{index}]",
                path,
                sha256 if isinstance(sha256, str) and SHA256.fullmatch(sha256) else None,
                size if type(size) is int and size >= 0 else None,
                held=form is Form.API_IMAGE or not terminal,
                root=Root.NATIVE_INPUTS,
            )


def hosted_references(seq: int, text: bytes, native_inputs: str) -> Iterator[Reference]:
    """The documents that the prompt of a hosted admission names, held while it is not terminal.

    Upstream counts only a content-addressed name right under `native_inputs` that is no API image; other
    lines say where a working copy lies and hold nothing.
    """
    for index, path in enumerate(_HOSTED_LINE.findall(_decoded(text))):
        root, _, rest = path.rpartition("/native-inputs/")
        digest, _, name = rest.partition("/")
        if (
            f"{root}/native-inputs" != native_inputs
            or not SHA256.fullmatch(digest)
            or not name
            or "/" in name
        ):
            continue
        if not API_IMAGE_NAME.fullmatch(name):
            place = f"$.text line {index}"
            yield Reference(
                Form.HOSTED_DOCUMENT,
                "session_admissions",
                seq,
                place,
                path,
                digest,
                None,
                True,
                Root.NATIVE_INPUTS,
            )


def transcript_references(message_id: int, images: bytes, folder: str) -> Iterator[Reference]:
    """The files in `folder` that a `media_content` needs, from the JSON array of its version and images."""
    parsed = _list(_parsed(images))
    if len(parsed) != 2 or parsed[0] != 1:
        return
    for index, image in enumerate(_list(parsed[1])):
        for name in ("sha256", "encoded_sha256") if isinstance(image, dict) else ():
            digest = image.get(name)
            if isinstance(digest, str) and SHA256.fullmatch(digest):
                yield Reference(
                    Form.TRANSCRIPT_IMAGE,
                    "messages",
                    message_id,
                    f"$.images[{index}].{name}",
                    f"{folder}/{digest}",
                    digest,
                    None,
                    held=False,
                    root=Root.TRANSCRIPT_MEDIA,
                )


def mentions(content: bytes, *, other: bool = False) -> Iterator[Mention]:
    """The local paths that a text names, whether it is plain, JSON, or JSON behind a NUL byte.

    URLs, relative paths and paths of another operating system have no reading. `other` says that the text is
    of a column that only repeats what the content says.
    """
    for text in _texts(content):
        for found in _MARK.finditer(text):
            form = Form.OTHER_COLUMN if other else _MARKS.get(found.group(1), Form.IMAGE_NOTE)
            token, start = found.group(2), found.start(2)
            if token[0] in _QUOTES and token[-1] == token[0] and len(token) > 2:
                yield Mention(form, token[1:-1], "")
                continue
            end = text.find("\n", start, start + LONGEST_PATH)
            line = text[start : end if end >= 0 else start + LONGEST_PATH]
            if form is Form.IMAGE_NOTE or found.group(1)[0] == "[":
                token = line.split("]", 1)[0]
            yield Mention(form, token[:LONGEST_PATH], line)


def is_windows(path: str) -> bool:
    """Whether a path is written as Windows does: a drive or a share."""
    return _WINDOWS.match(path) is not None


def _texts(content: bytes) -> Iterator[str]:
    """The text itself, or where it is JSON each string in it; malformed JSON is read as it stands."""
    body = content.removeprefix(b"\0json:")
    if content[:1] == b"\0" or body[:1] in (b"[", b"{"):
        parsed = _parsed(body)
        if parsed is not None:
            yield from _strings(parsed)
            return
    yield _decoded(body)


def _strings(parsed: object) -> Iterator[str]:
    waiting = [parsed]
    while waiting:
        value = waiting.pop()
        if isinstance(value, str):
            if not value.startswith("data:"):
                yield value
        elif isinstance(value, dict):
            waiting.extend(reversed(value.values()))
        elif isinstance(value, list):
            waiting.extend(reversed(value))


def _parsed(encoded: bytes) -> object:
    try:
        return json.loads(_decoded(encoded))
    except (ValueError, RecursionError):
        return None


def _decoded(value: bytes) -> str:
    return value.decode("utf-8", "surrogateescape")


def _unescaped(value: str) -> str:
    if "\\" not in value:
        return value
    parsed = _parsed(b'"' + value.encode("utf-8", "surrogateescape") + b'"')
    return parsed if isinstance(parsed, str) else value


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []
