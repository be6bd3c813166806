-- Sessions that ended and go on. One that ended as branched and has no branch is branched-root-leftovers (HDB301); times that cannot be
-- times are left to HDB402; an end without a reason to HDB310.

-- name: find
-- needs: sessions.session_key gateway_routing index:idx_messages_session
-- One row per session: id, end, what ended it (a reset, a compression, a branching, or ''), its newest message later than a minute after the
-- end, how many there are, whether it belongs to a chat, whether a route names it, whether one in use does, whether it has children without
-- a marker of their own that are no sub-agents. A route to what a reset or a compression ended is normal.
WITH configured AS MATERIALIZED (
  SELECT c.id, c.parent_session_id, c.source,
         CASE WHEN typeof(c.model_config) = 'text' AND json_valid(c.model_config) THEN c.model_config ELSE '{}' END AS config
    FROM sessions AS c
), marked AS MATERIALIZED (
  SELECT json_extract(b.config, '$._branched_from') AS root
    FROM configured AS b
   WHERE json_type(b.config, '$._branched_from') = 'text'
), children AS MATERIALIZED (
  SELECT c.parent_session_id,
         CASE WHEN c.parent_session_id IS json_extract(c.config, '$._branched_from')
                OR c.parent_session_id IS json_extract(c.config, '$._reset_from') THEN 'marked'
              WHEN c.source IN ('subagent', 'tool')
                OR c.parent_session_id IS json_extract(c.config, '$._delegate_from') THEN 'delegate'
              ELSE 'plain' END AS kind
    FROM configured AS c
   WHERE c.parent_session_id IS NOT NULL
), routed AS MATERIALIZED (
  SELECT json_extract(r.entry_json, '$.session_id') AS session_id,
         max(json_extract(r.entry_json, '$.suspended') IS NOT 1
             AND json_extract(r.entry_json, '$.expiry_finalized') IS NOT 1) AS in_use
    FROM gateway_routing AS r
   WHERE CASE WHEN typeof(r.entry_json) = 'text' AND json_valid(r.entry_json)
              THEN json_type(r.entry_json, '$.session_id') END = 'text'
   GROUP BY 1
), ended AS MATERIALIZED (
  SELECT s.id, s.ended_at, s.end_reason, coalesce(s.session_key, '') <> '' AS chat
    FROM sessions AS s
   WHERE typeof(s.id) = 'text'
     AND typeof(s.ended_at) IN ('integer', 'real') AND s.ended_at > 0 AND s.ended_at < 4200000000
     AND coalesce(s.end_reason, '') <> ''
     AND (s.end_reason <> 'branched'
          OR s.id IN (SELECT b.root FROM marked AS b)
          OR s.id IN (SELECT c.parent_session_id FROM children AS c WHERE c.kind <> 'delegate'))
)
SELECT CAST(e.id AS BLOB), e.ended_at,
       CASE WHEN e.end_reason IN ('session_reset', 'session_switch', 'idle', 'daily', 'suspended', 'resume_pending_expired')
            THEN 'reset' WHEN e.end_reason IN ('compression', 'branched') THEN e.end_reason ELSE '' END,
       (SELECT max(m.timestamp) FROM messages AS m INDEXED BY idx_messages_session
         WHERE m.session_id = e.id AND m.timestamp > e.ended_at + 60 AND m.timestamp < 4200000000),
       (SELECT count(*) FROM messages AS m INDEXED BY idx_messages_session
         WHERE m.session_id = e.id AND m.timestamp > e.ended_at + 60 AND m.timestamp < 4200000000),
       e.chat, r.session_id IS NOT NULL, coalesce(r.in_use, 0),
       e.id IN (SELECT c.parent_session_id FROM children AS c WHERE c.kind = 'plain')
  FROM ended AS e
  LEFT JOIN routed AS r ON r.session_id = e.id
 WHERE EXISTS (SELECT 1 FROM messages AS m INDEXED BY idx_messages_session
                WHERE m.session_id = e.id AND m.timestamp > e.ended_at + 60 AND m.timestamp < 4200000000)
    OR (r.in_use AND e.end_reason NOT IN ('compression', 'session_reset', 'session_switch', 'idle', 'daily', 'suspended',
                                          'resume_pending_expired'))
 ORDER BY e.id;

