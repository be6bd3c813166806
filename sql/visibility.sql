-- What upstream's own list of sessions shows, read by hermes_dbtools/visibility.py. The rules are those of the newest release that
-- has used the file, which its columns tell: 0.20 and later (sessions.hidden), 0.18 and 0.19 (sessions.session_key), 0.16
-- (sessions.archived), 0.13. A model_config that is no JSON counts as empty; upstream's list fails as a whole on one (HDB401).

-- name: sessions
-- needs: sessions.hidden sessions.session_key
-- One row per session: id, parent, why it is no root of the list ('' where it is one: its parent is missing, was compressed, was branched
-- only later, or is another), whether a delegate marker hides it, its flags archived and hidden, whether compression ended it.
WITH configured AS NOT MATERIALIZED (
  SELECT s.id, s.parent_session_id, s.session_key, s.started_at, s.end_reason, s.archived, s.hidden,
         CASE WHEN typeof(s.model_config) = 'text' AND json_valid(s.model_config) THEN s.model_config ELSE '{}' END AS config
    FROM sessions AS s
)
SELECT CAST(s.id AS BLOB), CAST(s.parent_session_id AS BLOB),
       CASE WHEN s.parent_session_id IS NULL
              OR json_extract(s.config, '$._branched_from') IS NOT NULL
              OR json_extract(s.config, '$._reset_from') IS NOT NULL
              OR (p.end_reason = 'branched' AND s.started_at >= p.ended_at)
              OR (p.end_reason IN ('session_reset', 'session_switch', 'idle', 'daily', 'suspended', 'resume_pending_expired')
                  AND s.session_key <> '' AND s.session_key = p.session_key) THEN ''
            WHEN p.id IS NULL THEN 'missing'
            WHEN p.end_reason = 'compression' THEN 'compressed'
            WHEN p.end_reason = 'branched' THEN 'later'
            ELSE 'other' END,
       json_extract(s.config, '$._delegate_from') IS NOT NULL,
       CASE s.archived WHEN 0 THEN 0 WHEN 1 THEN 1 END,
       CASE s.hidden WHEN 0 THEN 0 WHEN 1 THEN 1 END,
       s.end_reason IS 'compression'
  FROM configured AS s
  LEFT JOIN sessions AS p ON p.id = s.parent_session_id
 WHERE s.id IS NOT NULL
 ORDER BY s.id;

-- name: sessions
-- needs: sessions.session_key sessions.archived
-- The same by the rules of 0.18 and 0.19, which know no resets and no hidden flag.
WITH configured AS NOT MATERIALIZED (
  SELECT s.id, s.parent_session_id, s.started_at, s.end_reason, s.archived,
         CASE WHEN typeof(s.model_config) = 'text' AND json_valid(s.model_config) THEN s.model_config ELSE '{}' END AS config
    FROM sessions AS s
)
SELECT CAST(s.id AS BLOB), CAST(s.parent_session_id AS BLOB),
       CASE WHEN s.parent_session_id IS NULL
              OR json_extract(s.config, '$._branched_from') IS NOT NULL
              OR (p.end_reason = 'branched' AND s.started_at >= p.ended_at) THEN ''
            WHEN p.id IS NULL THEN 'missing'
            WHEN p.end_reason = 'compression' THEN 'compressed'
            WHEN p.end_reason = 'branched' THEN 'later'
            ELSE 'other' END,
       json_extract(s.config, '$._delegate_from') IS NOT NULL,
       CASE s.archived WHEN 0 THEN 0 WHEN 1 THEN 1 END,
       0,
       s.end_reason IS 'compression'
  FROM configured AS s
  LEFT JOIN sessions AS p ON p.id = s.parent_session_id
 WHERE s.id IS NOT NULL
 ORDER BY s.id;

-- name: sessions
-- needs: sessions.archived
-- The same by the rules of 0.16, whose list asks for no delegate marker.
WITH configured AS NOT MATERIALIZED (
  SELECT s.id, s.parent_session_id, s.started_at, s.end_reason, s.archived,
         CASE WHEN typeof(s.model_config) = 'text' AND json_valid(s.model_config) THEN s.model_config ELSE '{}' END AS config
    FROM sessions AS s
)
SELECT CAST(s.id AS BLOB), CAST(s.parent_session_id AS BLOB),
       CASE WHEN s.parent_session_id IS NULL
              OR json_extract(s.config, '$._branched_from') IS NOT NULL
              OR (p.end_reason = 'branched' AND s.started_at >= p.ended_at) THEN ''
            WHEN p.id IS NULL THEN 'missing'
            WHEN p.end_reason = 'compression' THEN 'compressed'
            WHEN p.end_reason = 'branched' THEN 'later'
            ELSE 'other' END,
       0,
       CASE s.archived WHEN 0 THEN 0 WHEN 1 THEN 1 END,
       0,
       s.end_reason IS 'compression'
  FROM configured AS s
  LEFT JOIN sessions AS p ON p.id = s.parent_session_id
 WHERE s.id IS NOT NULL
 ORDER BY s.id;

