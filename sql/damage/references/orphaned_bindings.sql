-- Topic bindings whose session row is gone.

-- name: find
-- needs: index:idx_messages_session
-- One row per missing session id: how it is stored, its bindings, and whether messages or a tombstone carry it.
SELECT CAST(b.session_id AS BLOB), typeof(b.session_id), count(*),
       EXISTS (SELECT 1 FROM messages AS m INDEXED BY idx_messages_session WHERE m.session_id = b.session_id),
       EXISTS (SELECT 1 FROM state_meta AS t WHERE t.key = 'gateway.retired_session.v1.' || b.session_id)
  FROM telegram_dm_topic_bindings AS b
 WHERE b.session_id IS NOT NULL
   AND NOT EXISTS (SELECT 1 FROM sessions AS s WHERE s.id = b.session_id)
 GROUP BY b.session_id
 ORDER BY b.session_id;

-- name: find
-- The same from the tables alone.
SELECT CAST(b.session_id AS BLOB), typeof(b.session_id), count(*),
       b.session_id IN (SELECT m.session_id FROM messages AS m NOT INDEXED),
       EXISTS (SELECT 1 FROM state_meta AS t WHERE t.key = 'gateway.retired_session.v1.' || b.session_id)
  FROM telegram_dm_topic_bindings AS b NOT INDEXED
 WHERE b.session_id IS NOT NULL
   AND b.session_id NOT IN (SELECT s.id FROM sessions AS s NOT INDEXED WHERE s.id IS NOT NULL)
 GROUP BY b.session_id
 ORDER BY b.session_id;

-- name: drop
-- The bindings of one missing session; an id that is not text may be stored either way.
DELETE FROM telegram_dm_topic_bindings
 WHERE session_id IN (CAST(:id AS TEXT), :id)
   AND NOT EXISTS (SELECT 1 FROM sessions AS s WHERE s.id = telegram_dm_topic_bindings.session_id);