-- name: find
-- needs: index:idx_messages_session
-- The same for files without chat routes.
WITH configured AS MATERIALIZED (
  SELECT c.id, c.parent_session_id, c.source,
         CASE WHEN typeof(c.model_config) = 'text' AND json_valid(c.model_config) THEN c.model_config ELSE '{}' END AS config
    FROM sessions AS c
), marked AS MATERIALIZED (
  SELECT json_extract(b.config, '$._branched_from') AS root
    FROM configured AS b
   WHERE json_type(b.config, '$._branched_from') = 'text'
), children AS MATERIALIZED (
  SELECT c.parent_session_id,
         CASE WHEN c.parent_session_id IS json_extract(c.config, '$._branched_from')
                OR c.parent_session_id IS json_extract(c.config, '$._reset_from') THEN 'marked'
              WHEN c.source IN ('subagent', 'tool')
                OR c.parent_session_id IS json_extract(c.config, '$._delegate_from') THEN 'delegate'
              ELSE 'plain' END AS kind
    FROM configured AS c
   WHERE c.parent_session_id IS NOT NULL
), routed AS MATERIALIZED (
  SELECT NULL AS session_id, 0 AS in_use
), ended AS MATERIALIZED (
  SELECT s.id, s.ended_at, s.end_reason, 0 AS chat
    FROM sessions AS s
   WHERE typeof(s.id) = 'text'
     AND typeof(s.ended_at) IN ('integer', 'real') AND s.ended_at > 0 AND s.ended_at < 4200000000
     AND coalesce(s.end_reason, '') <> ''
     AND (s.end_reason <> 'branched'
          OR s.id IN (SELECT b.root FROM marked AS b)
          OR s.id IN (SELECT c.parent_session_id FROM children AS c WHERE c.kind <> 'delegate'))
)
SELECT CAST(e.id AS BLOB), e.ended_at,
       CASE WHEN e.end_reason IN ('session_reset', 'session_switch', 'idle', 'daily', 'suspended', 'resume_pending_expired')
            THEN 'reset' WHEN e.end_reason IN ('compression', 'branched') THEN e.end_reason ELSE '' END,
       (SELECT max(m.timestamp) FROM messages AS m INDEXED BY idx_messages_session
         WHERE m.session_id = e.id AND m.timestamp > e.ended_at + 60 AND m.timestamp < 4200000000),
       (SELECT count(*) FROM messages AS m INDEXED BY idx_messages_session
         WHERE m.session_id = e.id AND m.timestamp > e.ended_at + 60 AND m.timestamp < 4200000000),
       e.chat, r.session_id IS NOT NULL, coalesce(r.in_use, 0),
       e.id IN (SELECT c.parent_session_id FROM children AS c WHERE c.kind = 'plain')
  FROM ended AS e
  LEFT JOIN routed AS r ON r.session_id = e.id
 WHERE EXISTS (SELECT 1 FROM messages AS m INDEXED BY idx_messages_session
                WHERE m.session_id = e.id AND m.timestamp > e.ended_at + 60 AND m.timestamp < 4200000000)
    OR (r.in_use AND e.end_reason NOT IN ('compression', 'session_reset', 'session_switch', 'idle', 'daily', 'suspended',
                                          'resume_pending_expired'))
 ORDER BY e.id;

-- name: find
-- needs: sessions.session_key gateway_routing
-- The same with chat routes, from the tables alone.
WITH configured AS MATERIALIZED (
  SELECT c.id, c.parent_session_id, c.source,
         CASE WHEN typeof(c.model_config) = 'text' AND json_valid(c.model_config) THEN c.model_config ELSE '{}' END AS config
    FROM sessions AS c NOT INDEXED
), marked AS MATERIALIZED (
  SELECT json_extract(b.config, '$._branched_from') AS root
    FROM configured AS b
   WHERE json_type(b.config, '$._branched_from') = 'text'
), children AS MATERIALIZED (
  SELECT c.parent_session_id,
         CASE WHEN c.parent_session_id IS json_extract(c.config, '$._branched_from')
                OR c.parent_session_id IS json_extract(c.config, '$._reset_from') THEN 'marked'
              WHEN c.source IN ('subagent', 'tool')
                OR c.parent_session_id IS json_extract(c.config, '$._delegate_from') THEN 'delegate'
              ELSE 'plain' END AS kind
    FROM configured AS c
   WHERE c.parent_session_id IS NOT NULL
), routed AS MATERIALIZED (
  SELECT json_extract(r.entry_json, '$.session_id') AS session_id,
         max(json_extract(r.entry_json, '$.suspended') IS NOT 1
             AND json_extract(r.entry_json, '$.expiry_finalized') IS NOT 1) AS in_use
    FROM gateway_routing AS r
   WHERE CASE WHEN typeof(r.entry_json) = 'text' AND json_valid(r.entry_json)
              THEN json_type(r.entry_json, '$.session_id') END = 'text'
   GROUP BY 1
), ended AS MATERIALIZED (
  SELECT s.id, s.ended_at, s.end_reason, coalesce(s.session_key, '') <> '' AS chat
    FROM sessions AS s NOT INDEXED
   WHERE typeof(s.id) = 'text'
     AND typeof(s.ended_at) IN ('integer', 'real') AND s.ended_at > 0 AND s.ended_at < 4200000000
     AND coalesce(s.end_reason, '') <> ''
     AND (s.end_reason <> 'branched'
          OR s.id IN (SELECT b.root FROM marked AS b)
          OR s.id IN (SELECT c.parent_session_id FROM children AS c WHERE c.kind <> 'delegate'))
), late AS MATERIALIZED (
  SELECT m.session_id, max(m.timestamp) AS newest, count(*) AS number
    FROM messages AS m NOT INDEXED
    JOIN ended AS e ON e.id = m.session_id
   WHERE m.timestamp > e.ended_at + 60 AND m.timestamp < 4200000000
   GROUP BY m.session_id
)
SELECT CAST(e.id AS BLOB), e.ended_at,
       CASE WHEN e.end_reason IN ('session_reset', 'session_switch', 'idle', 'daily', 'suspended', 'resume_pending_expired')
            THEN 'reset' WHEN e.end_reason IN ('compression', 'branched') THEN e.end_reason ELSE '' END,
       l.newest, coalesce(l.number, 0),
       e.chat, r.session_id IS NOT NULL, coalesce(r.in_use, 0),
       e.id IN (SELECT c.parent_session_id FROM children AS c WHERE c.kind = 'plain')
  FROM ended AS e
  LEFT JOIN routed AS r ON r.session_id = e.id
  LEFT JOIN late AS l ON l.session_id = e.id
 WHERE l.number > 0
    OR (r.in_use AND e.end_reason NOT IN ('compression', 'session_reset', 'session_switch', 'idle', 'daily', 'suspended',
                                          'resume_pending_expired'))
 ORDER BY e.id;

