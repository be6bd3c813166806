-- Open sessions that nobody has used for long, measured against the newest activity in the file (sql/lineage/activity.sql).

-- name: find
-- needs: sessions.last_activity_at index:idx_messages_session
-- One row per open session without any activity after :before: id, start, newest message, newest activity. Sessions without title and
-- messages are left to HDB313, those with a reason but no end to HDB310.
WITH open AS MATERIALIZED (
  SELECT s.id, s.title, s.started_at, s.last_activity_at AS active_at,
         (SELECT max(m.timestamp) FROM messages AS m INDEXED BY idx_messages_session
           WHERE m.session_id = s.id AND m.timestamp < 4200000000) AS written_at,
         EXISTS (SELECT 1 FROM messages AS m INDEXED BY idx_messages_session WHERE m.session_id = s.id) AS spoken
    FROM sessions AS s
   WHERE typeof(s.id) = 'text'
     AND s.ended_at IS NULL AND coalesce(s.end_reason, '') = ''
     AND s.started_at > 0 AND s.started_at <= :before
     AND (s.last_activity_at IS NULL OR s.last_activity_at <= :before)
)
SELECT CAST(o.id AS BLOB), o.started_at, o.written_at, o.active_at
  FROM open AS o
 WHERE (o.written_at IS NULL OR o.written_at <= :before)
   AND (o.spoken OR o.title IS NOT NULL)
 ORDER BY o.id;

-- name: find
-- needs: index:idx_messages_session
-- The same where sessions keep no time of activity.
WITH open AS MATERIALIZED (
  SELECT s.id, s.title, s.started_at, NULL AS active_at,
         (SELECT max(m.timestamp) FROM messages AS m INDEXED BY idx_messages_session
           WHERE m.session_id = s.id AND m.timestamp < 4200000000) AS written_at,
         EXISTS (SELECT 1 FROM messages AS m INDEXED BY idx_messages_session WHERE m.session_id = s.id) AS spoken
    FROM sessions AS s
   WHERE typeof(s.id) = 'text'
     AND s.ended_at IS NULL AND coalesce(s.end_reason, '') = ''
     AND s.started_at > 0 AND s.started_at <= :before
)
SELECT CAST(o.id AS BLOB), o.started_at, o.written_at, o.active_at
  FROM open AS o
 WHERE (o.written_at IS NULL OR o.written_at <= :before)
   AND (o.spoken OR o.title IS NOT NULL)
 ORDER BY o.id;

-- name: find
-- needs: sessions.last_activity_at
-- The same with a time of activity, from the tables alone.
WITH written AS MATERIALIZED (
  SELECT m.session_id, max(CASE WHEN m.timestamp < 4200000000 THEN m.timestamp END) AS moment
    FROM messages AS m NOT INDEXED
   GROUP BY m.session_id
)
SELECT CAST(s.id AS BLOB), s.started_at, w.moment, s.last_activity_at
  FROM sessions AS s NOT INDEXED
  LEFT JOIN written AS w ON w.session_id = s.id
 WHERE typeof(s.id) = 'text'
   AND s.ended_at IS NULL AND coalesce(s.end_reason, '') = ''
   AND s.started_at > 0 AND s.started_at <= :before
   AND (s.last_activity_at IS NULL OR s.last_activity_at <= :before)
   AND (w.moment IS NULL OR w.moment <= :before)
   AND (w.session_id IS NOT NULL OR s.title IS NOT NULL)
 ORDER BY s.id;

-- name: find
-- The same without a time of activity, from the tables alone.
WITH written AS MATERIALIZED (
  SELECT m.session_id, max(CASE WHEN m.timestamp < 4200000000 THEN m.timestamp END) AS moment
    FROM messages AS m NOT INDEXED
   GROUP BY m.session_id
)
SELECT CAST(s.id AS BLOB), s.started_at, w.moment, NULL
  FROM sessions AS s NOT INDEXED
  LEFT JOIN written AS w ON w.session_id = s.id
 WHERE typeof(s.id) = 'text'
   AND s.ended_at IS NULL AND coalesce(s.end_reason, '') = ''
   AND s.started_at > 0 AND s.started_at <= :before
   AND (w.moment IS NULL OR w.moment <= :before)
   AND (w.session_id IS NOT NULL OR s.title IS NOT NULL)
 ORDER BY s.id;

-- name: routed
-- needs: gateway_routing
-- One row per session that a route names.
SELECT DISTINCT CAST(json_extract(r.entry_json, '$.session_id') AS BLOB)
  FROM gateway_routing AS r
 WHERE CASE WHEN typeof(r.entry_json) = 'text' AND json_valid(r.entry_json)
            THEN json_type(r.entry_json, '$.session_id') END = 'text';

-- name: bound
-- needs: telegram_dm_topic_bindings.session_id
-- One row per session that a topic is bound to.
SELECT DISTINCT CAST(b.session_id AS BLOB)
  FROM telegram_dm_topic_bindings AS b;

-- name: beating
-- needs: gateway_heartbeats.started_at gateway_heartbeats.last_heartbeat
-- The earliest start of a backend that has said since :since that it is alive; a time that is no number counts.
SELECT count(*), min(CASE WHEN typeof(b.started_at) IN ('integer', 'real') THEN b.started_at ELSE 0 END)
  FROM gateway_heartbeats AS b
 WHERE typeof(b.last_heartbeat) NOT IN ('integer', 'real') OR b.last_heartbeat > :since;

-- name: close
-- Ends one open session at the time it was last used.
UPDATE sessions
   SET ended_at = :ended_at, end_reason = :end_reason
 WHERE id = CAST(:session_id AS TEXT)
   AND ended_at IS NULL
   AND coalesce(end_reason, '') = '';
