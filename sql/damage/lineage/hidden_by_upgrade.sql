-- Chats that an upgrade took for orphaned runs of sub-agents.

-- name: find
-- needs: index:idx_messages_session
-- One row per session without parent that the upgrade marked, of a source that a person uses and with a message of a user: id, start,
-- messages, messages of users, whether it has a title.
SELECT CAST(s.id AS BLOB), s.started_at,
       (SELECT count(*) FROM messages AS m INDEXED BY idx_messages_session WHERE m.session_id = s.id),
       (SELECT count(*) FROM messages AS m INDEXED BY idx_messages_session WHERE m.session_id = s.id AND m.role = 'user'),
       s.title IS NOT NULL
  FROM sessions AS s
 WHERE typeof(s.id) = 'text'
   AND s.parent_session_id IS NULL
   AND s.source NOT IN ('subagent', 'tool', 'cron', 'unknown')
   AND CASE WHEN typeof(s.model_config) = 'text' AND json_valid(s.model_config)
            THEN json_extract(s.model_config, '$._delegate_from') = '__orphaned__' END
   AND EXISTS (SELECT 1 FROM messages AS m INDEXED BY idx_messages_session WHERE m.session_id = s.id AND m.role = 'user')
 ORDER BY s.id;

-- name: find
-- The same from the tables alone.
WITH marked AS MATERIALIZED (
  SELECT s.id, s.started_at, s.title
    FROM sessions AS s NOT INDEXED
   WHERE typeof(s.id) = 'text'
     AND s.parent_session_id IS NULL
     AND s.source NOT IN ('subagent', 'tool', 'cron', 'unknown')
     AND CASE WHEN typeof(s.model_config) = 'text' AND json_valid(s.model_config)
              THEN json_extract(s.model_config, '$._delegate_from') = '__orphaned__' END
), said AS MATERIALIZED (
  SELECT m.session_id, count(*) AS messages, total(m.role = 'user') AS by_user
    FROM messages AS m NOT INDEXED
   WHERE EXISTS (SELECT 1 FROM marked) AND m.session_id IN (SELECT k.id FROM marked AS k)
   GROUP BY m.session_id
)
SELECT CAST(k.id AS BLOB), k.started_at, s.messages, s.by_user, k.title IS NOT NULL
  FROM marked AS k
 CROSS JOIN said AS s ON s.session_id = k.id
 WHERE s.by_user > 0
 ORDER BY k.id;

-- name: strip
-- Takes the marker of the upgrade out of one chat.
UPDATE sessions
   SET model_config = json_remove(model_config, '$._delegate_from')
 WHERE id = CAST(:session_id AS TEXT)
   AND parent_session_id IS NULL
   AND CASE WHEN typeof(model_config) = 'text' AND json_valid(model_config)
            THEN json_extract(model_config, '$._delegate_from') = '__orphaned__' END;
