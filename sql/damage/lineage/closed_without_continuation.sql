-- Sessions that compression closed and that nothing continues. What continues a session is said in the words of
-- sql/guard/closure.sql: hangs under it, no marker names it, and is no tool run.

-- name: find
-- needs: sessions.session_key gateway_routing
-- One row per session that compression closed and nothing continues: id, end, newest message, its messages, those later than a
-- minute after the end, whether it belongs to a chat, whether a route names it, whether such a route is in use. A tool run is
-- continued by a tool run, which no release tells from its helpers, so tool runs are not asked about.
WITH configured AS NOT MATERIALIZED (
  SELECT session.id, session.parent_session_id, session.source,
         CASE WHEN json_valid(session.model_config) THEN session.model_config ELSE '{}' END AS model_config
    FROM sessions AS session NOT INDEXED
), continued AS MATERIALIZED (
  SELECT child.parent_session_id AS id
    FROM configured AS child
   WHERE child.parent_session_id IS NOT NULL
     AND child.source IS NOT 'tool'
     AND child.parent_session_id IS NOT json_extract(child.model_config, '$._branched_from')
     AND child.parent_session_id IS NOT json_extract(child.model_config, '$._delegate_from')
     AND child.parent_session_id IS NOT json_extract(child.model_config, '$._reset_from')
), routed AS MATERIALIZED (
  SELECT json_extract(r.entry_json, '$.session_id') AS session_id,
         json_extract(r.entry_json, '$.suspended') IS NOT 1
         AND json_extract(r.entry_json, '$.expiry_finalized') IS NOT 1 AS in_use
    FROM gateway_routing AS r
   WHERE CASE WHEN typeof(r.entry_json) = 'text' AND json_valid(r.entry_json)
              THEN json_type(r.entry_json, '$.session_id') END = 'text'
)
SELECT CAST(s.id AS BLOB), CASE WHEN typeof(s.ended_at) IN ('integer', 'real') THEN s.ended_at END,
       (SELECT max(m.timestamp) FROM messages AS m
         WHERE m.session_id = s.id AND typeof(m.timestamp) IN ('integer', 'real') AND m.timestamp < 4200000000),
       (SELECT count(*) FROM messages AS m WHERE m.session_id = s.id),
       (SELECT count(*) FROM messages AS m
         WHERE m.session_id = s.id AND typeof(m.timestamp) IN ('integer', 'real') AND m.timestamp < 4200000000
           AND typeof(s.ended_at) IN ('integer', 'real') AND m.timestamp > s.ended_at + 60),
       s.session_key IS NOT NULL AND s.session_key <> '',
       s.id IN (SELECT r.session_id FROM routed AS r),
       s.id IN (SELECT r.session_id FROM routed AS r WHERE r.in_use)
  FROM sessions AS s NOT INDEXED
 WHERE s.end_reason = 'compression'
   AND s.ended_at IS NOT NULL
   AND typeof(s.id) = 'text'
   AND s.source IS NOT 'tool'
   AND s.id NOT IN (SELECT c.id FROM continued AS c)
 ORDER BY s.id;

