-- Sessions that are half ended, or that ended before they began. Times that cannot be times are left to HDB402.

-- name: find
-- needs: index:idx_messages_session
-- One row per session: id, whether the end is missing, whether the reason is, start, end, the newest time of its own (its start or a message),
-- and where children depend on the end (compression, branched) the start of its first child.
WITH odd AS MATERIALIZED (
  SELECT s.id, s.started_at, s.ended_at, s.end_reason
    FROM sessions AS s
   WHERE typeof(s.id) = 'text'
     AND typeof(s.started_at) IN ('integer', 'real') AND s.started_at > 0 AND s.started_at < 4200000000
     AND (s.ended_at IS NULL
          OR (typeof(s.ended_at) IN ('integer', 'real') AND s.ended_at > 0 AND s.ended_at < 4200000000))
     AND ((s.ended_at IS NULL) <> (coalesce(s.end_reason, '') = '') OR s.ended_at < s.started_at - 5)
)
SELECT CAST(o.id AS BLOB), o.ended_at IS NULL, coalesce(o.end_reason, '') = '', o.started_at, o.ended_at,
       max(o.started_at,
           coalesce((SELECT max(m.timestamp) FROM messages AS m INDEXED BY idx_messages_session
                      WHERE m.session_id = o.id AND m.timestamp > 0 AND m.timestamp < 4200000000), o.started_at)),
       CASE WHEN o.end_reason IN ('compression', 'branched')
            THEN (SELECT min(c.started_at) FROM sessions AS c
                   WHERE c.parent_session_id = o.id
                     AND c.started_at >= o.started_at AND c.started_at < 4200000000) END
  FROM odd AS o
 ORDER BY o.id;

-- name: find
-- The same from the tables alone.
WITH odd AS MATERIALIZED (
  SELECT s.id, s.started_at, s.ended_at, s.end_reason
    FROM sessions AS s NOT INDEXED
   WHERE typeof(s.id) = 'text'
     AND typeof(s.started_at) IN ('integer', 'real') AND s.started_at > 0 AND s.started_at < 4200000000
     AND (s.ended_at IS NULL
          OR (typeof(s.ended_at) IN ('integer', 'real') AND s.ended_at > 0 AND s.ended_at < 4200000000))
     AND ((s.ended_at IS NULL) <> (coalesce(s.end_reason, '') = '') OR s.ended_at < s.started_at - 5)
), newest AS MATERIALIZED (
  SELECT m.session_id, max(m.timestamp) AS moment
    FROM messages AS m NOT INDEXED
   WHERE EXISTS (SELECT 1 FROM odd)
     AND m.session_id IN (SELECT o.id FROM odd AS o) AND m.timestamp > 0 AND m.timestamp < 4200000000
   GROUP BY m.session_id
), children AS MATERIALIZED (
  SELECT c.parent_session_id, min(c.started_at) AS moment
    FROM sessions AS c NOT INDEXED
    JOIN odd AS p ON p.id = c.parent_session_id
   WHERE c.started_at >= p.started_at AND c.started_at < 4200000000
   GROUP BY c.parent_session_id
)
SELECT CAST(o.id AS BLOB), o.ended_at IS NULL, coalesce(o.end_reason, '') = '', o.started_at, o.ended_at,
       max(o.started_at, coalesce(n.moment, o.started_at)),
       CASE WHEN o.end_reason IN ('compression', 'branched') THEN c.moment END
  FROM odd AS o
  LEFT JOIN newest AS n ON n.session_id = o.id
  LEFT JOIN children AS c ON c.parent_session_id = o.id
 ORDER BY o.id;

-- name: complete-end
-- Gives one session the time of its end; its reason stays.
UPDATE sessions
   SET ended_at = :ended_at
 WHERE id = CAST(:session_id AS TEXT)
   AND ended_at IS :was
   AND coalesce(end_reason, '') <> '';

-- name: complete-reason
-- Gives one session a reason for its end; its time stays.
UPDATE sessions
   SET end_reason = :end_reason
 WHERE id = CAST(:session_id AS TEXT)
   AND ended_at IS :was
   AND coalesce(end_reason, '') = '';

-- name: complete-both
-- Gives one session that has no reason, and an end before its start or its newest message, both.
UPDATE sessions
   SET ended_at = :ended_at, end_reason = :end_reason
 WHERE id = CAST(:session_id AS TEXT)
   AND ended_at IS :was
   AND coalesce(end_reason, '') = '';
