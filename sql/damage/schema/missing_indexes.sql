-- Indexes of the store, each as the store makes it; only those are made that the file's number asks for.

-- name: equal-titles
-- needs: sessions.title
-- One row when two sessions have the same title: then its unique index cannot be made.
SELECT 1
  FROM sessions AS s
 WHERE s.title IS NOT NULL
 GROUP BY s.title
HAVING count(*) > 1
 LIMIT 1;

-- name: create-idx_sessions_parent
-- needs: sessions.parent_session_id
-- Children of a session.
CREATE INDEX idx_sessions_parent
    ON sessions (parent_session_id);

-- name: create-idx_sessions_source
-- needs: sessions.source
-- Sessions by surface.
CREATE INDEX idx_sessions_source
    ON sessions (source);

-- name: create-idx_sessions_started
-- needs: sessions.started_at
-- Newest sessions first.
CREATE INDEX idx_sessions_started
    ON sessions (started_at DESC);

-- name: create-idx_sessions_title_unique
-- needs: sessions.title
-- No two sessions have the same title.
CREATE UNIQUE INDEX idx_sessions_title_unique
    ON sessions (title)
 WHERE title IS NOT NULL;

-- name: create-idx_messages_session
-- needs: messages.session_id messages.timestamp
-- Messages of a session by time.
CREATE INDEX idx_messages_session
    ON messages (session_id, timestamp);

-- name: create-idx_messages_platform_msg_id
-- needs: messages.platform_message_id messages.session_id
-- Messages by their number on the chat platform.
CREATE INDEX idx_messages_platform_msg_id
    ON messages (session_id, platform_message_id)
 WHERE platform_message_id IS NOT NULL;

-- name: create-idx_messages_session_active
-- needs: messages.active messages.session_id messages.timestamp
-- Live messages of a session by time.
CREATE INDEX idx_messages_session_active
    ON messages (session_id, active, timestamp);

-- name: create-idx_compression_locks_expires
-- needs: compression_locks.expires_at
-- Locks by the time they lapse.
CREATE INDEX idx_compression_locks_expires
    ON compression_locks (expires_at);

-- name: create-idx_sessions_source_id
-- needs: sessions.id sessions.source
-- Sessions by surface, in order of id.
CREATE INDEX idx_sessions_source_id
    ON sessions (source, id);

-- name: create-idx_sessions_gateway_peer
-- needs: sessions.chat_id sessions.chat_type sessions.source sessions.started_at sessions.thread_id sessions.user_id
-- Sessions of one correspondent, newest first.
CREATE INDEX idx_sessions_gateway_peer
    ON sessions (source, user_id, chat_id, chat_type, thread_id, started_at DESC);

-- name: create-idx_sessions_handoff_state
-- needs: sessions.handoff_state sessions.started_at
-- Sessions that wait to be handed over.
CREATE INDEX idx_sessions_handoff_state
    ON sessions (handoff_state, started_at);

-- name: create-idx_sessions_session_key
-- needs: sessions.session_key sessions.started_at
-- Sessions of one chat, newest first.
CREATE INDEX idx_sessions_session_key
    ON sessions (session_key, started_at DESC);

-- name: create-idx_messages_active_null
-- needs: messages.active
-- Messages of old files that say neither live nor put away.
CREATE INDEX idx_messages_active_null
    ON messages (active)
 WHERE active IS NULL;

-- name: create-idx_session_model_usage_model
-- needs: session_model_usage.model
-- Usage of a model.
CREATE INDEX idx_session_model_usage_model
    ON session_model_usage (model);

-- name: create-idx_session_model_usage_session
-- needs: session_model_usage.session_id
-- Usage of a session.
CREATE INDEX idx_session_model_usage_session
    ON session_model_usage (session_id);

-- name: create-idx_async_delegations_delivery
-- needs: async_delegations.completed_at async_delegations.delivery_state
-- Results that still have to be delivered.
CREATE INDEX idx_async_delegations_delivery
    ON async_delegations (delivery_state, completed_at);

-- name: create-idx_sessions_system_prompt_hash
-- needs: sessions.system_prompt_hash
-- Sessions that use one prompt.
CREATE INDEX idx_sessions_system_prompt_hash
    ON sessions (system_prompt_hash);

-- name: create-idx_messages_assistant_calls_by_session
-- needs: messages.role messages.session_id messages.tool_calls
-- Messages that call tools.
CREATE INDEX idx_messages_assistant_calls_by_session
    ON messages (session_id)
 WHERE role = 'assistant' AND tool_calls IS NOT NULL;

-- name: create-idx_messages_session_id
-- needs: messages.id messages.session_id
-- Messages of a session in order of writing.
CREATE INDEX idx_messages_session_id
    ON messages (session_id, id);

-- name: create-idx_session_turn_leases_expires
-- needs: session_turn_leases.expires_at
-- Leases by the time they lapse.
CREATE INDEX idx_session_turn_leases_expires
    ON session_turn_leases (expires_at);

-- name: create-idx_messages_display_backfill
-- needs: messages.active messages.compacted messages.display_identity messages.display_order messages.session_id
-- Visible messages whose place is not known yet.
CREATE INDEX idx_messages_display_backfill
    ON messages (session_id)
 WHERE (display_order IS NULL OR display_identity IS NULL) AND (active = 1 OR compacted = 1);

-- name: create-idx_messages_display_identity
-- needs: messages.active messages.compacted messages.display_identity messages.display_order messages.session_id
-- Visible copies of one logical message.
CREATE INDEX idx_messages_display_identity
    ON messages (session_id, display_identity, display_order)
 WHERE display_identity IS NOT NULL AND (active = 1 OR compacted = 1);

-- name: create-idx_messages_display_page
-- needs: messages.active messages.compacted messages.display_order messages.id messages.session_id
-- Visible messages of a session in the order shown.
CREATE INDEX idx_messages_display_page
    ON messages (session_id, display_order, active DESC, id DESC)
 WHERE active = 1 OR compacted = 1;

-- name: create-idx_sessions_effective_activity
-- needs: sessions.last_activity_at sessions.started_at
-- Most recently active sessions first.
CREATE INDEX idx_sessions_effective_activity
    ON sessions (COALESCE(last_activity_at, started_at) DESC, started_at DESC);

-- name: create-idx_sessions_tool_names
-- needs: sessions.tool_names
-- Sessions that use one list of tool names.
CREATE INDEX idx_sessions_tool_names
    ON sessions (tool_names);

-- name: create-session_admissions_pending
-- needs: session_admissions.seq session_admissions.status session_admissions.target_session_id
-- Inputs of a session by state, first come first.
CREATE INDEX session_admissions_pending
    ON session_admissions (target_session_id, status, seq);

-- name: create-idx_session_daily_usage_day
-- needs: session_daily_usage.day
-- Usage of a day.
CREATE INDEX idx_session_daily_usage_day
    ON session_daily_usage (day);
