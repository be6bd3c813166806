"""Name the keys under which a delete keeps what a finished request may still ask for; reads and writes nothing.

A session of a store with a ledger is retired, not only deleted: each admission, worker and result goes on under
a terminal key, so that the same request sent again is answered and not run a second time, and a tombstone keeps
the id from being used anew (upstream: `hermes_state_mutation_retirement.py`, `hermes_state_terminal.py`; the
digests: `hermes_state_keys.py`).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

TERMINAL_ADMISSION = "gateway.terminal_admission.v1."
TERMINAL_IDENTITY = "gateway.terminal_identity.v1."
TERMINAL_WORKER = "gateway.terminal_worker.v1."
RESULT = "gateway.admission.result.v1."
MUTATION = "gateway.mutation.v1."
RETIRED_MEDIA = "gateway.media.retired.v1."
TOMBSTONE = "gateway.retired_session.v1."

ADMISSION_COLUMNS = frozenset(
    (
        *("seq", "admission_id", "request_id", "principal_id", "target_session_id", "lineage_json"),
        *("payload_json", "payload_digest", "intent", "status", "outcome", "owner_epoch", "generation"),
    )
)
EXECUTION_COLUMNS = frozenset(
    (
        *("execution_id", "session_id", "kind", "owner_epoch", "generation", "status"),
        *("adoption_digest", "last_sequence"),
    )
)
RECEIPT_COLUMNS = frozenset(("execution_id", "sequence", "payload_digest", "result_json"))
"""Columns of the ledger that a terminal key keeps; one that is not known here would be lost by a retirement."""


def fingerprint(target: str, payload: Mapping[str, Any]) -> str:
    """The digest by which the store knows a request again: SHA-256 of its target and payload as sorted JSON."""
    text = json.dumps(
        {"target": target, "payload": dict(payload)},
        ensure_ascii=False,
        sort_keys=True,
        separators=(",", ":"),
        allow_nan=False,
    )
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def identity_key(principal: str, session_id: str, request: str) -> str:
    """The key that leads from a request, sent again, to the admission it once was."""
    return TERMINAL_IDENTITY + fingerprint(session_id, {"principal": principal, "request": request})


def closing_digest(session_id: str) -> str:
    """The digest of the one receipt of a worker whose result outlives its session: that it has finished."""
    return fingerprint(session_id, {"operation": "execution.finish", "payload": {}})


def retired_media_key(path: str) -> str:
    """The key of the wish to remove a file once nothing holds it."""
    return RETIRED_MEDIA + hashlib.sha256(path.encode("utf-8", "surrogatepass")).hexdigest()
