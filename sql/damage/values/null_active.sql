-- Messages whose active flag is NULL. Every reader of the store asks for active = 1, so these rows are not read.
-- The index of such rows is not forced: where the column is NOT NULL, SQLite knows that there are none and refuses the index.

-- name: find
-- needs: index:idx_messages_active_null messages.compacted
-- One row per session: how many of its messages have no active flag, how many of those a compaction set aside, first and last id.
SELECT CAST(m.session_id AS BLOB), count(*), total(m.compacted = 1), min(m.id), max(m.id)
  FROM messages AS m
 WHERE m.active IS NULL
 GROUP BY m.session_id
 ORDER BY m.session_id;

-- name: find
-- needs: messages.compacted
-- The same without the index of such rows.
SELECT CAST(m.session_id AS BLOB), count(*), total(m.compacted = 1), min(m.id), max(m.id)
  FROM messages AS m NOT INDEXED
 WHERE m.active IS NULL
 GROUP BY m.session_id
 ORDER BY m.session_id;

-- name: find
-- needs: index:idx_messages_active_null
-- The same for files older than compaction in place.
SELECT CAST(m.session_id AS BLOB), count(*), 0.0, min(m.id), max(m.id)
  FROM messages AS m
 WHERE m.active IS NULL
 GROUP BY m.session_id
 ORDER BY m.session_id;

-- name: find
-- The same for files older than compaction in place, without the index of such rows.
SELECT CAST(m.session_id AS BLOB), count(*), 0.0, min(m.id), max(m.id)
  FROM messages AS m NOT INDEXED
 WHERE m.active IS NULL
 GROUP BY m.session_id
 ORDER BY m.session_id;

-- name: repair
-- needs: messages.compacted
-- Gives the messages of one session between two ids their flag: 0 where a compaction set them aside, else 1.
UPDATE messages
   SET active = CASE WHEN compacted = 1 THEN 0 ELSE 1 END
 WHERE session_id = CAST(:session_id AS TEXT)
   AND id BETWEEN :first AND :last
   AND active IS NULL;

-- name: repair
-- The same for files older than compaction in place: every message is active.
UPDATE messages
   SET active = 1
 WHERE session_id = CAST(:session_id AS TEXT)
   AND id BETWEEN :first AND :last
   AND active IS NULL;

-- name: repair-rows
-- One row per message that the repair changes: its id, and the bytes that recording one changed flag takes.
SELECT m.id, 32 AS bytes
  FROM messages AS m
 WHERE m.session_id = CAST(:session_id AS TEXT)
   AND m.active IS NULL
 ORDER BY m.id;
