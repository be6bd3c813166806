-- Paths of another system or home. The tool reads the texts of suspects by dangling_image_references.sql: the content pass says
-- which they are, and what a path is, is no question for SQL. For an operator with the sqlite3 shell.

-- name: messages-naming
-- One row per message that names a place: its id, its session, its time.
SELECT m.id, m.session_id, m.timestamp
  FROM messages AS m
 WHERE instr(m.content, :place)
 ORDER BY m.id;
