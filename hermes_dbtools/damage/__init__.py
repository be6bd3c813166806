"""The registry of damage classes. Its order is the order of scan and of repair: causes before consequences."""

from __future__ import annotations

from ._declare import Damage
from .counters import session_counter_drift
from .lineage import (
    activity_after_end,
    branched_root_leftovers,
    closed_without_continuation,
    conflicting_markers,
    cut_lineages,
    duplicate_branches,
    empty_sessions,
    forked_continuations,
    hidden_by_upgrade,
    hidden_sessions,
    inconsistent_end_state,
    lineage_cycles,
    missing_identity,
    never_ended_sessions,
    orphaned_delegates,
    placeholder_sessions,
    unmarked_branches,
)
from .media import dangling_image_references
from .references import (
    dangling_delegations,
    dangling_routing,
    dangling_session_keys,
    foreign_key_violations,
    missing_parent_session,
    missing_system_prompt,
    orphaned_bindings,
    orphaned_messages,
    orphaned_usage,
    unreferenced_system_prompts,
)
from .runtime import orphaned_ledger_rows, resurrected_sessions, stale_leases, stuck_executions
from .search import unavailable_tokenizer
from .storage import split_wal, structural_damage, unreadable_file
from .values import invalid_json, invalid_text, invalid_timestamps, null_active

REGISTRY: tuple[Damage, ...] = (
    unreadable_file.DAMAGE,
    split_wal.DAMAGE,
    structural_damage.DAMAGE,
    unavailable_tokenizer.DAMAGE,
    orphaned_messages.DAMAGE,
    missing_parent_session.DAMAGE,
    orphaned_usage.DAMAGE,
    missing_system_prompt.DAMAGE,
    orphaned_bindings.DAMAGE,
    orphaned_ledger_rows.DAMAGE,
    foreign_key_violations.DAMAGE,
    dangling_routing.DAMAGE,
    dangling_session_keys.DAMAGE,
    unreferenced_system_prompts.DAMAGE,
    dangling_delegations.DAMAGE,
    lineage_cycles.DAMAGE,
    branched_root_leftovers.DAMAGE,
    unmarked_branches.DAMAGE,
    orphaned_delegates.DAMAGE,
    conflicting_markers.DAMAGE,
    closed_without_continuation.DAMAGE,
    forked_continuations.DAMAGE,
    duplicate_branches.DAMAGE,
    cut_lineages.DAMAGE,
    inconsistent_end_state.DAMAGE,
    activity_after_end.DAMAGE,
    never_ended_sessions.DAMAGE,
    empty_sessions.DAMAGE,
    placeholder_sessions.DAMAGE,
    hidden_by_upgrade.DAMAGE,
    hidden_sessions.DAMAGE,
    missing_identity.DAMAGE,
    invalid_json.DAMAGE,
    invalid_timestamps.DAMAGE,
    invalid_text.DAMAGE,
    null_active.DAMAGE,
    session_counter_drift.DAMAGE,
    dangling_image_references.DAMAGE,
    stuck_executions.DAMAGE,
    stale_leases.DAMAGE,
    resurrected_sessions.DAMAGE,
)
