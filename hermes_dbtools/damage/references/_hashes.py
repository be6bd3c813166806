"""Name a stored prompt without printing it: by its hash, or by a digest where the key is none."""

from __future__ import annotations

import hashlib
import re

from ...model import Value

_HASH = re.compile(r"[0-9a-f]{64}")


def named_hash(prompt: Value) -> str:
    """The whole hash; of anything else, which may be a prompt, only that it is none and a digest."""
    if isinstance(prompt, str) and _HASH.fullmatch(prompt):
        return prompt
    raw = prompt if isinstance(prompt, bytes) else str(prompt).encode("utf-8", "surrogatepass")
    return f"not-a-hash:{hashlib.sha256(raw).hexdigest()[:12]}"
