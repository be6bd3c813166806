"""What is known of the store whatever its shape, as data; asks nothing of any file. Shapes are in `known_shapes`.

Sources: the tables of hermes-agent 0.13.0 to 0.19.0 and async-hermes-agent 0.20.4.1 as their own stores make them, and
the later upstream schema text up to number 31.
"""

from __future__ import annotations

NEWEST_SCHEMA_VERSION = 31

SEARCH_TABLES = ("messages_fts", "messages_fts_trigram", "messages_fts_cjk")
SHADOW_TAILS = ("data", "idx", "content", "docsize", "config")
DEMOTED_INDEX = r"fts_v\d+_trash_\w+"
"""What the store calls the tables of an index of the old layout until it has taken them away (0.20.4.1)."""

CORE = (
    "sessions",
    "sessions.id",
    "sessions.source",
    "sessions.started_at",
    "sessions.ended_at",
    "sessions.end_reason",
    "sessions.parent_session_id",
    "sessions.model_config",
    "sessions.message_count",
    "sessions.tool_call_count",
    "messages",
    "messages.id",
    "messages.session_id",
    "messages.role",
    "messages.content",
    "messages.tool_calls",
    "messages.timestamp",
    "state_meta",
)
"""Without these no question can be asked of a file; every released store has made them since number 11."""

FEATURES = (
    ("active-rows", "messages.active"),
    ("compacted-rows", "messages.compacted"),
    ("compression-locks", "compression_locks"),
    ("gateway-routing", "gateway_routing"),
    ("model-usage", "session_model_usage"),
    ("daily-usage", "session_daily_usage"),
    ("system-prompts", "system_prompts"),
    ("turn-leases", "session_turn_leases"),
    ("display-order", "messages.display_order"),
    ("message-uid", "messages.message_uid"),
    ("runtime-ledger", "session_admissions"),
    ("media-content", "messages.media_content"),
)

MESSAGE_JSON = (
    "tool_calls",
    "reasoning_details",
    "codex_reasoning_items",
    "codex_message_items",
    "display_metadata",
    "absorbed_message_uids",
    "tool_call_uids",
    "media_content",
)
"""Columns of `messages` that hold JSON or NULL."""

MESSAGE_FLAGS = ("observed", "_compressed_summary", "compacted")
"""Columns of `messages` that hold 0, 1 or, where the file allows it, NULL; `active` apart, which every pass asks for."""

MESSAGE_NAMING = ("tool_calls", "api_content", "display_metadata")
"""Columns of `messages` that may repeat the paths of a content."""