-- name: find
-- The same without chat routes, from the tables alone.
WITH configured AS MATERIALIZED (
  SELECT c.id, c.parent_session_id, c.source,
         CASE WHEN typeof(c.model_config) = 'text' AND json_valid(c.model_config) THEN c.model_config ELSE '{}' END AS config
    FROM sessions AS c NOT INDEXED
), marked AS MATERIALIZED (
  SELECT json_extract(b.config, '$._branched_from') AS root
    FROM configured AS b
   WHERE json_type(b.config, '$._branched_from') = 'text'
), children AS MATERIALIZED (
  SELECT c.parent_session_id,
         CASE WHEN c.parent_session_id IS json_extract(c.config, '$._branched_from')
                OR c.parent_session_id IS json_extract(c.config, '$._reset_from') THEN 'marked'
              WHEN c.source IN ('subagent', 'tool')
                OR c.parent_session_id IS json_extract(c.config, '$._delegate_from') THEN 'delegate'
              ELSE 'plain' END AS kind
    FROM configured AS c
   WHERE c.parent_session_id IS NOT NULL
), routed AS MATERIALIZED (
  SELECT NULL AS session_id, 0 AS in_use
), ended AS MATERIALIZED (
  SELECT s.id, s.ended_at, s.end_reason, 0 AS chat
    FROM sessions AS s NOT INDEXED
   WHERE typeof(s.id) = 'text'
     AND typeof(s.ended_at) IN ('integer', 'real') AND s.ended_at > 0 AND s.ended_at < 4200000000
     AND coalesce(s.end_reason, '') <> ''
     AND (s.end_reason <> 'branched'
          OR s.id IN (SELECT b.root FROM marked AS b)
          OR s.id IN (SELECT c.parent_session_id FROM children AS c WHERE c.kind <> 'delegate'))
), late AS MATERIALIZED (
  SELECT m.session_id, max(m.timestamp) AS newest, count(*) AS number
    FROM messages AS m NOT INDEXED
    JOIN ended AS e ON e.id = m.session_id
   WHERE m.timestamp > e.ended_at + 60 AND m.timestamp < 4200000000
   GROUP BY m.session_id
)
SELECT CAST(e.id AS BLOB), e.ended_at,
       CASE WHEN e.end_reason IN ('session_reset', 'session_switch', 'idle', 'daily', 'suspended', 'resume_pending_expired')
            THEN 'reset' WHEN e.end_reason IN ('compression', 'branched') THEN e.end_reason ELSE '' END,
       l.newest, coalesce(l.number, 0),
       e.chat, r.session_id IS NOT NULL, coalesce(r.in_use, 0),
       e.id IN (SELECT c.parent_session_id FROM children AS c WHERE c.kind = 'plain')
  FROM ended AS e
  LEFT JOIN routed AS r ON r.session_id = e.id
  LEFT JOIN late AS l ON l.session_id = e.id
 WHERE l.number > 0
    OR (r.in_use AND e.end_reason NOT IN ('compression', 'session_reset', 'session_switch', 'idle', 'daily', 'suspended',
                                          'resume_pending_expired'))
 ORDER BY e.id;

-- name: reopen
-- Opens one session again, as a resume does.
UPDATE sessions
   SET ended_at = NULL, end_reason = NULL
 WHERE id = CAST(:session_id AS TEXT)
   AND ended_at IS :ended_at
   AND end_reason IS NOT NULL;
