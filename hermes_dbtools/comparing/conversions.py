"""Tell which differences a documented step of an upgrade explains; reads only what a step moved elsewhere.

The steps are those of the released stores (hermes-agent up to 0.19.0, async-hermes-agent 0.20.4.1): each either names the
number of the schema at which it runs once, or proves itself by the value. What is not listed here counts as a change, such as
a title that is cleared because a newer session has the same one.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass

import apsw

from .. import queries
from ..model import Value
from ..shape import Shape
from .rows import FILE

GATEWAY_COLUMNS = (
    "session_key", "chat_id", "chat_type", "thread_id", "display_name", "origin_json", "expiry_finalized",
)  # fmt: skip

BOOKKEEPING = (
    "fts_",
    "last_auto_prune",
    "ghost_session_prune_v1",
    "orphaned_compression_finalize_v1",
    "telegram_dm_topic_schema_version",
    "store_instance_id",
    "store_created_at_utc",
    "db_file_generation",
    "hermes_dbtools.",
)
"""Beginnings of the keys of `state_meta` under which the store, or this tool, keeps notes about itself."""

MOVING = {
    "schema_version": "the number of the schema, told under shape",
    "compression_locks": "locks come and go with the programs that hold them",
    "session_turn_leases": "leases come and go with the programs that hold them",
    "gateway_heartbeats": "every process writes its own",
    "runtime_epoch": "counts the starts of the gateway",
    "session_model_usage_v21": "a table that a step of an upgrade fills and removes",
    "telegram_dm_topic_bindings_new": "a table that a step of an upgrade fills and removes",
}
"""Tables that are not compared, and why."""


@dataclass(frozen=True, slots=True)
class Upgrade:
    """Two states of a store: their shapes, and the connection to the later one."""

    before: Shape
    after: Shape
    connection: apsw.Connection

    def passed(self, step: int) -> bool:
        """Whether the number of the schema went past a step."""
        first, last = self.before.schema_version, self.after.schema_version
        return first is not None and last is not None and first < step <= last


@dataclass(frozen=True, slots=True)
class Difference:
    """One column of a row that has another value now. `key` is the row's own, where it has one."""

    table: str
    column: str
    key: Value
    before: Value
    after: Value


def explained(upgrade: Upgrade, difference: Difference) -> str:
    """The step that makes this difference, or '' where none does."""
    rule = _RULES.get((difference.table, difference.column))
    if rule is None:
        return ""
    name, explains = rule
    return name if explains(upgrade, difference) else ""


def is_bookkeeping(table: str, key: Value) -> bool:
    """Whether a row is a note of the store, or of this tool, about itself."""
    word = _text(key)
    return table == "state_meta" and word is not None and word.startswith(BOOKKEEPING)


def _delegate_marker(upgrade: Upgrade, difference: Difference) -> bool:
    """Step 16 adds a marker to the configuration of what it takes for the run of a sub-agent."""
    if not upgrade.passed(16):
        return False
    before, after = _object(difference.before or "{}"), _object(difference.after)
    if before is None or after is None or "_delegate_from" in before:
        return False
    return after.pop("_delegate_from", None) is not None and after == before


def _gateway_metadata(upgrade: Upgrade, difference: Difference) -> bool:
    """Step 18 fills empty columns from sessions.json."""
    return upgrade.passed(18) and difference.before in (None, 0) and difference.after is not None


def _moved_prompt(upgrade: Upgrade, difference: Difference) -> bool:
    """Step 25 moves a prompt to `system_prompts`; it may take several starts."""
    if difference.before is None or difference.after is not None:
        return False
    query = queries.choose(FILE, "stored-prompt", upgrade.after.has)
    if query is None:
        return False
    stored = list(upgrade.connection.execute(query.sql, {"id": difference.key}))
    return len(stored) == 1 and _digest(stored[0][0]) == _digest(difference.before)


def _was_empty(_upgrade: Upgrade, difference: Difference) -> bool:
    """The store fills these when it opens a file or reads a page of it."""
    return difference.before is None and difference.after is not None


def _derived(_upgrade: Upgrade, _difference: Difference) -> bool:
    """Computed by triggers from other columns."""
    return True


def _set_active(_upgrade: Upgrade, difference: Difference) -> bool:
    """Every start sets a missing flag."""
    return difference.before is None and difference.after == 1


Rule = Callable[[Upgrade, Difference], bool]

_RULES: dict[tuple[str, str], tuple[str, Rule]] = {
    ("sessions", "model_config"): ("delegate marker added (step 16)", _delegate_marker),
    **{("sessions", name): ("filled from sessions.json (step 18)", _gateway_metadata) for name in GATEWAY_COLUMNS},
    ("sessions", "system_prompt"): ("prompt moved to system_prompts (step 25)", _moved_prompt),
    ("messages", "active"): ("active flag set", _set_active),
    ("messages", "message_uid"): ("message_uid filled", _was_empty),
    ("messages", "display_identity"): ("order of display computed", _derived),
    ("messages", "display_order"): ("order of display computed", _derived),
}  # fmt: skip


def _text(value: Value) -> str | None:
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return value if isinstance(value, str) else None


def _object(value: Value) -> dict[str, object] | None:
    try:
        parsed = json.loads(_text(value) or "")
    except (ValueError, RecursionError):
        return None
    return parsed if isinstance(parsed, dict) else None


def _digest(value: Value) -> bytes:
    data = value if isinstance(value, bytes) else str(value).encode("utf-8", "surrogatepass")
    return hashlib.sha256(data).digest()
