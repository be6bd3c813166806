-- Sessions that hold nothing and that nothing needs. What may need one is asked by a block of its own, for few files have all of it.

-- name: find
-- needs: index:idx_messages_session
-- One row per session without title, messages, counted calls, tokens, hand-off and children that has ended, or began before :before: id,
-- start, whether it ended.
SELECT CAST(s.id AS BLOB), s.started_at, s.ended_at IS NOT NULL
  FROM sessions AS s
 WHERE typeof(s.id) = 'text'
   AND s.title IS NULL
   AND s.handoff_state IS NULL
   AND (s.ended_at IS NOT NULL OR s.started_at <= :before)
   AND coalesce(s.message_count, 0) = 0 AND coalesce(s.tool_call_count, 0) = 0 AND coalesce(s.api_call_count, 0) = 0
   AND coalesce(s.input_tokens, 0) = 0 AND coalesce(s.output_tokens, 0) = 0
   AND NOT EXISTS (SELECT 1 FROM messages AS m INDEXED BY idx_messages_session WHERE m.session_id = s.id)
   AND s.id NOT IN (SELECT c.parent_session_id FROM sessions AS c WHERE c.parent_session_id IS NOT NULL)
 ORDER BY s.id;

-- name: find
-- The same from the tables alone.
SELECT CAST(s.id AS BLOB), s.started_at, s.ended_at IS NOT NULL
  FROM sessions AS s NOT INDEXED
 WHERE typeof(s.id) = 'text'
   AND s.title IS NULL
   AND s.handoff_state IS NULL
   AND (s.ended_at IS NOT NULL OR s.started_at <= :before)
   AND coalesce(s.message_count, 0) = 0 AND coalesce(s.tool_call_count, 0) = 0 AND coalesce(s.api_call_count, 0) = 0
   AND coalesce(s.input_tokens, 0) = 0 AND coalesce(s.output_tokens, 0) = 0
   AND s.id NOT IN (SELECT m.session_id FROM messages AS m NOT INDEXED WHERE m.session_id IS NOT NULL)
   AND s.id NOT IN (SELECT c.parent_session_id FROM sessions AS c NOT INDEXED WHERE c.parent_session_id IS NOT NULL)
 ORDER BY s.id;

-- name: kept
-- needs: sessions.pinned sessions.hidden sessions.last_activity_at
-- Sessions that their user put aside, and those that were active after :before.
SELECT CAST(s.id AS BLOB)
  FROM sessions AS s
 WHERE s.archived IS NOT 0 OR s.pinned IS NOT 0 OR s.hidden IS NOT 0
    OR (s.ended_at IS NULL AND s.last_activity_at > :before);

-- name: kept
-- needs: sessions.archived
-- The same where sessions can only be archived.
SELECT CAST(s.id AS BLOB) FROM sessions AS s WHERE s.archived IS NOT 0 AND :before IS NOT NULL;

-- name: marked
-- Sessions that a marker of any session names.
SELECT CAST(json_extract(s.model_config, n.value) AS BLOB)
  FROM sessions AS s
 CROSS JOIN json_each('["$._branched_from", "$._delegate_from", "$._reset_from"]') AS n
 WHERE CASE WHEN typeof(s.model_config) = 'text' AND json_valid(s.model_config)
            THEN json_type(s.model_config, n.value) = 'text' END;

-- name: routed
-- needs: gateway_routing.entry_json
-- Sessions that a route names.
SELECT CAST(json_extract(r.entry_json, '$.session_id') AS BLOB)
  FROM gateway_routing AS r
 WHERE CASE WHEN typeof(r.entry_json) = 'text' AND json_valid(r.entry_json)
            THEN json_type(r.entry_json, '$.session_id') = 'text' END;

-- name: bound
-- needs: telegram_dm_topic_bindings.session_id
-- Sessions that a topic shows.
SELECT CAST(b.session_id AS BLOB) FROM telegram_dm_topic_bindings AS b;

-- name: locked
-- needs: compression_locks.session_id
-- Sessions with a compression lock, run out or not.
SELECT CAST(k.session_id AS BLOB) FROM compression_locks AS k;

-- name: leased
-- needs: session_turn_leases.conversation_id
-- Sessions with a turn lease, run out or not.
SELECT CAST(k.conversation_id AS BLOB) FROM session_turn_leases AS k;

-- name: used
-- needs: session_model_usage.session_id
-- Sessions that usage was accounted to.
SELECT DISTINCT CAST(u.session_id AS BLOB) FROM session_model_usage AS u;