-- name: find
-- needs: sessions.session_key
-- The same for files without chat routes.
WITH configured AS NOT MATERIALIZED (
  SELECT session.id, session.parent_session_id, session.source,
         CASE WHEN json_valid(session.model_config) THEN session.model_config ELSE '{}' END AS model_config
    FROM sessions AS session NOT INDEXED
), continued AS MATERIALIZED (
  SELECT child.parent_session_id AS id
    FROM configured AS child
   WHERE child.parent_session_id IS NOT NULL
     AND child.source IS NOT 'tool'
     AND child.parent_session_id IS NOT json_extract(child.model_config, '$._branched_from')
     AND child.parent_session_id IS NOT json_extract(child.model_config, '$._delegate_from')
     AND child.parent_session_id IS NOT json_extract(child.model_config, '$._reset_from')
)
SELECT CAST(s.id AS BLOB), CASE WHEN typeof(s.ended_at) IN ('integer', 'real') THEN s.ended_at END,
       (SELECT max(m.timestamp) FROM messages AS m
         WHERE m.session_id = s.id AND typeof(m.timestamp) IN ('integer', 'real') AND m.timestamp < 4200000000),
       (SELECT count(*) FROM messages AS m WHERE m.session_id = s.id),
       (SELECT count(*) FROM messages AS m
         WHERE m.session_id = s.id AND typeof(m.timestamp) IN ('integer', 'real') AND m.timestamp < 4200000000
           AND typeof(s.ended_at) IN ('integer', 'real') AND m.timestamp > s.ended_at + 60),
       s.session_key IS NOT NULL AND s.session_key <> '',
       0,
       0
  FROM sessions AS s NOT INDEXED
 WHERE s.end_reason = 'compression'
   AND s.ended_at IS NOT NULL
   AND typeof(s.id) = 'text'
   AND s.source IS NOT 'tool'
   AND s.id NOT IN (SELECT c.id FROM continued AS c)
 ORDER BY s.id;

-- name: find
-- The same for files whose sessions do not know their chat.
WITH configured AS NOT MATERIALIZED (
  SELECT session.id, session.parent_session_id, session.source,
         CASE WHEN json_valid(session.model_config) THEN session.model_config ELSE '{}' END AS model_config
    FROM sessions AS session NOT INDEXED
), continued AS MATERIALIZED (
  SELECT child.parent_session_id AS id
    FROM configured AS child
   WHERE child.parent_session_id IS NOT NULL
     AND child.source IS NOT 'tool'
     AND child.parent_session_id IS NOT json_extract(child.model_config, '$._branched_from')
     AND child.parent_session_id IS NOT json_extract(child.model_config, '$._delegate_from')
     AND child.parent_session_id IS NOT json_extract(child.model_config, '$._reset_from')
)
SELECT CAST(s.id AS BLOB), CASE WHEN typeof(s.ended_at) IN ('integer', 'real') THEN s.ended_at END,
       (SELECT max(m.timestamp) FROM messages AS m
         WHERE m.session_id = s.id AND typeof(m.timestamp) IN ('integer', 'real') AND m.timestamp < 4200000000),
       (SELECT count(*) FROM messages AS m WHERE m.session_id = s.id),
       (SELECT count(*) FROM messages AS m
         WHERE m.session_id = s.id AND typeof(m.timestamp) IN ('integer', 'real') AND m.timestamp < 4200000000
           AND typeof(s.ended_at) IN ('integer', 'real') AND m.timestamp > s.ended_at + 60),
       0,
       0,
       0
  FROM sessions AS s NOT INDEXED
 WHERE s.end_reason = 'compression'
   AND s.ended_at IS NOT NULL
   AND typeof(s.id) = 'text'
   AND s.source IS NOT 'tool'
   AND s.id NOT IN (SELECT c.id FROM continued AS c)
 ORDER BY s.id;

-- name: reopen
-- Opens one session again that compression closed and nothing continues.
UPDATE sessions
   SET ended_at = NULL, end_reason = NULL
 WHERE id = CAST(:session_id AS TEXT)
   AND end_reason = 'compression'
   AND ended_at IS NOT NULL
   AND NOT EXISTS (SELECT 1
                     FROM sessions AS child
                    WHERE child.parent_session_id = sessions.id
                      AND child.source IS NOT 'tool'
                      AND NOT coalesce(CASE WHEN json_valid(child.model_config)
                                            THEN child.parent_session_id IS json_extract(child.model_config, '$._branched_from')
                                                 OR child.parent_session_id IS json_extract(child.model_config, '$._delegate_from')
                                                 OR child.parent_session_id IS json_extract(child.model_config, '$._reset_from')
                                       END, 0));
