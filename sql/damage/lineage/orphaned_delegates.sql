-- Runs of sub-agents whose session is gone that they were handed out by. A missing id that HDB201 will give its session row back
-- (it has messages and no tombstone) is left to that class.

-- name: find
-- One row per session whose delegate marker names a session that is gone: id, missing id, whether a tombstone names it, whether
-- the session still hangs under another one. A branch marker wins over a delegate marker, and a marker that the parent has
-- too was inherited. A parent that is gone itself is HDB202.
WITH marks AS MATERIALIZED (
  SELECT s.id, s.parent_session_id, json_extract(s.model_config, '$._delegate_from') AS named
    FROM sessions AS s
   WHERE typeof(s.id) = 'text'
     AND CASE WHEN typeof(s.model_config) = 'text' AND json_valid(s.model_config)
              THEN json_type(s.model_config, '$._delegate_from') = 'text'
                   AND json_extract(s.model_config, '$._branched_from') IS NULL END
)
SELECT CAST(k.id AS BLOB), CAST(k.named AS BLOB),
       EXISTS (SELECT 1 FROM state_meta AS t WHERE t.key = 'gateway.retired_session.v1.' || k.named),
       k.parent_session_id IS NOT NULL
  FROM marks AS k
 WHERE k.named NOT IN ('', '__orphaned__')
   AND NOT EXISTS (SELECT 1 FROM sessions AS d WHERE d.id = k.named)
   AND (k.parent_session_id IS NULL
        OR (EXISTS (SELECT 1 FROM sessions AS p WHERE p.id = k.parent_session_id)
            AND (k.parent_session_id, k.named) NOT IN (SELECT p.id, p.named FROM marks AS p)))
   AND (NOT EXISTS (SELECT 1 FROM messages AS m WHERE m.session_id = k.named)
        OR EXISTS (SELECT 1 FROM state_meta AS t WHERE t.key = 'gateway.retired_session.v1.' || k.named))
 ORDER BY k.id;

-- name: delegates
-- One row per delegate of any kind: id, parent, and the session its marker names. A branch marker wins.
SELECT CAST(s.id AS BLOB), CAST(s.parent_session_id AS BLOB),
       CAST(json_extract(s.model_config, '$._delegate_from') AS BLOB)
  FROM sessions AS s
 WHERE typeof(s.id) = 'text'
   AND CASE WHEN typeof(s.model_config) = 'text' AND json_valid(s.model_config)
            THEN json_type(s.model_config, '$._delegate_from') = 'text'
                 AND json_extract(s.model_config, '$._branched_from') IS NULL END
 ORDER BY s.id;

-- name: strip
-- Takes the delegate marker out of one session without parent; the marker names a session that is gone.
UPDATE sessions
   SET model_config = json_remove(model_config, '$._delegate_from')
 WHERE id = CAST(:session_id AS TEXT)
   AND parent_session_id IS NULL
   AND CASE WHEN typeof(model_config) = 'text' AND json_valid(model_config)
            THEN json_extract(model_config, '$._delegate_from') END = CAST(:missing AS TEXT)
   AND NOT EXISTS (SELECT 1 FROM sessions AS d WHERE d.id = CAST(:missing AS TEXT));

-- name: purge-messages
-- Messages of the removed sessions, from one row id to another.
DELETE FROM messages
 WHERE session_id IN (SELECT j.value FROM json_each(:ids) AS j)
   AND id BETWEEN :first AND :last;

-- name: purge-rows
-- One row per message that `purge-messages` would remove: its id and its bytes.
SELECT m.id,
       coalesce(octet_length(m.content), 0) + coalesce(octet_length(m.tool_calls), 0)
       + coalesce(octet_length(m.reasoning), 0) + coalesce(octet_length(m.reasoning_details), 0)
  FROM messages AS m
 WHERE m.session_id IN (SELECT j.value FROM json_each(:ids) AS j)
 ORDER BY m.id;

-- name: purge-usage
-- Usage rows by model of the removed sessions.
DELETE FROM session_model_usage
 WHERE session_id IN (SELECT j.value FROM json_each(:ids) AS j);

-- name: purge-daily
-- Usage rows by day of the removed sessions.
DELETE FROM session_daily_usage
 WHERE session_id IN (SELECT j.value FROM json_each(:ids) AS j);

-- name: detach-children
-- What hangs under a removed session becomes a root.
UPDATE sessions
   SET parent_session_id = NULL
 WHERE parent_session_id IN (SELECT j.value FROM json_each(:ids) AS j)
   AND id NOT IN (SELECT j.value FROM json_each(:ids) AS j);

-- name: purge-sessions
-- The rows of the sessions, whose messages are gone by then.
DELETE FROM sessions
 WHERE id IN (SELECT j.value FROM json_each(:ids) AS j)
   AND NOT EXISTS (SELECT 1 FROM messages AS m WHERE m.session_id = sessions.id);

-- name: purge-prompts
-- needs: sessions.tool_names
-- Stored prompts that only the removed sessions used.
DELETE FROM system_prompts
 WHERE hash IN (SELECT j.value FROM json_each(:hashes) AS j)
   AND NOT EXISTS (SELECT 1 FROM sessions AS s WHERE system_prompts.hash IN (s.system_prompt_hash, s.tool_names));

-- name: purge-prompts
-- The same for files whose sessions do not name their tools.
DELETE FROM system_prompts
 WHERE hash IN (SELECT j.value FROM json_each(:hashes) AS j)
   AND NOT EXISTS (SELECT 1 FROM sessions AS s WHERE s.system_prompt_hash = system_prompts.hash);
