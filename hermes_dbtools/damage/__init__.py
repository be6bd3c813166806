"""The registry of damage classes. Its order is the order of scan and of repair: causes before consequences."""

from __future__ import annotations

from ._declare import Damage, Planners
from .counters import sequence_behind_rows, session_counter_drift, usage_exceeds_session
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
from .media import (
    altered_images,
    dangling_image_references,
    foreign_image_paths,
    inline_images,
    undecodable_images,
)
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
from .runtime import (
    idempotency_leftovers,
    orphaned_ledger_rows,
    resurrected_sessions,
    stale_leases,
    stuck_executions,
)
from .search import unavailable_tokenizer
from .storage import split_wal, structural_damage, transcript_without_session, unreadable_file
from .transcript import (
    duplicate_messages,
    invalid_tool_arguments,
    missing_tool_names,
    orphaned_tool_results,
    out_of_order_timestamps,
    sentinel_messages,
    unanswered_tool_calls,
)
from .values import (
    duplicate_titles,
    invalid_json,
    invalid_text,
    invalid_timestamps,
    null_active,
    out_of_domain_values,
)

REGISTRY: tuple[Damage, ...] = (
    unreadable_file.DAMAGE,
    split_wal.DAMAGE,
    structural_damage.DAMAGE,
    unavailable_tokenizer.DAMAGE,
    transcript_without_session.DAMAGE,
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
    out_of_domain_values.DAMAGE,
    duplicate_titles.DAMAGE,
    sequence_behind_rows.DAMAGE,
    session_counter_drift.DAMAGE,
    usage_exceeds_session.DAMAGE,
    unanswered_tool_calls.DAMAGE,
    orphaned_tool_results.DAMAGE,
    invalid_tool_arguments.DAMAGE,
    out_of_order_timestamps.DAMAGE,
    duplicate_messages.DAMAGE,
    sentinel_messages.DAMAGE,
    missing_tool_names.DAMAGE,
    dangling_image_references.DAMAGE,
    foreign_image_paths.DAMAGE,
    altered_images.DAMAGE,
    undecodable_images.DAMAGE,
    inline_images.DAMAGE,
    stuck_executions.DAMAGE,
    stale_leases.DAMAGE,
    idempotency_leftovers.DAMAGE,
    resurrected_sessions.DAMAGE,
)

PLANNERS: Planners = {damage.code: damage for damage in REGISTRY}
"""The classes by their code: what the steps of a repair belong to."""
