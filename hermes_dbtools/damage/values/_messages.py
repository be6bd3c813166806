"""Ids of messages that the content pass marked, handed to SQL a portion at a time; reads no row itself."""

from __future__ import annotations

import json
from array import array
from collections.abc import Iterator

CHUNK = 10_000
"""Ids in one JSON list: about 100 KB."""


def portions(ids: array[int]) -> Iterator[str]:
    """The ids as JSON lists, in their order."""
    for first in range(0, len(ids), CHUNK):
        yield json.dumps(ids[first : first + CHUNK].tolist())
