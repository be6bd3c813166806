-- Rows that stand for something else: made only to account for usage, or the run of a sub-agent that has lost where it belongs.

-- name: find
-- needs: index:idx_messages_session
-- One row per session without parent whose source is unknown, or that is a sub-agent's run without any marker: id, whether its source is
-- unknown, whether it has a message, a title, a configuration other than an empty one, whether that can take a marker, its start.
SELECT CAST(s.id AS BLOB), s.source = 'unknown',
       EXISTS (SELECT 1 FROM messages AS m INDEXED BY idx_messages_session WHERE m.session_id = s.id),
       s.title IS NOT NULL,
       coalesce(s.model_config, '{}') NOT IN ('{}', 'null', ''),
       CASE WHEN s.model_config IS NULL THEN 1
            WHEN typeof(s.model_config) = 'text' AND json_valid(s.model_config)
            THEN json_type(s.model_config) = 'object' ELSE 0 END,
       s.started_at
  FROM sessions AS s
 WHERE typeof(s.id) = 'text'
   AND s.parent_session_id IS NULL
   AND (s.source = 'unknown'
        OR (s.source = 'subagent'
            AND CASE WHEN typeof(s.model_config) = 'text' AND json_valid(s.model_config)
                     THEN json_extract(s.model_config, '$._delegate_from') IS NULL
                          AND json_extract(s.model_config, '$._branched_from') IS NULL
                          AND json_extract(s.model_config, '$._reset_from') IS NULL
                     ELSE s.model_config IS NULL END))
 ORDER BY s.id;

-- name: find
-- The same from the tables alone.
WITH spoken AS MATERIALIZED (
  SELECT DISTINCT m.session_id AS id FROM messages AS m NOT INDEXED
)
SELECT CAST(s.id AS BLOB), s.source = 'unknown',
       s.id IN (SELECT k.id FROM spoken AS k),
       s.title IS NOT NULL,
       coalesce(s.model_config, '{}') NOT IN ('{}', 'null', ''),
       CASE WHEN s.model_config IS NULL THEN 1
            WHEN typeof(s.model_config) = 'text' AND json_valid(s.model_config)
            THEN json_type(s.model_config) = 'object' ELSE 0 END,
       s.started_at
  FROM sessions AS s NOT INDEXED
 WHERE typeof(s.id) = 'text'
   AND s.parent_session_id IS NULL
   AND (s.source = 'unknown'
        OR (s.source = 'subagent'
            AND CASE WHEN typeof(s.model_config) = 'text' AND json_valid(s.model_config)
                     THEN json_extract(s.model_config, '$._delegate_from') IS NULL
                          AND json_extract(s.model_config, '$._branched_from') IS NULL
                          AND json_extract(s.model_config, '$._reset_from') IS NULL
                     ELSE s.model_config IS NULL END))
 ORDER BY s.id;

-- name: delegating
-- One row per message of a list that may hand out a task or hold the answer: its session, its calls, and what it says where it is an
-- answer. A session without a row is passed over.
SELECT CAST(m.session_id AS BLOB), CAST(m.tool_calls AS BLOB),
       CASE WHEN m.role = 'tool' AND m.tool_name = 'delegate_task' THEN CAST(m.content AS BLOB) END
  FROM json_each(:ids) AS j
  JOIN messages AS m ON m.id = j.value
  JOIN sessions AS s ON s.id = m.session_id
 ORDER BY m.id;

-- name: parents
-- One row per link up from one session: the sessions above it by parent or by a marker of its own run.
WITH RECURSIVE above (id) AS (
  SELECT CAST(:session_id AS TEXT)
   UNION
  SELECT n.value
    FROM above
    JOIN sessions AS s ON s.id = above.id
    JOIN json_each(json_array(s.parent_session_id,
                              CASE WHEN typeof(s.model_config) = 'text' AND json_valid(s.model_config)
                                   THEN json_extract(s.model_config, '$._delegate_from') END)) AS n
   WHERE n.type = 'text'
)
SELECT CAST(above.id AS BLOB) FROM above;

-- name: relink
-- needs: sessions.session_key
-- Puts one run under the session whose call names it, as releases with markers keep it.
UPDATE sessions
   SET parent_session_id = CAST(:parent AS TEXT),
       source = 'subagent',
       model_config = json_set(coalesce(model_config, '{}'), '$._delegate_from', CAST(:parent AS TEXT))
 WHERE id = CAST(:session_id AS TEXT)
   AND parent_session_id IS NULL
   AND source IN ('unknown', 'subagent')
   AND (model_config IS NULL OR (json_valid(model_config) AND json_type(model_config) = 'object'))
   AND EXISTS (SELECT 1 FROM sessions AS p WHERE p.id = CAST(:parent AS TEXT));

-- name: relink
-- The same for releases without markers, which know a run by its parent alone.
UPDATE sessions
   SET parent_session_id = CAST(:parent AS TEXT)
 WHERE id = CAST(:session_id AS TEXT)
   AND parent_session_id IS NULL
   AND source IN ('unknown', 'subagent')
   AND EXISTS (SELECT 1 FROM sessions AS p WHERE p.id = CAST(:parent AS TEXT));
