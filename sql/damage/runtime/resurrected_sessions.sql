-- Sessions whose id has a tombstone.

-- name: find
-- One row per session that its tombstone says was deleted: id, start, end, whether it has messages.
WITH tombs AS MATERIALIZED (
  SELECT substr(k.key, length('gateway.retired_session.v1.') + 1) AS id
    FROM state_meta AS k
   WHERE k.key > 'gateway.retired_session.v1.' AND k.key < 'gateway.retired_session.v1/'
)
SELECT CAST(s.id AS BLOB),
       CASE WHEN typeof(s.started_at) IN ('integer', 'real') THEN s.started_at END,
       CASE WHEN typeof(s.ended_at) IN ('integer', 'real') THEN s.ended_at END,
       EXISTS (SELECT 1 FROM messages AS m WHERE m.session_id = s.id)
  FROM tombs AS t
 INNER JOIN sessions AS s ON s.id = t.id
 ORDER BY s.id;
