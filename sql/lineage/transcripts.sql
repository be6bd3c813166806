-- Transcripts of two sessions next to each other: read by hermes_dbtools/damage/lineage/_transcripts.py, for suspects only.

-- name: begins-alike
-- needs: messages.active
-- Whether the first text of a session is the first text of its parent: of all rows, or of those still active.
WITH own AS MATERIALIZED (
  SELECT m.role, trim(m.content, char(9, 10, 13, 32)) AS content
    FROM messages AS m
   WHERE m.session_id = CAST(:child AS TEXT) AND m.role IN ('user', 'assistant') AND octet_length(m.content) > 0
   ORDER BY +m.id
   LIMIT 1)
SELECT EXISTS (
  SELECT 1
    FROM own
   WHERE (own.role, own.content) IN (SELECT p.role, trim(p.content, char(9, 10, 13, 32))
                                       FROM messages AS p
                                      WHERE p.session_id = CAST(:parent AS TEXT)
                                        AND p.role IN ('user', 'assistant') AND octet_length(p.content) > 0
                                      ORDER BY +p.id
                                      LIMIT 1)
      OR (own.role, own.content) IN (SELECT p.role, trim(p.content, char(9, 10, 13, 32))
                                       FROM messages AS p
                                      WHERE p.session_id = CAST(:parent AS TEXT) AND p.active = 1
                                        AND p.role IN ('user', 'assistant') AND octet_length(p.content) > 0
                                      ORDER BY +p.id
                                      LIMIT 1));

-- name: begins-alike
-- The same for files older than the active flag.
WITH own AS MATERIALIZED (
  SELECT m.role, trim(m.content, char(9, 10, 13, 32)) AS content
    FROM messages AS m
   WHERE m.session_id = CAST(:child AS TEXT) AND m.role IN ('user', 'assistant') AND octet_length(m.content) > 0
   ORDER BY +m.id
   LIMIT 1)
SELECT EXISTS (
  SELECT 1
    FROM own
   WHERE (own.role, own.content) IN (SELECT p.role, trim(p.content, char(9, 10, 13, 32))
                                       FROM messages AS p
                                      WHERE p.session_id = CAST(:parent AS TEXT)
                                        AND p.role IN ('user', 'assistant') AND octet_length(p.content) > 0
                                      ORDER BY +p.id
                                      LIMIT 1));

-- name: rows
-- needs: messages.active
-- One row per message of a session in order: id, whether it is active, role, text.
SELECT m.id, m.active IS NOT 0, CAST(m.role AS BLOB), CAST(m.content AS BLOB)
  FROM messages AS m
 WHERE m.session_id = CAST(:session_id AS TEXT)
 ORDER BY +m.id;

-- name: rows
-- The same for files older than the active flag: every row is active.
SELECT m.id, 1, CAST(m.role AS BLOB), CAST(m.content AS BLOB)
  FROM messages AS m
 WHERE m.session_id = CAST(:session_id AS TEXT)
 ORDER BY +m.id;