-- name: delegating
-- needs: async_delegations.parent_session_id
-- Sessions that handed out a task.
SELECT CAST(d.parent_session_id AS BLOB) FROM async_delegations AS d WHERE d.parent_session_id IS NOT NULL;

-- name: awaiting
-- needs: async_delegations.origin_session_id
-- Sessions that a task reports to.
SELECT CAST(d.origin_session_id AS BLOB) FROM async_delegations AS d WHERE d.origin_session_id <> '';

-- name: in-lineage
-- needs: session_admissions.lineage_json
-- Sessions in the lineage of an admission.
SELECT DISTINCT CAST(part.value AS BLOB)
  FROM session_admissions AS a
  JOIN json_each(CASE WHEN json_valid(a.lineage_json) THEN a.lineage_json ELSE '[]' END) AS part
 WHERE part.type = 'text';

-- name: in-meta
-- Sessions with a goal, settings, a binding or a local policy, those that such a value is, and those that have a tombstone.
SELECT CAST(substr(k.key, length(p.value) + 1) AS BLOB)
  FROM json_each('["goal:", "gateway.api.settings.v1.", "gateway.api.binding.v1.", "gateway.local_policy.v1:",
                   "gateway.retired_session.v1."]') AS p
  JOIN state_meta AS k ON k.key >= p.value AND substr(k.key, 1, length(p.value)) = p.value
 UNION
SELECT CAST(k.value AS BLOB)
  FROM state_meta AS k
 WHERE octet_length(k.value) <= 200
 UNION
SELECT CAST(json_extract(k.value, n.value) AS BLOB)
  FROM state_meta AS k
 CROSS JOIN json_each('["$.session_id", "$.entry.session_id"]') AS n
 WHERE k.key >= 'gateway.local_policy.v1:' AND k.key < 'gateway.local_policy.v1;'
   AND CASE WHEN json_valid(k.value) THEN json_type(k.value, n.value) = 'text' END;

-- name: naming
-- A template: the sessions that a column with a declared key of another table names.
SELECT DISTINCT CAST(t.{column} AS BLOB) FROM {table} AS t WHERE t.{column} IS NOT NULL;

-- name: prompts
-- needs: sessions.system_prompt_hash sessions.tool_names system_prompts.hash
-- One row per stored prompt that one session uses alone: the session, the prompt's digest.
SELECT CAST(min(u.id) AS BLOB), CAST(u.hash AS BLOB)
  FROM (SELECT s.id, s.system_prompt_hash AS hash FROM sessions AS s WHERE s.system_prompt_hash IS NOT NULL
        UNION
        SELECT s.id, s.tool_names FROM sessions AS s WHERE s.tool_names IS NOT NULL) AS u
  JOIN system_prompts AS p ON p.hash = u.hash
 WHERE typeof(u.hash) = 'text'
 GROUP BY u.hash
HAVING count(*) = 1
 ORDER BY u.hash;

-- name: prompts
-- needs: sessions.system_prompt_hash system_prompts.hash
-- The same where sessions do not name their tools.
SELECT CAST(min(s.id) AS BLOB), CAST(s.system_prompt_hash AS BLOB)
  FROM sessions AS s
  JOIN system_prompts AS p ON p.hash = s.system_prompt_hash
 WHERE typeof(s.system_prompt_hash) = 'text'
 GROUP BY s.system_prompt_hash
HAVING count(*) = 1
 ORDER BY s.system_prompt_hash;

-- name: remove
-- Removes one session that holds nothing.
DELETE FROM sessions
 WHERE id = CAST(:session_id AS TEXT)
   AND title IS NULL
   AND NOT EXISTS (SELECT 1 FROM messages AS m WHERE m.session_id = sessions.id)
   AND NOT EXISTS (SELECT 1 FROM sessions AS c WHERE c.parent_session_id = sessions.id);

-- name: remove-prompt
-- needs: sessions.tool_names
-- Removes one stored prompt that the removed session used alone.
DELETE FROM system_prompts
 WHERE hash = CAST(:hash AS TEXT)
   AND NOT EXISTS (SELECT 1 FROM sessions AS s WHERE system_prompts.hash IN (s.system_prompt_hash, s.tool_names));

-- name: remove-prompt
-- The same where sessions do not name their tools.
DELETE FROM system_prompts
 WHERE hash = CAST(:hash AS TEXT)
   AND NOT EXISTS (SELECT 1 FROM sessions AS s WHERE s.system_prompt_hash = system_prompts.hash);
