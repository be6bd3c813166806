-- Media files with other bytes than their names say. Which they are is no question for SQL. For an operator with the sqlite3
-- shell: who needs one.

-- name: messages-naming
-- One row per message that names a digest in its text: its id, its session, its time.
SELECT m.id, m.session_id, m.timestamp
  FROM messages AS m
 WHERE instr(m.content, :digest)
 ORDER BY m.id;
