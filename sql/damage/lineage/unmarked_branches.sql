-- Children without a branch marker that no list shows, though they may be branches. A child of a session that compression closed is
-- taken for its continuation by every release and is not asked about here.

-- name: find
-- needs: sessions.session_key
-- One row per session that hangs under another one without any marker and is hidden by that, or marked as handed out by it: id,
-- parent, whether the parent is open, start, whether it has a title, whether it has the delegate marker. Shown are children later than the end of a parent that ended as branched, and chats that a reset began anew.
SELECT CAST(child.id AS BLOB), CAST(child.parent_session_id AS BLOB), parent.ended_at IS NULL,
       CASE WHEN typeof(child.started_at) IN ('integer', 'real') THEN child.started_at END, child.title IS NOT NULL,
       CASE WHEN child.model_config IS NOT NULL
            THEN json_extract(child.model_config, '$._delegate_from') IS NOT NULL ELSE 0 END
  FROM sessions AS child
 INNER JOIN sessions AS parent ON parent.id = child.parent_session_id
 WHERE typeof(child.id) = 'text' AND typeof(parent.id) = 'text' AND child.id <> parent.id
   AND (child.model_config IS NULL
        OR CASE WHEN typeof(child.model_config) = 'text' AND json_valid(child.model_config)
                THEN json_type(child.model_config) = 'object'
                     AND json_extract(child.model_config, '$._branched_from') IS NULL
                     AND json_extract(child.model_config, '$._reset_from') IS NULL END)
   AND child.source NOT IN ('subagent', 'tool')
   AND CASE WHEN child.model_config IS NULL OR json_extract(child.model_config, '$._delegate_from') IS NULL
            THEN parent.end_reason IS NOT 'compression'
                 AND NOT coalesce(parent.end_reason = 'branched' AND child.started_at >= parent.ended_at, 0)
                 AND NOT coalesce(parent.end_reason IN ('session_reset', 'session_switch', 'idle', 'daily', 'suspended',
                                                        'resume_pending_expired')
                                  AND child.session_key <> '' AND child.session_key = parent.session_key, 0)
            ELSE json_extract(child.model_config, '$._delegate_from') = parent.id END
 ORDER BY child.id;

-- name: find
-- The same for files whose sessions do not know their chat.
SELECT CAST(child.id AS BLOB), CAST(child.parent_session_id AS BLOB), parent.ended_at IS NULL,
       CASE WHEN typeof(child.started_at) IN ('integer', 'real') THEN child.started_at END, child.title IS NOT NULL,
       CASE WHEN child.model_config IS NOT NULL
            THEN json_extract(child.model_config, '$._delegate_from') IS NOT NULL ELSE 0 END
  FROM sessions AS child
 INNER JOIN sessions AS parent ON parent.id = child.parent_session_id
 WHERE typeof(child.id) = 'text' AND typeof(parent.id) = 'text' AND child.id <> parent.id
   AND (child.model_config IS NULL
        OR CASE WHEN typeof(child.model_config) = 'text' AND json_valid(child.model_config)
                THEN json_type(child.model_config) = 'object'
                     AND json_extract(child.model_config, '$._branched_from') IS NULL
                     AND json_extract(child.model_config, '$._reset_from') IS NULL END)
   AND child.source NOT IN ('subagent', 'tool')
   AND CASE WHEN child.model_config IS NULL OR json_extract(child.model_config, '$._delegate_from') IS NULL
            THEN parent.end_reason IS NOT 'compression'
                 AND NOT coalesce(parent.end_reason = 'branched' AND child.started_at >= parent.ended_at, 0)
            ELSE json_extract(child.model_config, '$._delegate_from') = parent.id END
 ORDER BY child.id;

-- name: mark
-- Writes into one session that it is a branch of its parent, in place of a delegate marker; everything else in its
-- configuration stays.
UPDATE sessions
   SET model_config = json_remove(json_set(coalesce(model_config, '{}'), '$._branched_from', parent_session_id),
                                  '$._delegate_from')
 WHERE id = CAST(:session_id AS TEXT)
   AND parent_session_id = CAST(:parent AS TEXT)
   AND (model_config IS NULL
        OR CASE WHEN typeof(model_config) = 'text' AND json_valid(model_config)
                THEN json_type(model_config) = 'object'
                     AND json_extract(model_config, '$._branched_from') IS NULL
                     AND coalesce(json_extract(model_config, '$._delegate_from') = parent_session_id, 1)
                     AND json_extract(model_config, '$._reset_from') IS NULL END);
