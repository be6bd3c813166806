-- What `sessions export` reads. {values} are columns that the file has; where a text may be no UTF-8 they come as bytes.

-- name: session
-- The row of one session.
SELECT {values} FROM sessions WHERE id = CAST(:id AS TEXT);

-- name: message-ids
-- The id of every message of one session, in order. Sorting whole rows would hold them all.
SELECT m.id FROM messages AS m WHERE m.session_id = CAST(:id AS TEXT) ORDER BY m.id;

-- name: message-total
-- One row: the messages of a list of sessions.
SELECT count(*) FROM json_each(:ids) AS i INNER JOIN messages AS m ON m.session_id = i.value;

-- name: messages
-- The messages of a list of ids, in its order.
SELECT {values} FROM carray(:ids) AS i CROSS JOIN messages AS m ON m.id = i.value;

-- name: usage
-- Every row of one session in a table of what it spent.
SELECT {values} FROM {table} WHERE session_id = CAST(:id AS TEXT) ORDER BY {order};

-- name: starts
-- The sessions of a list that have a row, the oldest first.
SELECT CAST(s.id AS BLOB)
  FROM json_each(:ids) AS i
 INNER JOIN sessions AS s ON s.id = i.value
 ORDER BY s.started_at, s.id;

-- name: prompt
-- needs: system_prompts.prompt
-- A stored prompt or list of tool names by its hash.
SELECT CAST(p.prompt AS BLOB) FROM system_prompts AS p WHERE p.hash = CAST(:hash AS TEXT);