-- name: sessions
-- The same by the rules of 0.13 to 0.15, which know neither markers nor flags.
SELECT CAST(s.id AS BLOB), CAST(s.parent_session_id AS BLOB),
       CASE WHEN s.parent_session_id IS NULL OR (p.end_reason = 'branched' AND s.started_at >= p.ended_at) THEN ''
            WHEN p.id IS NULL THEN 'missing'
            WHEN p.end_reason = 'compression' THEN 'compressed'
            WHEN p.end_reason = 'branched' THEN 'later'
            ELSE 'other' END,
       0, 0, 0,
       s.end_reason IS 'compression'
  FROM sessions AS s
  LEFT JOIN sessions AS p ON p.id = s.parent_session_id
 WHERE s.id IS NOT NULL
 ORDER BY s.id;

-- name: continuations
-- needs: sessions.session_key
-- One row per session that upstream takes for a continuation: its compressed parent, the session.
SELECT CAST(p.id AS BLOB), CAST(c.id AS BLOB)
  FROM sessions AS c
  JOIN sessions AS p ON p.id = c.parent_session_id
 WHERE p.end_reason = 'compression'
   AND c.id IS NOT NULL
   AND c.source <> 'tool'
   AND CASE WHEN typeof(c.model_config) = 'text' AND json_valid(c.model_config)
            THEN json_extract(c.model_config, '$._branched_from') IS NULL
                 AND json_extract(c.model_config, '$._delegate_from') IS NULL
            ELSE 1 END
 ORDER BY p.id, c.id;

-- name: continuations
-- The same before 0.18: any child that started when its parent had ended.
SELECT CAST(p.id AS BLOB), CAST(c.id AS BLOB)
  FROM sessions AS c
  JOIN sessions AS p ON p.id = c.parent_session_id
 WHERE p.end_reason = 'compression'
   AND c.id IS NOT NULL
   AND c.started_at >= p.ended_at
 ORDER BY p.id, c.id;

-- name: rivals
-- needs: sessions.last_activity_at sessions.session_key index:idx_messages_session
-- One row per continuation of a parent that has several, the one upstream follows first: parent, continuation. A chain that goes on wins
-- over an open session, that over an ended one, then the later activity.
WITH candidates AS MATERIALIZED (
  SELECT p.id AS parent, c.id, c.end_reason, c.ended_at, c.started_at, c.last_activity_at,
         count(*) OVER (PARTITION BY p.id) AS several
    FROM sessions AS c
    JOIN sessions AS p ON p.id = c.parent_session_id
   WHERE p.end_reason = 'compression'
     AND c.id IS NOT NULL
     AND c.source <> 'tool'
     AND CASE WHEN typeof(c.model_config) = 'text' AND json_valid(c.model_config)
              THEN json_extract(c.model_config, '$._branched_from') IS NULL
                   AND json_extract(c.model_config, '$._delegate_from') IS NULL
              ELSE 1 END
)
SELECT CAST(c.parent AS BLOB), CAST(c.id AS BLOB)
  FROM candidates AS c
 WHERE c.several > 1
 ORDER BY c.parent,
          CASE WHEN c.end_reason = 'compression' THEN 0 WHEN c.ended_at IS NULL THEN 1 ELSE 2 END,
          coalesce((SELECT max(a.moment)
                      FROM (SELECT c.last_activity_at AS moment
                             UNION ALL
                            SELECT max(m.timestamp) FROM messages AS m INDEXED BY idx_messages_session
                             WHERE m.session_id = c.id) AS a), c.started_at) DESC,
          c.started_at DESC, c.id DESC;

