-- Sessions whose parent row is gone.

-- name: find
-- needs: index:idx_messages_session
-- One row per session with a missing parent: both ids and how they are stored, which markers name that parent,
-- whether it is a helper's run, whether a delegate marker is set at all, and whether messages or a tombstone carry
-- the parent's id.
SELECT CAST(c.id AS BLOB), typeof(c.id), CAST(c.parent_session_id AS BLOB), typeof(c.parent_session_id),
       CASE WHEN json_valid(c.model_config)
            THEN json_extract(c.model_config, '$._branched_from') IS c.parent_session_id ELSE 0 END,
       CASE WHEN json_valid(c.model_config)
            THEN json_extract(c.model_config, '$._reset_from') IS c.parent_session_id ELSE 0 END,
       CASE WHEN json_valid(c.model_config)
            THEN json_extract(c.model_config, '$._delegate_from') IS c.parent_session_id ELSE 0 END,
       c.source IN ('subagent', 'tool'),
       CASE WHEN json_valid(c.model_config)
            THEN json_extract(c.model_config, '$._delegate_from') IS NOT NULL ELSE 0 END,
       EXISTS (SELECT 1 FROM messages AS m INDEXED BY idx_messages_session
                WHERE m.session_id = c.parent_session_id),
       EXISTS (SELECT 1 FROM state_meta AS t
                WHERE t.key = 'gateway.retired_session.v1.' || c.parent_session_id)
  FROM sessions AS c
 WHERE c.parent_session_id IS NOT NULL
   AND NOT EXISTS (SELECT 1 FROM sessions AS p WHERE p.id = c.parent_session_id)
 ORDER BY c.id;

-- name: find
-- The same from the tables alone: for a file without the index, and for a second look that no stale index can
-- deceive.
WITH
  lost AS MATERIALIZED (
    SELECT c.id, c.parent_session_id, c.source,
           CASE WHEN json_valid(c.model_config) THEN c.model_config ELSE '{}' END AS config
      FROM sessions AS c NOT INDEXED
     WHERE c.parent_session_id IS NOT NULL
       AND c.parent_session_id NOT IN (SELECT p.id FROM sessions AS p NOT INDEXED WHERE p.id IS NOT NULL)),
  spoken AS MATERIALIZED (
    SELECT DISTINCT m.session_id AS id
      FROM messages AS m NOT INDEXED
     WHERE m.session_id IN (SELECT lost.parent_session_id FROM lost))
SELECT CAST(c.id AS BLOB), typeof(c.id), CAST(c.parent_session_id AS BLOB), typeof(c.parent_session_id),
       json_extract(c.config, '$._branched_from') IS c.parent_session_id,
       json_extract(c.config, '$._reset_from') IS c.parent_session_id,
       json_extract(c.config, '$._delegate_from') IS c.parent_session_id,
       c.source IN ('subagent', 'tool'),
       json_extract(c.config, '$._delegate_from') IS NOT NULL,
       c.parent_session_id IN (SELECT spoken.id FROM spoken),
       EXISTS (SELECT 1 FROM state_meta AS t
                WHERE t.key = 'gateway.retired_session.v1.' || c.parent_session_id)
  FROM lost AS c
 ORDER BY c.id;

-- name: detach
-- The session becomes a root; its markers stay as they are, so a branch or reset is still known as one.
UPDATE sessions
   SET parent_session_id = NULL
 WHERE id IN (CAST(:id AS TEXT), :id)
   AND parent_session_id IN (CAST(:parent AS TEXT), :parent)
   AND NOT EXISTS (SELECT 1 FROM sessions AS p WHERE p.id = sessions.parent_session_id);
