-- What several transcript classes ask about suspects of the content pass. Ids of messages come as a JSON array.

-- name: sessions-of
-- One row per asked-for message whose session has a row: its id and its session.
SELECT m.id, CAST(m.session_id AS BLOB)
  FROM json_each(CAST(:ids AS TEXT)) AS wanted
 INNER JOIN messages AS m ON m.id = wanted.value
 WHERE EXISTS (SELECT 1 FROM sessions AS s WHERE s.id = m.session_id)
 ORDER BY m.id;

-- name: texts-of
-- needs: messages.active
-- One row per asked-for message that is active: its id, its calls, the id of the call it answers.
SELECT m.id, CAST(m.tool_calls AS BLOB), CAST(m.tool_call_id AS BLOB)
  FROM json_each(CAST(:ids AS TEXT)) AS wanted
 INNER JOIN messages AS m ON m.id = wanted.value
 WHERE m.active IS NOT 0
 ORDER BY m.id;

-- name: texts-of
-- The same for files older than the active flag: every row is active.
SELECT m.id, CAST(m.tool_calls AS BLOB), CAST(m.tool_call_id AS BLOB)
  FROM json_each(CAST(:ids AS TEXT)) AS wanted
 INNER JOIN messages AS m ON m.id = wanted.value
 ORDER BY m.id;

-- name: last-spoken
-- needs: messages.active
-- The last active message of a session that is not the result of a call.
SELECT max(m.id)
  FROM messages AS m
 WHERE m.session_id = CAST(:session AS TEXT)
   AND m.role IN ('user', 'assistant')
   AND m.active IS NOT 0;

-- name: last-spoken
-- The same for files older than the active flag: every row is active.
SELECT max(m.id)
  FROM messages AS m
 WHERE m.session_id = CAST(:session AS TEXT)
   AND m.role IN ('user', 'assistant');

-- name: lineage
-- One row per session that the session came from or that came from it, itself left out.
WITH RECURSIVE
  before(id) AS (
    SELECT CAST(:session AS TEXT)
    UNION
    SELECT s.parent_session_id
      FROM before
     INNER JOIN sessions AS s ON s.id = before.id
     WHERE s.parent_session_id IS NOT NULL),
  after(id) AS (
    SELECT CAST(:session AS TEXT)
    UNION
    SELECT s.id
      FROM after
     INNER JOIN sessions AS s ON s.parent_session_id = after.id)
SELECT CAST(id AS BLOB)
  FROM (SELECT id FROM before UNION SELECT id FROM after)
 WHERE id <> CAST(:session AS TEXT)
 ORDER BY id;
