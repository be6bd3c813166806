-- What is asked of session ids that have no row, whatever named them.

-- name: adoptable
-- needs: index:idx_messages_session
-- Those of the ids that orphaned-messages gives a session row again: messages carry them, and no tombstone does.
SELECT CAST(i.value AS BLOB)
  FROM json_each(:ids) AS i
 WHERE EXISTS (SELECT 1 FROM messages AS m INDEXED BY idx_messages_session WHERE m.session_id = i.value)
   AND NOT EXISTS (SELECT 1 FROM state_meta AS t WHERE t.key = 'gateway.retired_session.v1.' || i.value)
   AND NOT EXISTS (SELECT 1 FROM sessions AS s WHERE s.id = i.value)
 ORDER BY i.value;

-- name: adoptable
-- The same from the tables alone: for a file without the index, and for a second look that no stale index can deceive.
WITH spoken AS MATERIALIZED (
  SELECT DISTINCT m.session_id AS id
    FROM messages AS m NOT INDEXED
   WHERE m.session_id IN (SELECT i.value FROM json_each(:ids) AS i)
)
SELECT CAST(p.id AS BLOB)
  FROM spoken AS p
 WHERE NOT EXISTS (SELECT 1 FROM state_meta AS t WHERE t.key = 'gateway.retired_session.v1.' || p.id)
   AND p.id NOT IN (SELECT s.id FROM sessions AS s NOT INDEXED WHERE s.id IS NOT NULL)
 ORDER BY p.id;
