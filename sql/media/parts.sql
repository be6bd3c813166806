-- Messages with images of their own, for the classes about such images.

-- name: contents
-- One row per asked-for message: its id, its session, its content.
SELECT m.id, CAST(m.session_id AS BLOB), CAST(m.content AS BLOB)
  FROM json_each(CAST(:ids AS TEXT)) AS wanted
 INNER JOIN messages AS m ON m.id = wanted.value
 ORDER BY m.id;
