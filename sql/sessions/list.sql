-- What `sessions list` says of each session; why one is hidden is asked of visibility.sql, who is live of the guard.

-- name: sessions
-- needs: sessions.archived sessions.session_key
-- One row per session, newest first, at most :limit where that is not negative: id, source, parent, title, start, end, end reason, messages, archived, how it hangs under its parent.
WITH configured AS NOT MATERIALIZED (
  SELECT s.*, CASE WHEN typeof(s.model_config) = 'text' AND json_valid(s.model_config) THEN s.model_config ELSE '{}' END AS config
    FROM sessions AS s
)
SELECT CAST(s.id AS BLOB), CAST(s.source AS BLOB), CAST(s.parent_session_id AS BLOB), CAST(s.title AS BLOB),
       CASE typeof(s.started_at) WHEN 'text' THEN CAST(s.started_at AS BLOB) ELSE s.started_at END,
       CASE typeof(s.ended_at) WHEN 'text' THEN CAST(s.ended_at AS BLOB) ELSE s.ended_at END, CAST(s.end_reason AS BLOB),
       CASE typeof(s.message_count) WHEN 'text' THEN CAST(s.message_count AS BLOB) ELSE s.message_count END, s.archived IS 1,
       CASE WHEN s.parent_session_id IS json_extract(s.config, '$._branched_from') AND s.parent_session_id IS NOT NULL THEN 'branch'
            WHEN s.parent_session_id IS json_extract(s.config, '$._reset_from') AND s.parent_session_id IS NOT NULL THEN 'reset'
            WHEN s.parent_session_id IS json_extract(s.config, '$._delegate_from') AND s.parent_session_id IS NOT NULL THEN 'delegate'
            WHEN s.parent_session_id IS NOT NULL AND p.end_reason = 'compression' THEN 'continuation'
            WHEN json_extract(s.config, '$._branched_from') IS NOT NULL THEN 'branch'
            WHEN json_extract(s.config, '$._reset_from') IS NOT NULL THEN 'reset'
            WHEN json_extract(s.config, '$._delegate_from') IS NOT NULL THEN 'delegate'
            WHEN s.parent_session_id IS NULL THEN 'root'
            WHEN s.source IN ('subagent', 'tool') THEN 'delegate'
            WHEN p.end_reason = 'branched' AND s.started_at >= p.ended_at THEN 'branch'
            WHEN p.end_reason IN ('session_reset', 'session_switch', 'idle', 'daily', 'suspended', 'resume_pending_expired')
                 AND s.session_key <> '' AND s.session_key = p.session_key THEN 'reset'
            ELSE 'child' END
  FROM configured AS s
  LEFT JOIN sessions AS p ON p.id = s.parent_session_id
 WHERE s.id IS NOT NULL
 ORDER BY s.started_at DESC, s.id DESC
 LIMIT :limit;

-- name: sessions
-- needs: sessions.archived
-- The same for files whose sessions have no routing key.
WITH configured AS NOT MATERIALIZED (
  SELECT s.*, CASE WHEN typeof(s.model_config) = 'text' AND json_valid(s.model_config) THEN s.model_config ELSE '{}' END AS config
    FROM sessions AS s
)
SELECT CAST(s.id AS BLOB), CAST(s.source AS BLOB), CAST(s.parent_session_id AS BLOB), CAST(s.title AS BLOB),
       CASE typeof(s.started_at) WHEN 'text' THEN CAST(s.started_at AS BLOB) ELSE s.started_at END,
       CASE typeof(s.ended_at) WHEN 'text' THEN CAST(s.ended_at AS BLOB) ELSE s.ended_at END, CAST(s.end_reason AS BLOB),
       CASE typeof(s.message_count) WHEN 'text' THEN CAST(s.message_count AS BLOB) ELSE s.message_count END, s.archived IS 1,
       CASE WHEN s.parent_session_id IS json_extract(s.config, '$._branched_from') AND s.parent_session_id IS NOT NULL THEN 'branch'
            WHEN s.parent_session_id IS json_extract(s.config, '$._delegate_from') AND s.parent_session_id IS NOT NULL THEN 'delegate'
            WHEN s.parent_session_id IS NOT NULL AND p.end_reason = 'compression' THEN 'continuation'
            WHEN json_extract(s.config, '$._branched_from') IS NOT NULL THEN 'branch'
            WHEN json_extract(s.config, '$._delegate_from') IS NOT NULL THEN 'delegate'
            WHEN s.parent_session_id IS NULL THEN 'root'
            WHEN s.source IN ('subagent', 'tool') THEN 'delegate'
            WHEN p.end_reason = 'branched' AND s.started_at >= p.ended_at THEN 'branch'
            ELSE 'child' END
  FROM configured AS s
  LEFT JOIN sessions AS p ON p.id = s.parent_session_id
 WHERE s.id IS NOT NULL
 ORDER BY s.started_at DESC, s.id DESC
 LIMIT :limit;

-- name: sessions
-- The same for the oldest files, which know neither markers nor flags.
SELECT CAST(s.id AS BLOB), CAST(s.source AS BLOB), CAST(s.parent_session_id AS BLOB), CAST(s.title AS BLOB),
       CASE typeof(s.started_at) WHEN 'text' THEN CAST(s.started_at AS BLOB) ELSE s.started_at END,
       CASE typeof(s.ended_at) WHEN 'text' THEN CAST(s.ended_at AS BLOB) ELSE s.ended_at END, CAST(s.end_reason AS BLOB),
       CASE typeof(s.message_count) WHEN 'text' THEN CAST(s.message_count AS BLOB) ELSE s.message_count END, 0,
       CASE WHEN s.parent_session_id IS NULL THEN 'root'
            WHEN p.end_reason = 'compression' THEN 'continuation'
            WHEN s.source IN ('subagent', 'tool') THEN 'delegate'
            WHEN p.end_reason = 'branched' AND s.started_at >= p.ended_at THEN 'branch'
            ELSE 'child' END
  FROM sessions AS s
  LEFT JOIN sessions AS p ON p.id = s.parent_session_id
 WHERE s.id IS NOT NULL
 ORDER BY s.started_at DESC, s.id DESC
 LIMIT :limit;

-- name: total
-- How many sessions there are.
SELECT count(*) FROM sessions AS s WHERE s.id IS NOT NULL;
