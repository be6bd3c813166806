-- The tool runs the statements of sql/search/survey.sql, filled with the names of the file's own tables and views. For an operator,
-- the same for the index of words of an inline file:

-- name: missing
-- A message that the index does not hold.
SELECT m.id
  FROM messages AS m
 WHERE NOT EXISTS (SELECT 1 FROM messages_fts_docsize AS d WHERE d.id = m.id)
 ORDER BY m.id;

-- name: left
-- An entry of the index whose message is gone.
SELECT d.id
  FROM messages_fts_docsize AS d
 WHERE NOT EXISTS (SELECT 1 FROM messages AS m WHERE m.id = d.id)
 ORDER BY d.id;