-- name: rivals
-- needs: sessions.session_key index:idx_messages_session
-- The same for releases that keep no time of activity beside the messages.
WITH candidates AS MATERIALIZED (
  SELECT p.id AS parent, c.id, c.end_reason, c.ended_at, c.started_at,
         count(*) OVER (PARTITION BY p.id) AS several
    FROM sessions AS c
    JOIN sessions AS p ON p.id = c.parent_session_id
   WHERE p.end_reason = 'compression'
     AND c.id IS NOT NULL
     AND c.source <> 'tool'
     AND CASE WHEN typeof(c.model_config) = 'text' AND json_valid(c.model_config)
              THEN json_extract(c.model_config, '$._branched_from') IS NULL
                   AND json_extract(c.model_config, '$._delegate_from') IS NULL
              ELSE 1 END
)
SELECT CAST(c.parent AS BLOB), CAST(c.id AS BLOB)
  FROM candidates AS c
 WHERE c.several > 1
 ORDER BY c.parent,
          CASE WHEN c.end_reason = 'compression' THEN 0 WHEN c.ended_at IS NULL THEN 1 ELSE 2 END,
          coalesce((SELECT max(m.timestamp) FROM messages AS m INDEXED BY idx_messages_session
                     WHERE m.session_id = c.id), c.started_at) DESC,
          c.started_at DESC, c.id DESC;

-- name: rivals
-- needs: sessions.last_activity_at sessions.session_key
-- The same with a time of activity, from the tables alone: every message's session and time are read.
WITH candidates AS MATERIALIZED (
  SELECT p.id AS parent, c.id, c.end_reason, c.ended_at, c.started_at, c.last_activity_at,
         count(*) OVER (PARTITION BY p.id) AS several
    FROM sessions AS c
    JOIN sessions AS p ON p.id = c.parent_session_id
   WHERE p.end_reason = 'compression'
     AND c.id IS NOT NULL
     AND c.source <> 'tool'
     AND CASE WHEN typeof(c.model_config) = 'text' AND json_valid(c.model_config)
              THEN json_extract(c.model_config, '$._branched_from') IS NULL
                   AND json_extract(c.model_config, '$._delegate_from') IS NULL
              ELSE 1 END
), newest AS MATERIALIZED (
  SELECT m.session_id, max(m.timestamp) AS moment
    FROM messages AS m NOT INDEXED
   WHERE m.session_id IN (SELECT c.id FROM candidates AS c WHERE c.several > 1)
   GROUP BY m.session_id
)
SELECT CAST(c.parent AS BLOB), CAST(c.id AS BLOB)
  FROM candidates AS c
  LEFT JOIN newest AS n ON n.session_id = c.id
 WHERE c.several > 1
 ORDER BY c.parent,
          CASE WHEN c.end_reason = 'compression' THEN 0 WHEN c.ended_at IS NULL THEN 1 ELSE 2 END,
          coalesce(CASE WHEN n.moment > c.last_activity_at THEN n.moment ELSE coalesce(c.last_activity_at, n.moment) END,
                   c.started_at) DESC,
          c.started_at DESC, c.id DESC;

-- name: rivals
-- needs: sessions.session_key
-- The same without a time of activity, from the tables alone.
WITH candidates AS MATERIALIZED (
  SELECT p.id AS parent, c.id, c.end_reason, c.ended_at, c.started_at,
         count(*) OVER (PARTITION BY p.id) AS several
    FROM sessions AS c
    JOIN sessions AS p ON p.id = c.parent_session_id
   WHERE p.end_reason = 'compression'
     AND c.id IS NOT NULL
     AND c.source <> 'tool'
     AND CASE WHEN typeof(c.model_config) = 'text' AND json_valid(c.model_config)
              THEN json_extract(c.model_config, '$._branched_from') IS NULL
                   AND json_extract(c.model_config, '$._delegate_from') IS NULL
              ELSE 1 END
), newest AS MATERIALIZED (
  SELECT m.session_id, max(m.timestamp) AS moment
    FROM messages AS m NOT INDEXED
   WHERE m.session_id IN (SELECT c.id FROM candidates AS c WHERE c.several > 1)
   GROUP BY m.session_id
)
SELECT CAST(c.parent AS BLOB), CAST(c.id AS BLOB)
  FROM candidates AS c
  LEFT JOIN newest AS n ON n.session_id = c.id
 WHERE c.several > 1
 ORDER BY c.parent,
          CASE WHEN c.end_reason = 'compression' THEN 0 WHEN c.ended_at IS NULL THEN 1 ELSE 2 END,
          coalesce(n.moment, c.started_at) DESC,
          c.started_at DESC, c.id DESC;

-- name: rivals
-- The same before 0.18: the continuation that started last.
SELECT CAST(c.parent AS BLOB), CAST(c.id AS BLOB)
  FROM (SELECT p.id AS parent, c.id, c.started_at, count(*) OVER (PARTITION BY p.id) AS several
          FROM sessions AS c
          JOIN sessions AS p ON p.id = c.parent_session_id
         WHERE p.end_reason = 'compression'
           AND c.id IS NOT NULL
           AND c.started_at >= p.ended_at) AS c
 WHERE c.several > 1
 ORDER BY c.parent, c.started_at DESC, c.id;
