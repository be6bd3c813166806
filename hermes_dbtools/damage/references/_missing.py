"""Say which session ids without a row orphaned-messages will give one; changes nothing.

What names such an id is valid again once it is adopted, so it is nobody else's finding.
"""

from __future__ import annotations

import json
from collections.abc import Iterable

from ...model import Value
from .._declare import ScanContext, text

FILE = "damage/references/_missing"


def adopted_ids(context: ScanContext, ids: Iterable[Value]) -> frozenset[Value]:
    """Those of the ids that get their session row back; one that is not UTF-8 text never does."""
    words = sorted({one for one in ids if isinstance(one, str)})
    if not words:
        return frozenset()
    return frozenset(text(row[0]) for row in context.rows(FILE, "adoptable", {"ids": json.dumps(words)}))
