-- Usage rows whose session row is gone.

-- name: by-model
-- needs: session_model_usage.session_id index:idx_messages_session
-- One row per missing session id: how it is stored, its usage rows by model, and whether messages or a tombstone
-- carry it.
SELECT CAST(u.session_id AS BLOB), typeof(u.session_id), count(*),
       EXISTS (SELECT 1 FROM messages AS m INDEXED BY idx_messages_session WHERE m.session_id = u.session_id),
       EXISTS (SELECT 1 FROM state_meta AS t WHERE t.key = 'gateway.retired_session.v1.' || u.session_id)
  FROM session_model_usage AS u
 WHERE u.session_id IS NOT NULL
   AND NOT EXISTS (SELECT 1 FROM sessions AS s WHERE s.id = u.session_id)
 GROUP BY u.session_id
 ORDER BY u.session_id;

-- name: by-model
-- needs: session_model_usage.session_id
-- The same from the tables alone.
SELECT CAST(u.session_id AS BLOB), typeof(u.session_id), count(*),
       u.session_id IN (SELECT m.session_id FROM messages AS m NOT INDEXED),
       EXISTS (SELECT 1 FROM state_meta AS t WHERE t.key = 'gateway.retired_session.v1.' || u.session_id)
  FROM session_model_usage AS u NOT INDEXED
 WHERE u.session_id IS NOT NULL
   AND u.session_id NOT IN (SELECT s.id FROM sessions AS s NOT INDEXED WHERE s.id IS NOT NULL)
 GROUP BY u.session_id
 ORDER BY u.session_id;

-- name: by-day
-- needs: session_daily_usage.session_id index:idx_messages_session
-- One row per missing session id: how it is stored, its usage rows by day, and whether messages or a tombstone carry
-- it.
SELECT CAST(u.session_id AS BLOB), typeof(u.session_id), count(*),
       EXISTS (SELECT 1 FROM messages AS m INDEXED BY idx_messages_session WHERE m.session_id = u.session_id),
       EXISTS (SELECT 1 FROM state_meta AS t WHERE t.key = 'gateway.retired_session.v1.' || u.session_id)
  FROM session_daily_usage AS u
 WHERE u.session_id IS NOT NULL
   AND NOT EXISTS (SELECT 1 FROM sessions AS s WHERE s.id = u.session_id)
 GROUP BY u.session_id
 ORDER BY u.session_id;

-- name: by-day
-- needs: session_daily_usage.session_id
-- The same from the tables alone.
SELECT CAST(u.session_id AS BLOB), typeof(u.session_id), count(*),
       u.session_id IN (SELECT m.session_id FROM messages AS m NOT INDEXED),
       EXISTS (SELECT 1 FROM state_meta AS t WHERE t.key = 'gateway.retired_session.v1.' || u.session_id)
  FROM session_daily_usage AS u NOT INDEXED
 WHERE u.session_id IS NOT NULL
   AND u.session_id NOT IN (SELECT s.id FROM sessions AS s NOT INDEXED WHERE s.id IS NOT NULL)
 GROUP BY u.session_id
 ORDER BY u.session_id;

-- name: drop-by-model
-- Usage rows by model of one missing session; an id that is not text may be stored either way.
DELETE FROM session_model_usage
 WHERE session_id IN (CAST(:id AS TEXT), :id)
   AND NOT EXISTS (SELECT 1 FROM sessions AS s WHERE s.id = session_model_usage.session_id);

-- name: drop-by-day
-- Usage rows by day of one missing session; an id that is not text may be stored either way.
DELETE FROM session_daily_usage
 WHERE session_id IN (CAST(:id AS TEXT), :id)
   AND NOT EXISTS (SELECT 1 FROM sessions AS s WHERE s.id = session_daily_usage.session_id);
